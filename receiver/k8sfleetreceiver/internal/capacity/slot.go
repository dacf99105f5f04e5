// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// slotKey is where GPUs of a kind can be had: a node, or a pool of devices that is
// bound to none.
type slotKey struct {
	node string
	pool poolKey // zero for a node
	kind string
}

// slot is what a node has of one kind of GPU.
type slot struct {
	place    Place
	node     *corev1.Node // nil where it is not known
	plugin   int          // told by a device plugin: present
	healthy  int          // and of these allocatable
	units    []*unit      // told by DRA
	asked    int          // by pods on the node
	held     map[holder]int
	draining bool
	kept     bool // from the fleet, by a taint of the node
	usable   int  // held by nobody, and to be had
	withheld int  // held by nobody, and not to be had
}

// drainTaints are on nodes that are about to go.
var drainTaints = []string{
	corev1.TaintNodeUnschedulable, "ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption",
}

// installed is how many there are: a GPU that is told by a device plugin and by DRA is one.
func (s *slot) installed() int { return max(s.plugin, len(s.units)) }

func (s *slot) allocatable() int {
	n := 0
	for _, u := range s.units {
		if !u.isTainted() {
			n++
		}
	}
	return max(n, s.healthy)
}

// slot finds or makes a slot.
func (a *account) slot(key slotKey) *slot {
	sl := a.slots[key]
	if sl == nil {
		sl = &slot{held: map[holder]int{}}
		if sl.node = a.nodes[types.NamespacedName{Name: key.node}]; sl.node != nil {
			sl.place = a.placeOf(sl.node, key.kind)
			sl.draining, sl.kept = drains(sl.node), a.keeps(sl.node)
		}
		a.slots[key] = sl
	}
	return sl
}

// slotOf puts a unit into its slot.
func (a *account) slotOf(pool poolKey, u *unit, kind string) {
	key := slotKey{node: u.node, kind: kind}
	if u.node == "" {
		key.pool = pool
	}
	sl := a.slot(key)
	sl.place.GPUModel = cmp.Or(sl.place.GPUModel, dashed(u.model))
	sl.units = append(sl.units, u)
}

// takeNodes takes into the account what device plugins tell.
func (a *account) takeNodes() {
	for key, node := range a.nodes {
		for resource, quantity := range node.Status.Capacity {
			if n := int(quantity.Value()); a.isGPU(string(resource)) && n > 0 {
				sl := a.slot(slotKey{node: key.Name, kind: string(resource)})
				healthy := node.Status.Allocatable[resource]
				sl.plugin, sl.healthy = n, min(n, int(healthy.Value()))
			}
		}
	}
}

// takePods gives GPUs of device plugins to the pods that hold them.
func (a *account) takePods() {
	for _, m := range a.members {
		h := a.holderOf(m)
		if h == nil || !m.bound() {
			continue
		}
		for kind, n := range a.extended(m.Pod) {
			sl := a.slot(slotKey{node: m.Spec.NodeName, kind: kind})
			sl.held[*h] += n
			sl.asked += n
		}
	}
}

// settleNodes gives every GPU of every slot its state.
func (a *account) settleNodes() {
	type row struct {
		place Place
		holder
	}
	gpus, states := map[Place]*GPUs{}, map[row]int{}
	places := a.limitPlaces()
	for key, sl := range a.slots {
		if sl.installed() == 0 && sl.asked == 0 {
			continue
		}
		place := places[sl.place]
		for _, state := range []State{Draining, Tainted, Fragmented, Free} {
			states[row{place, holder{state: state}}] += 0 // told as zero, not as missing
		}
		a.settle(sl, key.kind, func(h holder, n int) { states[row{place, h}] += n })
		if gpus[place] == nil {
			gpus[place] = &GPUs{Place: place}
		}
		gpus[place].Installed += sl.installed()
		gpus[place].Allocatable += sl.allocatable()
		gpus[place].Requested += sl.asked
	}
	for _, place := range slices.SortedFunc(maps.Keys(gpus), comparePlaces) {
		a.report.GPUs = append(a.report.GPUs, *gpus[place])
	}
	rows := slices.SortedFunc(maps.Keys(states), func(a, b row) int {
		return cmp.Or(comparePlaces(a.place, b.place), compareHolders(a.holder, b.holder))
	})
	for _, r := range rows {
		a.report.States = append(a.report.States, StateCount{Place: r.place, Identity: r.of, State: r.state, GPUs: states[r]})
	}
}

