// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
)

// Why a pod has no node.
const (
	reasonInsufficient = "insufficient"
	reasonFragmented   = "fragmented"
	reasonTaint        = "taint"
	reasonQuota        = "quota"
	reasonClaim        = "claim"
	reasonVolume       = "volume"
	reasonGated        = "gated"
	reasonOther        = "other"
)

// tellPending counts the pods that ask for GPUs and have no node. GPUs that a claim
// of theirs already has are no demand any more, and a claim that several pods share
// is asked for once.
func (a *account) tellPending() {
	type key struct {
		of     Identity
		reason string
	}
	rows := map[key]*Pending{}
	asked := map[types.NamespacedName]bool{}
	rooms := map[roomKey]room{}
	for _, m := range a.members {
		if !m.active() || m.bound() {
			continue
		}
		all := a.wants(m.Pod)
		if len(all) == 0 {
			continue
		}
		reason := a.waitsFor(m, all, rooms)
		a.waits[m] = reason
		k := key{a.identities[a.owners[m]], reason}
		row := rows[k]
		if row == nil {
			row = &Pending{Identity: k.of, Reason: reason}
			rows[k] = row
		}
		row.Pods++
		row.GPUs += a.demand(m, asked)
		row.Oldest = max(row.Oldest, a.since(m.CreationTimestamp.Time))
	}
	keys := slices.SortedFunc(maps.Keys(rows), func(a, b key) int {
		return cmp.Or(compareIdentities(a.of, b.of), strings.Compare(a.reason, b.reason))
	})
	for _, k := range keys {
		a.report.Pending = append(a.report.Pending, *rows[k])
	}
}

// demand is how many GPUs a pod without a node still needs.
func (a *account) demand(m *member, asked map[types.NamespacedName]bool) (n int) {
	for _, k := range a.extended(m.Pod) {
		n += k
	}
	for _, claim := range a.claimsOf(m.Pod) {
		if claim.Status.Allocation != nil || asked[keyOf(claim)] {
			continue
		}
		asked[keyOf(claim)] = true
		for _, k := range a.claimed(claim) {
			n += k
		}
	}
	return n
}

// waitsFor is why a pod has no node: by its gates and its PodScheduled condition,
// whose message counts nodes by what they lack. Where it says that GPUs lack, the
// account tells whether there are enough of them at all. Every node without GPUs
// lacks them too, so that the words alone would say so of every GPU pod.
func (a *account) waitsFor(m *member, wants amount, rooms map[roomKey]room) string {
	if gates := m.Spec.SchedulingGates; len(gates) > 0 {
		// A queue for quotas holds its pods by a gate.
		if slices.ContainsFunc(gates, func(g corev1.PodSchedulingGate) bool { return strings.HasPrefix(g.Name, "kueue.x-k8s.io/") }) {
			return reasonQuota
		}
		return reasonGated
	}
	c := condition(m.Pod, corev1.PodScheduled)
	if c == nil || c.Status == corev1.ConditionTrue {
		return reasonOther // the scheduler has not looked at it
	}
	says := strings.ToLower(c.Message)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(says, w) })
	}
	lacking := ""
	for kind := range wants {
		if has("insufficient " + strings.ToLower(kind)) {
			lacking = max(lacking, kind)
		}
	}
	short := ""
	if lacking != "" {
		short = a.roomFor(m, lacking, rooms).short(wants[lacking], has("taint", "unschedulable"))
	}
	switch {
	case c.Reason == corev1.PodReasonSchedulingGated:
		return reasonGated
	case has("quota"):
		return reasonQuota
	case short != "":
		return short
	case has("volume"): // before claims: a volume's claim is one of another kind
		return reasonVolume
	case has("claim"):
		return reasonClaim
	case has("taint"):
		return reasonTaint
	case has("insufficient"):
		return reasonInsufficient
	}
	return reasonOther
}

// room is what the nodes that a pod may run on have of one kind of GPU and nobody holds.
type room struct {
	most, sum int // that can be had: on one node, on all
	withheld  int // on the node that would have most, were it not for its taints
}

// short is why a number of GPUs cannot be had; "" if it can.
func (r room) short(n int, tainted bool) string {
	switch {
	case r.most >= n:
		return ""
	case r.sum >= n:
		return reasonFragmented
	case tainted && r.withheld >= n:
		return reasonTaint
	}
	return reasonInsufficient
}

// roomKey is what pods have in common that are made of one template.
type roomKey struct {
	made types.UID // by whom; of a pod that nobody made its own
	kind string
}

// roomFor looks for room for a pod, once for all that are made of its template.
func (a *account) roomFor(m *member, kind string, rooms map[roomKey]room) room {
	key := roomKey{m.UID, kind}
	if by := metav1.GetControllerOfNoCopy(m); by != nil {
		key.made = by.UID
	}
	r, known := rooms[key]
	if known {
		return r
	}
	for at, sl := range a.slots {
		if at.kind != kind || sl.node == nil || !mayRun(m.Pod, sl.node) {
			continue
		}
		usable, withheld := sl.usable, sl.withheld
		if slices.ContainsFunc(sl.node.Spec.Taints, func(t corev1.Taint) bool {
			return bars(t) && !a.isGPU(t.Key) && !tolerated(t, slices.Values(m.Spec.Tolerations))
		}) {
			usable, withheld = 0, usable+withheld
		}
		r.most, r.sum, r.withheld = max(r.most, usable), r.sum+usable, max(r.withheld, usable+withheld)
	}
	rooms[key] = r
	return r
}

// mayRun tells whether a node has the labels that a pod demands.
func mayRun(p *corev1.Pod, node *corev1.Node) bool {
	if !labels.SelectorFromSet(p.Spec.NodeSelector).Matches(labels.Set(node.Labels)) {
		return false
	}
	affinity := p.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	terms := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return slices.ContainsFunc(terms, func(t corev1.NodeSelectorTerm) bool {
		return len(t.MatchExpressions)+len(t.MatchFields) > 0 &&
			all(t.MatchExpressions, labels.Set(node.Labels)) && all(t.MatchFields, labels.Set{"metadata.name": node.Name})
	})
}

func all(of []corev1.NodeSelectorRequirement, have labels.Set) bool {
	return !slices.ContainsFunc(of, func(r corev1.NodeSelectorRequirement) bool {
		q, err := labels.NewRequirement(r.Key, operators[r.Operator], r.Values)
		return err != nil || !q.Matches(have)
	})
}

var operators = map[corev1.NodeSelectorOperator]selection.Operator{
	corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn,
	corev1.NodeSelectorOpExists: selection.Exists, corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	corev1.NodeSelectorOpGt: selection.GreaterThan, corev1.NodeSelectorOpLt: selection.LessThan,
}
