// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
)

// meaning is what a metric name is to a reader.
type meaning uint8

const (
	isNothing      meaning = iota
	isSignal               // a dialect's name of a signal that is looked for
	isUp                   // the scraper's word on the target
	isProcessStart         // since when the target's process runs
	isCreated              // the time at which a signal's series was made: a gauge that is no value
)

// name is a metric name that was seen before.
type name struct {
	meaning  meaning
	match    dialect.Match
	hash     fleet.ID
	observed *atomic.Uint64 // points used, of all names of the signal
}

// maxNames bounds the names that are remembered; the others are matched anew
// each time.
const maxNames = 1 << 14

// names remembers what metric names mean, and hashes what tells series apart.
type names struct {
	dialects *dialect.Set
	wanted   [fleet.SignalCount]bool
	// targetKeys are the resource attributes that tell targets apart.
	targetKeys []string
	tally      *Tally
	seed       maphash.Seed
	mu         sync.RWMutex // guards known; a reader holds it for a whole page
	known      map[string]*name
}

func (n *names) init(o Options, tally *Tally) {
	n.dialects, n.tally, n.seed = o.Dialects, tally, maphash.MakeSeed()
	n.targetKeys = slices.Concat(targetKeys, o.GroupBy)
	for _, s := range o.Signals {
		n.wanted[s] = true
	}
	n.known = make(map[string]*name)
}

// lookup tells what a metric name means. The caller holds the lock for reading.
func (n *names) lookup(metric string) *name {
	if known := n.known[metric]; known != nil {
		return known
	}
	n.mu.RUnlock()
	defer n.mu.RLock()
	return n.learn(metric)
}

func (n *names) learn(metric string) *name {
	metric = strings.Clone(metric)
	learned := &name{meaning: isNothing, hash: fleet.ID(maphash.String(n.seed, metric))}
	switch metric {
	case "up":
		learned.meaning = isUp
	case "process_start_time_seconds":
		learned.meaning = isProcessStart
	default:
		base, created := strings.CutSuffix(metric, "_created")
		if match, ok := n.dialects.Match(base); ok && n.wanted[match.Entry.Signal] {
			learned.match, learned.meaning = match, isSignal
			learned.observed = n.tally.counter(match.Entry)
			if created {
				learned.meaning = isCreated
			}
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.known) < maxNames {
		n.known[metric] = learned
	}
	return learned
}

// targetKeys are the resource attributes that tell targets apart, with those
// that name a fleet. Others may come and go as a target is learned about.
var targetKeys = []string{
	resourceInstance, "service.name", "service.namespace", resourceCluster, resourceNamespace, resourcePodUID,
	resourcePod, "k8s.container.name", "host.name", keyNamespace, keyPod, keyModelName,
}

// target is the id of the resource's target.
func (n *names) target(resource pcommon.Map) fleet.ID {
	var sum uint64
	for k, v := range resource.All() {
		if slices.Contains(n.targetKeys, k) {
			sum += n.pair(k, v)
		}
	}
	return fleet.ID(sum)
}

// labels hashes all attributes of a point, in any order.
func (n *names) labels(attributes pcommon.Map) fleet.ID {
	var sum uint64
	for k, v := range attributes.All() {
		sum += n.pair(k, v)
	}
	return fleet.ID(sum)
}

// chosen hashes those attributes of a point that are among the given ones.
func (n *names) chosen(attributes pcommon.Map, among []string) fleet.ID {
	var sum uint64
	for _, k := range among {
		if v, ok := attributes.Get(k); ok {
			sum += n.pair(k, v)
		}
	}
	return fleet.ID(sum)
}

func (n *names) pair(k string, v pcommon.Value) uint64 {
	var text string
	if v.Type() == pcommon.ValueTypeStr {
		text = v.Str()
	} else {
		text = v.AsString()
	}
	return mix(maphash.String(n.seed, k), maphash.String(n.seed, text))
}

// mix makes one hash of two in which neither can be exchanged for the other.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9e3779b97f4a7c15, bits.RotateLeft64(b, 29)^0xd6e8feb86659fd93)
	return hi ^ lo
}
