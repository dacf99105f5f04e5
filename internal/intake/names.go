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
	isInfo                 // a series whose labels are facts
	isCanonical            // a signal in the one spelling
	isPart                 // series of a classic histogram that tells a signal
	isElse                 // a signal, or of a component, that is not looked for; or derived by llmfleet
)

// name is a metric name that was seen before.
type name struct {
	meaning  meaning
	readings []reading     // of a signal's name: one for each signal that it tells
	info     *dialect.Info // of an info series
	part     part          // of the metric named whole, which has the readings
	whole    string
}

// reading is one signal that a metric tells.
type reading struct {
	dialect.Match
	id       fleet.ID       // of the name and what it means
	observed *atomic.Uint64 // points used, of all names of the signal
}

// maxNames bounds the names that are remembered; the others are matched anew
// each time.
const maxNames = 1 << 14

// names remembers what metric names mean, and hashes what tells series apart.
type names struct {
	dialects   *dialect.Set
	wanted     func(*dialect.Entry) bool
	targetKeys []string // resource attributes that tell targets apart
	// notes are the attributes of points and resources that say something about a
	// series, and do not tell it from others.
	notes   keySet
	derived bool // what llmfleet derived is read, too
	tally   *Tally
	seed    maphash.Seed
	mu      sync.RWMutex // guards known; a reader holds it for a whole page
	known   map[string]*name
}

// init makes the names that are wanted known. Keys are those that tell targets,
// and series, apart beside the usual ones.
func (n *names) init(dialects *dialect.Set, wanted func(*dialect.Entry) bool, keys []string) {
	n.dialects, n.wanted, n.tally, n.seed = dialects, wanted, newTally(), maphash.MakeSeed()
	n.targetKeys = slices.Concat(targetKeys, keys)
	n.notes = keySet{}
	n.notes.add(slices.DeleteFunc(slices.Clone(notes), func(key string) bool { return slices.Contains(keys, key) }))
	n.known = make(map[string]*name)
}

// fix makes all that is told of a series tell it from others, with what else its
// resource tells by these keys.
func (n *names) fix(keys []string) {
	n.targetKeys = slices.Concat(n.targetKeys, keys)
	n.notes = keySet{}
}

// keySet is a few names of attributes. Most others differ from all of them in
// length.
type keySet struct {
	keys    []string
	lengths uint64 // a bit for each length of a key
}

func (s *keySet) add(keys []string) {
	s.keys = append(s.keys, keys...)
	for _, key := range keys {
		s.lengths |= lengthBit(key)
	}
}

func (s *keySet) has(key string) bool {
	return s.lengths&lengthBit(key) != 0 && slices.Contains(s.keys, key)
}

func lengthBit(key string) uint64 { return 1 << min(len(key), 63) }

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
	learned := &name{meaning: isNothing}
	switch metric {
	case "up":
		learned.meaning = isUp
	case "process_start_time_seconds":
		learned.meaning = isProcessStart
	default:
		if isDerived(metric) && !n.derived {
			learned.meaning = isElse
			if strings.HasPrefix(metric, canonicalPrefix) {
				learned.meaning = isCanonical
			}
			break
		}
		n.match(metric, learned)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.known) < maxNames {
		n.known[metric] = learned
	}
	return learned
}

// match learns what the dialects say of a name.
func (n *names) match(metric string, learned *name) {
	matches, means := n.dialects.Match(metric), isSignal
	learned.whole = metric
	if base, ok := strings.CutSuffix(metric, "_created"); ok && len(matches) == 0 {
		matches, means = n.dialects.Match(base), isCreated
	}
	if base, part := partOf(metric); part != isWhole && len(matches) == 0 {
		learned.whole, learned.part, means = base, part, isPart
		for _, match := range n.dialects.Match(base) {
			if match.Entry.Kind == fleet.Histogram {
				matches = append(matches, match)
			}
		}
	}
	for i, match := range matches {
		if e := match.Entry; n.wanted(e) {
			learned.meaning = means
			learned.readings = append(learned.readings, reading{
				Match:    match,
				id:       fleet.ID(mix(maphash.String(n.seed, learned.whole), uint64(i))),
				observed: n.tally.counter(e),
			})
		}
	}
	if learned.meaning == isNothing && len(matches) > 0 {
		learned.meaning = isElse
	}
	if info := n.dialects.Info(metric); info != nil {
		learned.meaning, learned.info = isInfo, info
	}
}

// canonicalPrefix stands before a signal in the one spelling.
const canonicalPrefix = "llmfleet.engine."

// isDerived tells whether llmfleet made a metric: it is no word of anyone's own.
func isDerived(metric string) bool {
	return strings.HasPrefix(metric, "llmfleet.") || strings.HasPrefix(metric, "llmfleet_")
}

// targetKeys are the resource attributes that tell targets apart, with those
// that name a fleet. Others may come and go as a target is learned about.
var targetKeys = []string{
	resourceInstance, "service.name", "service.namespace", resourceCluster, resourceNamespace, resourcePodUID,
	resourcePod, "k8s.container.name", "host.name", keyNamespace, keyPod, keyModelName, keyReplica,
}

// target is the id of the resource's target, and a hash of its notes.
func (n *names) target(resource pcommon.Map) (id, notes fleet.ID) {
	var sum, noted uint64
	for k, v := range resource.All() {
		if slices.Contains(n.targetKeys, k) {
			sum += n.pair(k, v)
		}
		if n.notes.has(k) {
			noted += n.pair(k, v)
		}
	}
	return fleet.ID(sum), fleet.ID(noted)
}

// notes are what may be learned of a replica, and stamped on its points, while
// it goes on: a series stays the same when it comes or changes.
var notes = slices.Concat(variantKeys, []string{keyReplica, keyNode, keyGPUModel})

// labels hashes all attributes of a point, in any order: those that tell its
// series from others, and those that are notes.
func (n *names) labels(attributes pcommon.Map) (series, notes fleet.ID) {
	var own, noted uint64
	for k, v := range attributes.All() {
		if n.notes.has(k) {
			noted += n.pair(k, v)
		} else {
			own += n.pair(k, v)
		}
	}
	return fleet.ID(own), fleet.ID(noted)
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
