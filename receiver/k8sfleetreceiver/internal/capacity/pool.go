// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// poolKey is a pool of a driver.
type poolKey struct{ driver, pool string }

// device is what a claim's result names.
type device struct{ driver, pool, name string }

// unit is one physical device, with all devices that are parts or other forms of it.
type unit struct {
	node    string // "" where it is bound to none
	model   string
	devices int // that it can be had as
	parts   int // of these, the partitions that tell no counters
	tainted int // of these
	used    float64
	holder  *holder
}

// isTainted tells whether the unit can be had in no form.
func (u *unit) isTainted() bool { return u.tainted == u.devices }

// share is a part of a unit.
type share struct {
	of *unit
	// part of it that is taken along with a device; 0: one of its partitions
	part float64
}

// pool is a pool in its highest generation.
type pool struct {
	complete bool
	slices   []*resourcev1.ResourceSlice
	units    []*unit
	shares   map[string][]share // by device
	shared   map[string]float64 // capacity of shared devices, by name
}

// pools gathers the slices of each pool's highest generation; a pool is complete
// once it has as many as it says. Those of lower generations are left from before.
func (s *Store) pools() map[poolKey]*pool {
	all := map[poolKey]*pool{}
	for _, slice := range s.slices {
		key := poolKey{slice.Spec.Driver, slice.Spec.Pool.Name}
		p := all[key]
		if p == nil {
			p = &pool{}
			all[key] = p
		}
		if len(p.slices) > 0 {
			switch cmp.Compare(slice.Spec.Pool.Generation, p.slices[0].Spec.Pool.Generation) {
			case -1:
				continue
			case 1:
				p.slices = nil
			}
		}
		p.slices = append(p.slices, slice)
	}
	for key, p := range all {
		p.complete = int64(len(p.slices)) == p.slices[0].Spec.Pool.ResourceSliceCount
		if p.complete {
			slices.SortFunc(p.slices, func(a, b *resourcev1.ResourceSlice) int { return strings.Compare(a.Name, b.Name) })
			s.divide(key, p)
		}
	}
	return all
}

// divide finds the units of a pool. A device is of the unit whose counters it
// consumes; else of that of its parent, or of the same uuid; else it is its own. A
// set of counters is a unit only if some device takes one of them whole: others are
// shared by whole devices, as the memory of their host.
func (s *Store) divide(key poolKey, p *pool) {
	p.shares, p.shared = map[string][]share{}, map[string]float64{}
	budgets := budgetsOf(p)
	units := map[string]*unit{}
	named := map[string]string{} // the set of counters of the device that has a uuid
	each(p, func(_ *resourcev1.ResourceSlice, d *resourcev1.Device) {
		if sets := sets(d, budgets); len(sets) > 0 {
			if uuid := text(d, "uuid"); uuid != "" && text(d, "parentUUID") == "" {
				named[uuid] = sets[0].CounterSet
			}
		}
	})
	each(p, func(slice *resourcev1.ResourceSlice, d *resourcev1.Device) {
		take := func(id string, part float64) {
			u := units[id]
			if u == nil {
				u = &unit{node: nodeOf(slice, d), model: text(d, "productName")}
				units[id], p.units = u, append(p.units, u)
			}
			u.devices++
			if part == 0 {
				u.parts++
			}
			if s.deviceTainted(key, d) {
				u.tainted++
			}
			p.shares[d.Name] = append(p.shares[d.Name], share{u, part})
		}
		for _, c := range sets(d, budgets) {
			take("counters/"+c.CounterSet, largest(c.Counters, budgets[c.CounterSet].counters))
		}
		if len(p.shares[d.Name]) == 0 {
			take(whole(d, named))
		}
		if isTrue(d.AllowMultipleAllocations) {
			for name, c := range d.Capacity {
				p.shared[string(name)] += c.Value.AsApproximateFloat64()
			}
		}
	})
}

// whole is the unit of a device that tells no counters, and the part of it that it is.
func whole(d *resourcev1.Device, named map[string]string) (id string, part float64) {
	parent := text(d, "parentUUID")
	uuid := cmp.Or(parent, text(d, "uuid"))
	if parent == "" {
		part = 1
	}
	switch set, known := named[uuid]; {
	case uuid == "":
		return "device/" + d.Name, part
	case known:
		return "counters/" + set, part
	}
	return "uuid/" + uuid, part
}

func each(p *pool, visit func(*resourcev1.ResourceSlice, *resourcev1.Device)) {
	for _, slice := range p.slices {
		for i := range slice.Spec.Devices {
			visit(slice, &slice.Spec.Devices[i])
		}
	}
}

// budget is a set of counters.
type budget struct {
	counters map[string]resourcev1.Counter
	whole    bool // some device takes one of them whole
}

func budgetsOf(p *pool) map[string]*budget {
	all := map[string]*budget{}
	for _, slice := range p.slices {
		for _, set := range slice.Spec.SharedCounters {
			all[set.Name] = &budget{counters: set.Counters}
		}
	}
	each(p, func(_ *resourcev1.ResourceSlice, d *resourcev1.Device) {
		for _, c := range d.ConsumesCounters {
			if b := all[c.CounterSet]; b != nil && largest(c.Counters, b.counters) >= 1 {
				b.whole = true
			}
		}
	})
	return all
}

// sets are the counters that a device consumes, of sets that are units.
func sets(d *resourcev1.Device, budgets map[string]*budget) (of []resourcev1.DeviceCounterConsumption) {
	for _, c := range d.ConsumesCounters {
		if b := budgets[c.CounterSet]; b != nil && b.whole {
			of = append(of, c)
		}
	}
	return of
}

// largest is the largest share of any counter of a budget that is consumed.
func largest(consumed, of map[string]resourcev1.Counter) (most float64) {
	for name, c := range consumed {
		if b := of[name]; b.Value.Sign() > 0 {
			most = max(most, ratio(c.Value, b.Value))
		}
	}
	return min(most, 1)
}

func ratio(a, b resource.Quantity) float64 {
	return a.AsApproximateFloat64() / b.AsApproximateFloat64()
}

// text is an attribute of a device, in the driver's own domain.
func text(d *resourcev1.Device, name string) string {
	if a := d.Attributes[resourcev1.QualifiedName(name)].StringValue; a != nil {
		return *a
	}
	return ""
}

func nodeOf(slice *resourcev1.ResourceSlice, d *resourcev1.Device) string {
	switch {
	case slice.Spec.NodeName != nil:
		return *slice.Spec.NodeName
	case d.NodeName != nil:
		return *d.NodeName
	}
	return ""
}

// deviceTainted tells whether the driver or a rule keeps claims from a device.
// Taints of other effects inform only.
func (s *Store) deviceTainted(key poolKey, d *resourcev1.Device) bool {
	if slices.ContainsFunc(d.Taints, keepsOff) {
		return true
	}
	for _, rule := range s.taintRules {
		if sel := rule.Spec.DeviceSelector; sel != nil && keepsOff(rule.Spec.Taint) &&
			is(sel.Driver, key.driver) && is(sel.Pool, key.pool) && is(sel.Device, d.Name) {
			return true
		}
	}
	return false
}

func keepsOff(t resourcev1.DeviceTaint) bool {
	return t.Effect == resourcev1.DeviceTaintEffectNoSchedule || t.Effect == resourcev1.DeviceTaintEffectNoExecute
}

func is(wanted *string, value string) bool { return wanted == nil || *wanted == value }
