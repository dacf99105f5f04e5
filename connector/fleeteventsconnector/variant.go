// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleeteventsconnector

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
)

// Labels that find a replica, as they stand on its points.
const (
	labelCluster   = "cluster"
	labelNamespace = "namespace"
	labelPod       = "pod"
)

// variant is what a rollout changes, in the order of variantNames; "" where it
// is not known.
type variant [3]string

var variantNames = [3]string{
	fleet.ModelRevision.String(), fleet.EngineVersion.String(), fleet.ConfigHash.String(),
}

func variantOf(labels []fleet.Label) (v variant) {
	for i, name := range variantNames {
		v[i] = labelOf(labels, name)
	}
	return v
}

// differs tells whether two variants are others in something that is known of
// both.
func (v *variant) differs(other *variant) bool {
	for i := range v {
		if v[i] != "" && other[i] != "" && v[i] != other[i] {
			return true
		}
	}
	return false
}

// learn takes what the other knows.
func (v *variant) learn(other *variant) {
	for i := range v {
		if other[i] != "" {
			v[i] = other[i]
		}
	}
}

// variants puts together that a variant changed, which fleet_identity counts,
// and what it was and is, which the labels of fleet_outlier's points tell:
// earlier, or up to an evaluation later. Not safe for concurrent use.
type variants struct {
	reader   reader
	limit    int
	of       map[uint64]*history // by replica
	latest   map[uint64]*history // by pod, that of its newest replica
	overflow int64               // readings that were not used
}

// history is what is known of the variants of one replica.
type history struct {
	pod     uint64
	heard   time.Time // by the clock, when something came
	was, is variant
	learned pcommon.Timestamp // when the labels last told what it is
	moved   pcommon.Timestamp // when that became another; 0 once it is told
	counted pcommon.Timestamp // of the newest count; 0: there was none
	count   float64
	rise    *rise // of the count, that is not told yet
}

// rise is one change of a variant.
type rise struct {
	of      *reading
	count   float64
	was, is variant // set when it is told; both empty if they are not known
}

// together is how long before a rise of the count the labels may have changed to
// belong to it: a few evaluations.
const together = 5 * time.Minute

func newVariants(r reader, limit int) *variants {
	return &variants{reader: r, limit: limit, of: make(map[uint64]*history), latest: make(map[uint64]*history)}
}

// observe takes what a reading tells of a replica's variant, and returns the
// changes that can be told now.
func (v *variants) observe(rd *reading, now time.Time) (changes []*rise) {
	is := variantOf(rd.labels)
	if rd.of != emit.Replica || !rd.valued || rd.count == nil && is == (variant{}) {
		return nil
	}
	h := v.follow(rd)
	if h == nil {
		v.overflow++
		return nil
	}
	h.heard = now
	if is != (variant{}) && rd.at >= h.learned {
		h.see(is, rd.at)
	}
	if rd.count != nil && rd.at > h.counted {
		if h.rise != nil { // an evaluation later the labels tell nothing yet: they never will
			changes = append(changes, h.take())
		}
		h.note(rd)
	}
	if h.rise != nil && h.explained() {
		changes = append(changes, h.take())
	}
	return changes
}

// follow finds the history of a replica, or begins one. A new replica in a pod
// of the same name, as in a StatefulSet, goes on with the variant of the former.
func (v *variants) follow(rd *reading) *history {
	cluster := v.reader.hash(labelCluster, rd.label(labelCluster))
	identity := cluster + v.reader.hash(emit.AttributeReplica, rd.label(emit.AttributeReplica))
	if h := v.of[identity]; h != nil {
		return h
	}
	if len(v.of) >= v.limit {
		return nil
	}
	h := new(history)
	v.of[identity] = h
	if pod := rd.label(labelPod); pod != "" {
		h.pod = cluster + v.reader.hash(labelNamespace, rd.label(labelNamespace)) + v.reader.hash(labelPod, pod)
		if former := v.latest[h.pod]; former != nil {
			h.is = former.is
		}
		v.latest[h.pod] = h
	}
	return h
}

// see takes what the labels tell.
func (h *history) see(is variant, at pcommon.Timestamp) {
	h.learned = at
	if is.differs(&h.is) {
		h.was, h.is, h.moved = h.is, is, at
		return
	}
	h.is.learn(&is)
}

// note takes what the count tells. The first count is a beginning, not a change;
// one that fell began anew.
func (h *history) note(rd *reading) {
	first, former := h.counted == 0, h.count
	h.counted, h.count = rd.at, *rd.count
	if !first && (h.count > former || h.count < former && h.count > 0) {
		h.rise = &rise{of: rd, count: h.count}
	}
}

// explained tells whether the labels tell of the change that is to be told.
func (h *history) explained() bool {
	return h.moved != 0 && h.rise.of.at.AsTime().Sub(h.moved.AsTime()) <= together
}

// take is the change that is to be told, with what is known of it.
func (h *history) take() *rise {
	r := h.rise
	if h.explained() {
		r.was, r.is, h.moved = h.was, h.is, 0
	}
	h.rise = nil
	return r
}

// forget stops following what was last heard of before. It returns the changes
// that were not told yet.
func (v *variants) forget(before time.Time) (changes []*rise) {
	for identity, h := range v.of {
		if !h.heard.Before(before) {
			continue
		}
		if h.rise != nil {
			changes = append(changes, h.take())
		}
		if v.latest[h.pod] == h {
			delete(v.latest, h.pod)
		}
		delete(v.of, identity)
	}
	return changes
}
