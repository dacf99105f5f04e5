// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package capacity_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/capacity"
)

func tainted(key string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: effect}) }
}

// Sixteen nodes of four GPUs: ten hold a ready pod, two one that is not ready yet,
// and of the other four each has less than the four that the next pod asks for.
func sixtyFour() []any {
	var all []any
	for i := range 16 {
		on := fmt.Sprintf("n%02d", i)
		unhealthy := 0
		switch {
		case i < 10:
			all = append(all, pod("ready-"+on, on, 4))
		case i < 12:
			all = append(all, pod("starting-"+on, on, 4, notReady))
		case i < 15:
			all = append(all, pod("notebook-"+on, on, 1, stranger))
		default:
			unhealthy = 2
		}
		all = append(all, node(on, 4, func(n *corev1.Node) { n.Status.Allocatable = gpus(4 - unhealthy) }))
	}
	return append(all, pod("next", "", 4, created(12*time.Minute),
		unschedulable("0/16 nodes are available: 16 Insufficient nvidia.com/gpu. preemption: 0/16 nodes are available.")))
}

func TestSixtyFourGPUs(t *testing.T) {
	r := report(fleet(), sixtyFour()...)
	require.Len(t, r.GPUs, 1)
	place := capacity.Place{NodePool: "h", GPUModel: "NVIDIA-H100-80GB-HBM3"}
	assert.Equal(t, capacity.GPUs{Place: place, Installed: 64, Allocatable: 62, Requested: 51}, r.GPUs[0])
	assert.Equal(t, map[capacity.State]int{
		capacity.AllocatedReady: 40, capacity.AllocatedNotReady: 8, capacity.Other: 3, capacity.Fragmented: 11, capacity.Tainted: 2,
	}, states(r))
	assert.Contains(t, r.States, capacity.StateCount{Place: place, State: capacity.Free}, "no free GPU is told as zero")
	assert.Contains(t, r.States, capacity.StateCount{
		Place: place, State: capacity.AllocatedNotReady, GPUs: 4,
		Identity: capacity.Identity{Namespace: "prod", Kind: "Pod", Workload: "starting-n10", Model: "m"},
	}, "who holds them can be joined with")
	assert.Equal(t, []capacity.Pending{{
		Identity: capacity.Identity{Namespace: "prod", Kind: "Pod", Workload: "next", Model: "m"},
		Reason:   "fragmented", Pods: 1, GPUs: 4, Oldest: 12 * time.Minute,
	}}, r.Pending)
}

func TestState(t *testing.T) {
	want := pod("want", "", 2, unschedulable(""))
	for name, c := range map[string]struct {
		objects []any
		states  map[capacity.State]int
	}{
		"free":            {[]any{node("n", 4)}, map[capacity.State]int{capacity.Free: 4}},
		"fragmented":      {[]any{node("n", 1), want}, map[capacity.State]int{capacity.Fragmented: 1}},
		"large enough":    {[]any{node("n", 3), want}, map[capacity.State]int{capacity.Free: 3}},
		"cordoned":        {[]any{node("n", 4, func(n *corev1.Node) { n.Spec.Unschedulable = true }), pod("p", "n", 1)}, map[capacity.State]int{capacity.AllocatedReady: 1, capacity.Draining: 3}},
		"disrupted":       {[]any{node("n", 4, tainted("karpenter.sh/disrupted", corev1.TaintEffectNoSchedule))}, map[capacity.State]int{capacity.Draining: 4}},
		"node tainted":    {[]any{node("n", 4, tainted("team", corev1.TaintEffectNoSchedule)), pod("p", "n", 1)}, map[capacity.State]int{capacity.AllocatedReady: 1, capacity.Tainted: 3}},
		"taint of GPUs":   {[]any{node("n", 4, tainted(gpuResource, corev1.TaintEffectNoSchedule))}, map[capacity.State]int{capacity.Free: 4}},
		"taint preferred": {[]any{node("n", 4, tainted("team", corev1.TaintEffectPreferNoSchedule))}, map[capacity.State]int{capacity.Free: 4}},
		"taint tolerated": {[]any{node("n", 4, tainted("team", corev1.TaintEffectNoSchedule)), pod("p", "n", 1, func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}}
		})}, map[capacity.State]int{capacity.AllocatedReady: 1, capacity.Free: 3}},
		"ended":                               {[]any{node("n", 4), pod("p", "n", 4, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}, map[capacity.State]int{capacity.Free: 4}},
		"DRA and a device plugin of one node": {[]any{node("n", 4), slice("s", "n", 1, 1, devices(4)...), pod("p", "n", 1)}, map[capacity.State]int{capacity.AllocatedReady: 1, capacity.Free: 3}},
		"claim": {[]any{
			slice("s", "n", 1, 1, devices(4)...), pod("p", "n", 0, uses("c")), claim("c", got("n", "gpu-1"), reservedFor("p")),
		}, map[capacity.State]int{capacity.AllocatedReady: 1, capacity.Free: 3}},
		"terminating": {[]any{node("n", 4), pod("p", "n", 1, terminating)}, map[capacity.State]int{capacity.Other: 1, capacity.Free: 3}},
		"claim of a pod of the same name before": {[]any{
			slice("s", "n", 1, 1, devices(4)...), claim("c", got("n", "gpu-1"), reservedFor("p")),
			pod("p", "n", 0, uses("c"), func(p *corev1.Pod) { p.UID = "another" }),
		}, map[capacity.State]int{capacity.Other: 1, capacity.Free: 3}},
		"claim without a pod": {[]any{slice("s", "n", 1, 1, devices(4)...), claim("c", got("n", "gpu-1"))}, map[capacity.State]int{capacity.Other: 1, capacity.Free: 3}},
		"extended resource by a claim": {[]any{
			slice("s", "n", 1, 1, devices(4)...), claim("c", got("n", "gpu-1"), reservedFor("p")),
			pod("p", "n", 1, func(p *corev1.Pod) {
				p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
					ResourceClaimName: "c",
					RequestMappings:   []corev1.ContainerExtendedResourceRequest{{ContainerName: "engine", ResourceName: gpuResource, RequestName: "gpu"}},
				}
			}),
		}, map[capacity.State]int{capacity.AllocatedReady: 1, capacity.Free: 3}},
		"shared device": {[]any{
			slice("s", "n", 1, 1, devices(2)...), pod("a", "n", 0, notReady, uses("ca")), pod("b", "n", 0, uses("cb")),
			claim("ca", got("n", "gpu-1"), reservedFor("a")), claim("cb", got("n", "gpu-1"), reservedFor("b")),
		}, map[capacity.State]int{capacity.AllocatedReady: 1, capacity.Free: 1}},
		"device tainted": {[]any{slice("s", "n", 1, 1, withTaint(devices(2), resourcev1.DeviceTaintEffectNoSchedule)...)}, map[capacity.State]int{capacity.Tainted: 1, capacity.Free: 1}},
		"taint informs":  {[]any{slice("s", "n", 1, 1, withTaint(devices(2), resourcev1.DeviceTaintEffectNone)...)}, map[capacity.State]int{capacity.Free: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.states, states(report(fleet(), c.objects...)))
		})
	}
}

