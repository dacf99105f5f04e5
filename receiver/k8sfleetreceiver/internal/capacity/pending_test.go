// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package capacity_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestPendingReason(t *testing.T) {
	gated := func(gate string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gate}} }
	}
	of := func(pool string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"karpenter.sh/nodepool": pool} }
	}
	affine := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "karpenter.sh/nodepool", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"h"}}},
			}}},
		}}
	}
	const lacking = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
	for name, c := range map[string]struct {
		pod    *corev1.Pod
		nodes  []any
		reason string
	}{
		"no GPU left":                       {pod("p", "", 4, unschedulable(lacking)), []any{node("a", 3)}, "insufficient"},
		"on no node":                        {pod("p", "", 4, unschedulable(lacking)), []any{node("a", 3), node("b", 3)}, "fragmented"},
		"of another pool":                   {pod("p", "", 4, of("x"), unschedulable(lacking)), []any{node("a", 3), node("b", 3)}, "insufficient"},
		"by affinity":                       {pod("p", "", 4, affine, unschedulable(lacking)), []any{node("a", 3), node("b", 3)}, "insufficient"},
		"behind a taint":                    {pod("p", "", 4, unschedulable("0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint {team: x}.")), []any{node("a", 1), node("b", 8, tainted("team", corev1.TaintEffectNoSchedule))}, "taint"},
		"only nodes without GPUs lack them": {pod("p", "", 4, unschedulable("0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had volume node affinity conflict.")), []any{node("a", 0), node("b", 8)}, "volume"},
		"taint":                             {pod("p", "", 4, unschedulable("0/1 nodes are available: 1 node(s) had untolerated taint(s).")), []any{node("a", 8)}, "taint"},
		"volume claim":                      {pod("p", "", 4, unschedulable("pod has unbound immediate PersistentVolumeClaims")), nil, "volume"},
		"claim":                             {pod("p", "", 4, unschedulable("0/1 nodes are available: 1 cannot allocate all claims.")), nil, "claim"},
		"memory":                            {pod("p", "", 4, unschedulable("0/1 nodes are available: 1 Insufficient memory.")), []any{node("a", 8)}, "insufficient"},
		"gate":                              {pod("p", "", 4, notReady, gated("example.com/wait")), nil, "gated"},
		"gate of a quota":                   {pod("p", "", 4, notReady, gated("kueue.x-k8s.io/admission")), nil, "quota"},
		"not looked at":                     {pod("p", "", 4, notReady), nil, "other"},
		"pool not matched":                  {pod("p", "", 4, unschedulable("0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.")), nil, "other"},
	} {
		t.Run(name, func(t *testing.T) {
			r := report(fleet(), append(c.nodes, c.pod)...)
			require.Len(t, r.Pending, 1)
			assert.Equal(t, c.reason, r.Pending[0].Reason)
			assert.Equal(t, 4, r.Pending[0].GPUs)
			require.Len(t, r.Workloads, 1)
			require.Len(t, r.Workloads[0].Gaps, 1)
			assert.Equal(t, c.reason, r.Workloads[0].Gaps[0].Reason, "and so does its workload")
		})
	}
}

// Init containers run before the others, sidecars beside them.
func TestGPUsOfAPod(t *testing.T) {
	asks := func(name string, n int, policy *corev1.ContainerRestartPolicy) corev1.Container {
		return corev1.Container{Name: name, RestartPolicy: policy, Resources: corev1.ResourceRequirements{Limits: gpus(n)}}
	}
	always := new(corev1.ContainerRestartPolicyAlways)
	for name, c := range map[string]struct {
		init []corev1.Container
		want int
	}{
		"containers":                     {nil, 2},
		"a larger init container":        {[]corev1.Container{asks("i", 3, nil)}, 3},
		"a sidecar":                      {[]corev1.Container{asks("s", 1, always)}, 3},
		"init container after a sidecar": {[]corev1.Container{asks("s", 1, always), asks("i", 3, nil)}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			r := report(fleet(), pod("p", "", 2, notReady, func(p *corev1.Pod) { p.Spec.InitContainers = c.init }))
			require.Len(t, r.Pending, 1)
			assert.Equal(t, c.want, r.Pending[0].GPUs)
		})
	}
}
