// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"slices"
	"sync/atomic"
)

// Resident is one replica as a directory knows it.
type Resident struct {
	ID        string
	directory *Directory
	last      atomic.Int64 // window.Instant when it was last heard
	where     atomic.Pointer[Where]
	facts     atomic.Pointer[Facts]
	changes   atomic.Uint64 // of its variant
	gone      atomic.Bool   // forgotten
	spoken    spoken
	processes processes
	taught    teacher

	// What follows is guarded by the directory.

	keys            []string // by which it is found
	hasUID, hasName bool     // among them
	several         bool     // pods
	serves          []*Service
	from            [OriginCount]*Facts // nil where an origin told nothing
	teller          [FactCount]Origin   // who tells each of the facts
	variant         variant             // when it was last compared
	compared        bool
	former          *variant // of who had its name before it
}

func newResident(id string, d *Directory) *Resident {
	r := &Resident{ID: id, directory: d}
	r.where.Store(new(Where))
	r.facts.Store(new(Facts))
	return r
}

// Hear notes that the resident is there.
func (r *Resident) Hear() { r.last.Store(r.directory.now.Load()) }

// Gone tells whether the directory has forgotten the resident.
func (r *Resident) Gone() bool { return r.gone.Load() }

// Where is where it runs.
func (r *Resident) Where() Where { return *r.where.Load() }

// Facts is what is known of the resident. It must not be modified.
func (r *Resident) Facts() *Facts { return r.facts.Load() }

// VariantChanges is how often its variant was another than before.
func (r *Resident) VariantChanges() uint64 { return r.changes.Load() }

// moveIn lets the resident be found at a place. A pod's name passes on to the
// pod that comes after it.
func (r *Resident) moveIn(at *Place) {
	r.runsAt(&at.Where)
	if at.Shared {
		return
	}
	d := r.directory
	if r.key(at.UID) {
		r.hasUID = true
		d.found[at.UID] = r
	}
	if name := at.name(); r.key(name) {
		r.hasName = true
		if former := d.found[name]; former != nil {
			was := former.variantNow()
			r.former = &was
		}
		d.found[name] = r
	}
	for _, a := range at.Addresses {
		if !r.key(a) {
			continue
		}
		if other := d.found[a]; other != nil && len(d.crowded[a]) == 0 {
			d.crowded[a] = []*Resident{other}
		}
		if len(d.crowded[a]) > 0 {
			d.crowded[a] = append(d.crowded[a], r)
		}
		d.found[a] = r
	}
}

// runsAt notes where the resident runs. One of several pods runs in none of them.
func (r *Resident) runsAt(at *Where) {
	w := r.Where()
	w.Cluster, w.Namespace = cmp.Or(w.Cluster, at.Cluster), cmp.Or(w.Namespace, at.Namespace)
	switch {
	case r.several || at.Pod == "" || at.Pod == w.Pod:
	case w.Pod == "":
		w.Pod = at.Pod
	default:
		w.Pod, r.several = "", true
	}
	if w != r.Where() {
		r.where.Store(&w)
	}
}

// key tells whether the resident is to be found by a key from now on.
func (r *Resident) key(key string) bool {
	if key == "" || len(r.keys) >= keysPerReplica || slices.Contains(r.keys, key) {
		return false
	}
	r.keys = append(r.keys, key)
	r.directory.growth.Add(1)
	return true
}

// leave ends the residence.
func (r *Resident) leave() {
	d := r.directory
	r.gone.Store(true)
	r.count(-1)
	delete(d.residents, r.ID)
	for _, key := range r.keys {
		if d.found[key] == r {
			delete(d.found, key)
		}
		others := slices.DeleteFunc(d.crowded[key], func(o *Resident) bool { return o == r })
		if len(others) > 0 {
			d.found[key], d.crowded[key] = others[0], others
		}
		if len(others) < 2 {
			delete(d.crowded, key)
		}
	}
	d.growth.Add(1)
}

// Learn takes what one origin tells of the resident, and keeps it. What it tells
// no more, it still stands for: a page that failed to say it takes nothing back.
func (r *Resident) Learn(from Origin, facts *Facts) {
	r.directory.mu.Lock()
	defer r.directory.mu.Unlock()
	r.learn(from, facts)
}

func (r *Resident) learn(from Origin, facts *Facts) {
	if r.from[from] != nil {
		known := *r.from[from]
		for f, value := range facts {
			known[f] = cmp.Or(value, known[f])
		}
		facts = &known
		if known == *r.from[from] {
			return
		}
	}
	if facts.Empty() {
		return
	}
	r.from[from] = facts
	r.merge()
}

// merge lets of each fact the first origin count that tells it.
func (r *Resident) merge() {
	r.count(-1)
	var merged Facts
	for f := range merged {
		for _, from := range r.directory.options.Order {
			if merged[f] = r.told(Fact(f), from); merged[f] != "" {
				r.teller[f] = from
				break
			}
		}
	}
	r.facts.Store(&merged)
	r.count(1)
}

// told is what an origin tells of one fact.
func (r *Resident) told(f Fact, from Origin) string {
	switch {
	case f == ModelName && len(r.serves) > 1:
		return "" // of several models none is the resident's own
	case f == ModelName && len(r.serves) == 1 && r.serves[0].from == from:
		return r.serves[0].Model
	case r.from[from] == nil:
		return ""
	default:
		return r.from[from][f]
	}
}

// equip lets the accelerators of its node be the resident's, where nothing else
// tells of them.
func (r *Resident) equip() {
	facts := r.Facts()
	if e := r.directory.nodes[facts[Node]]; e != nil && e.gpuModel != "" && facts[GPUModel] == "" {
		r.learn(FromGPU, &Facts{GPUModel: e.gpuModel})
	}
}

// variant is what a rollout changes: revision, version and configuration, each
// with who tells it.
type variant struct {
	values  [ConfigHash - ModelRevision + 1]string
	tellers [ConfigHash - ModelRevision + 1]Origin
}

func (r *Resident) variantNow() (v variant) {
	copy(v.values[:], r.Facts()[ModelRevision:])
	copy(v.tellers[:], r.teller[ModelRevision:])
	return v
}

// changedTo tells whether another variant is certainly another one: something
// that was known is told otherwise, by the same teller. To learn something for
// the first time, or from a better source, is no change.
func (v *variant) changedTo(o *variant) bool {
	for i, was := range v.values {
		if now := o.values[i]; was != "" && now != "" && was != now && v.tellers[i] == o.tellers[i] {
			return true
		}
	}
	return false
}

// known tells whether anything is.
func (v *variant) known() bool { return v.values != [len(v.values)]string{} }

// compare counts a change of the resident's variant since the last time, and
// one from who had its name before it: a pod of a StatefulSet that came back as
// another. The first time it only takes note, so that who follows the count
// sees it rise.
func (r *Resident) compare() {
	now := r.variantNow()
	if r.compared && (r.variant.changedTo(&now) || r.former != nil && r.former.changedTo(&now)) {
		r.changes.Add(1)
	}
	if r.compared && now.known() {
		r.former = nil
	}
	r.variant, r.compared = now, true
}