func withTaint(all []resourcev1.Device, effect resourcev1.DeviceTaintEffect) []resourcev1.Device {
	all[0].Taints = []resourcev1.DeviceTaint{{Key: "gpu.nvidia.com/xid", Effect: effect}}
	return all
}

// Whatever the cluster is like, each installed GPU is in one state, in every place.
func TestStatesSumToInstalled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := capacity.New(fleet())
		nodes := rapid.IntRange(0, 5).Draw(t, "nodes")
		installed := 0
		for i := range nodes {
			name, plugin, dra := fmt.Sprintf("n%d", i), rapid.IntRange(0, 8).Draw(t, "plugin"), rapid.IntRange(0, 8).Draw(t, "dra")
			installed += max(plugin, dra)
			s.Set(node(name, plugin, randomNode(t, plugin)))
			all := devices(dra)
			if dra > 0 && rapid.Bool().Draw(t, "device tainted") {
				all = withTaint(all, resourcev1.DeviceTaintEffectNoExecute)
			}
			if dra > 0 {
				s.Set(slice("s"+name, name, 1, 1, all...))
			}
		}
		for i := range rapid.IntRange(0, 12).Draw(t, "pods") {
			on := fmt.Sprintf("n%d", rapid.IntRange(0, 6).Draw(t, "on")) // some nodes are not known
			if rapid.IntRange(0, 3).Draw(t, "pending") == 0 {
				on = ""
			}
			name := fmt.Sprintf("p%d", i)
			changes := rapid.SliceOfN(rapid.SampledFrom([]func(*corev1.Pod){notReady, stranger, terminating, uses("c" + name)}), 0, 3).Draw(t, "changes")
			s.Set(pod(name, on, rapid.IntRange(0, 4).Draw(t, "asks"), changes...))
			device := fmt.Sprintf("gpu-%d", rapid.IntRange(0, 9).Draw(t, "device"))
			s.Set(claim("c"+name, got(fmt.Sprintf("n%d", rapid.IntRange(0, 6).Draw(t, "pool")), device), reservedFor(name)))
		}
		r := s.Report(noon)
		byPlace, told := map[capacity.Place]int{}, 0
		for _, st := range r.States {
			require.GreaterOrEqual(t, st.GPUs, 0)
			byPlace[st.Place] += st.GPUs
		}
		for _, g := range r.GPUs {
			require.Equal(t, g.Installed, byPlace[g.Place], "%v", g.Place)
			require.LessOrEqual(t, g.Allocatable, g.Installed)
			told += g.Installed
		}
		require.Equal(t, installed, told)
	})
}

func randomNode(t *rapid.T, n int) func(*corev1.Node) {
	return func(made *corev1.Node) {
		made.Status.Allocatable = gpus(rapid.IntRange(0, n).Draw(t, "allocatable"))
		made.Spec.Unschedulable = rapid.IntRange(0, 3).Draw(t, "cordoned") == 0
		made.Labels["karpenter.sh/nodepool"] = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "node pool")
		if rapid.IntRange(0, 3).Draw(t, "tainted") == 0 {
			made.Spec.Taints = []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectNoExecute}}
		}
	}
}