// settle tells the states of the GPUs of one slot; together they are those installed.
func (a *account) settle(sl *slot, kind string, tell func(holder, int)) {
	rest, tainted := sl.installed(), max(sl.plugin-sl.healthy, 0)
	bad := 0
	for _, u := range sl.units {
		switch {
		case u.holder != nil:
			sl.held[*u.holder]++
			sl.asked++
		case u.isTainted():
			bad++
		}
	}
	for _, h := range slices.SortedFunc(maps.Keys(sl.held), compareHolders) {
		n := min(sl.held[h], rest)
		rest -= n
		a.report.Overflow.Excess += sl.held[h] - n
		if n > 0 {
			tell(h, n)
		}
	}
	switch tainted = min(max(tainted, bad), rest); {
	case sl.draining:
		tell(holder{state: Draining}, rest)
		sl.withheld = rest
		return
	case sl.kept:
		tainted = rest
	}
	sl.usable, sl.withheld = rest-tainted, tainted
	tell(holder{state: Tainted}, tainted)
	if sl.usable < a.smallest[kind] {
		tell(holder{state: Fragmented}, sl.usable)
	} else {
		tell(holder{state: Free}, sl.usable)
	}
}

// limitPlaces maps each place to itself, and those beyond the limit to one.
func (a *account) limitPlaces() map[Place]Place {
	all := map[Place]Place{}
	for _, sl := range a.slots {
		all[sl.place] = sl.place
	}
	for i, place := range slices.SortedFunc(maps.Keys(all), comparePlaces) {
		if i >= a.options.MaxSeries {
			all[place] = Place{Overflow: true}
			a.report.Overflow.Rows++
		}
	}
	return all
}

// placeOf is the pool of a node and the model of its GPUs of a kind. A partition
// that a device plugin offers as a resource of its own is a model of its own.
func (a *account) placeOf(node *corev1.Node, kind string) Place {
	place := Place{NodePool: first(node.Labels, a.options.NodePoolLabels), GPUModel: dashed(first(node.Labels, a.options.GPUModelLabels))}
	if product := node.Labels[kind+".product"]; product != "" {
		place.GPUModel = product
	} else if _, partition, ok := strings.Cut(kind, "/mig-"); ok {
		place.GPUModel = strings.TrimPrefix(place.GPUModel+"-MIG-"+partition, "-")
	}
	return place
}

func first(of map[string]string, labels []string) string {
	for _, label := range labels {
		if value := of[label]; value != "" {
			return value
		}
	}
	return ""
}

func dashed(model string) string { return strings.ReplaceAll(strings.TrimSpace(model), " ", "-") }

// drains tells whether a node is cordoned or about to go.
func drains(node *corev1.Node) bool {
	return node.Spec.Unschedulable || node.DeletionTimestamp != nil || slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return slices.Contains(drainTaints, t.Key) && bars(t)
	})
}

// keeps tells whether a node has a taint that no pod of the fleet tolerates. One by
// the name of a GPU's resource keeps others off only: whoever asks for it gets the toleration.
func (a *account) keeps(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return bars(t) && !a.isGPU(t.Key) && !tolerated(t, maps.Keys(a.tolerations))
	})
}

func bars(t corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

func tolerated(t corev1.Taint, by func(func(corev1.Toleration) bool)) bool {
	for toleration := range by {
		if toleration.ToleratesTaint(klog.Background(), &t, true) {
			return true
		}
	}
	return false
}
