// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package capacity_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/capacity"
)

func template(n int) corev1.PodTemplateSpec {
	p := pod("", "", n)
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels}, Spec: p.Spec}
}

func deployment(name string, replicas int32, n int) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Template: template(n)},
	}
}

func replicaSet(name, failure string) *appsv1.ReplicaSet {
	made := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: name, OwnerReferences: owner("Deployment", "chat")},
		Spec:       appsv1.ReplicaSetSpec{Template: template(1)},
	}
	if failure != "" {
		made.Status.Conditions = []appsv1.ReplicaSetCondition{{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: failure, LastTransitionTime: ago(5 * time.Minute),
		}}
	}
	return made
}

func scaler(target string, desired int32, labels map[string]string) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "scaler", Labels: labels},
		Spec:       autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: target}},
		Status:     autoscalingv2.HorizontalPodAutoscalerStatus{DesiredReplicas: desired},
	}
}

func chat() capacity.Identity {
	return capacity.Identity{Namespace: "prod", Kind: "Deployment", Workload: "chat", Model: "m"}
}

func TestWorkload(t *testing.T) {
	of := ownedBy("ReplicaSet", "chat-5d")
	r := report(fleet(), deployment("chat", 4, 1), replicaSet("chat-5d", `pods "chat-5d-" is forbidden: exceeded quota: gpus`),
		scaler("chat", 6, nil), node("n", 8),
		pod("a", "n", 1, of), pod("b", "n", 1, of, notReady), pod("c", "", 1, of, created(7*time.Minute), unschedulable("0/1 nodes are available: 1 Insufficient memory.")),
		pod("gone", "n", 1, of, terminating))
	assert.Equal(t, []capacity.Workload{{
		Identity: chat(), Source: "hpa", Desired: 6, Created: 3, Bound: 2, Ready: 1,
		Gaps: []capacity.Gap{
			{Missing: "bound", Reason: "insufficient", Replicas: 1, Age: 7 * time.Minute},
			{Missing: "created", Reason: "quota", Replicas: 3, Age: 5 * time.Minute},
			{Missing: "ready", Reason: "preparing", Replicas: 1, Age: time.Minute},
		},
	}}, r.Workloads)
}

func TestSource(t *testing.T) {
	for name, c := range map[string]struct {
		objects []any
		source  string
		desired int
	}{
		"deployment":       {[]any{deployment("chat", 2, 1)}, "deployment", 2},
		"hpa":              {[]any{deployment("chat", 2, 1), scaler("chat", 3, nil)}, "hpa", 3},
		"hpa of another":   {[]any{deployment("chat", 2, 1), scaler("other", 3, nil)}, "deployment", 2},
		"keda":             {[]any{deployment("chat", 2, 1), scaler("chat", 3, map[string]string{"scaledobject.keda.sh/name": "x"})}, "keda", 3},
		"scaled to zero":   {[]any{deployment("chat", 0, 1), scaler("chat", 1, nil)}, "deployment", 0},
		"default of one":   {[]any{&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "chat"}, Spec: appsv1.StatefulSetSpec{Template: template(1)}}}, "statefulset", 1},
		"ReplicaSet alone": {[]any{&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "chat"}, Spec: appsv1.ReplicaSetSpec{Template: template(1)}}}, "replicaset", 1},
		"owner never seen": {[]any{pod("a", "n", 1, ownedBy("Job", "batch"))}, "", -1},
	} {
		t.Run(name, func(t *testing.T) {
			r := report(fleet(), c.objects...)
			require.Len(t, r.Workloads, 1)
			assert.Equal(t, c.source, r.Workloads[0].Source)
			assert.Equal(t, c.desired, r.Workloads[0].Desired)
		})
	}
}

// A Deployment is known by the names of its pods' ReplicaSets even where those are not watched.
func TestReplicaSetNeverSeen(t *testing.T) {
	r := report(fleet(), deployment("chat", 1, 1), pod("a", "n", 1, ownedBy("ReplicaSet", "chat-5d"), func(p *corev1.Pod) {
		p.Labels["pod-template-hash"] = "5d"
	}))
	require.Len(t, r.Workloads, 1)
	assert.Equal(t, chat(), r.Workloads[0].Identity)
	assert.Equal(t, 1, r.Workloads[0].Ready)
}

// A gap that no controller explains is as old as the first report that saw it, and
// begins anew once it was closed.
func TestAgeOfAGap(t *testing.T) {
	s := capacity.New(fleet())
	gap := func(now time.Time) []capacity.Gap { return s.Report(now).Workloads[0].Gaps }
	s.Set(deployment("chat", 1, 1))
	assert.Equal(t, []capacity.Gap{{Missing: "created", Reason: "other", Replicas: 1}}, gap(noon))
	assert.Equal(t, time.Minute, gap(noon.Add(time.Minute))[0].Age)
	p := pod("a", "n", 1, ownedBy("Deployment", "chat"))
	s.Set(p)
	assert.Empty(t, gap(noon.Add(2*time.Minute)))
	s.Delete(p)
	assert.Zero(t, gap(noon.Add(3 * time.Minute))[0].Age)
}

func TestNotCreatedReason(t *testing.T) {
	ordered := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "chat"}, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(2)), Template: template(1)}}
	parallel := ordered.DeepCopy()
	parallel.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	for name, c := range map[string]struct {
		objects []any
		reason  string
	}{
		"quota":     {[]any{deployment("chat", 1, 1), replicaSet("chat-5d", "exceeded quota: gpus")}, "quota"},
		"admission": {[]any{deployment("chat", 1, 1), replicaSet("chat-5d", `admission webhook "policy" denied the request`)}, "admission"},
		"failure":   {[]any{deployment("chat", 1, 1), replicaSet("chat-5d", "etcdserver: request timed out")}, "other"},
		"ordered":   {[]any{ordered, pod("chat-0", "n", 1, notReady, ownedBy("StatefulSet", "chat"))}, "ordered"},
		"parallel":  {[]any{parallel, pod("chat-0", "n", 1, notReady, ownedBy("StatefulSet", "chat"))}, "other"},
	} {
		t.Run(name, func(t *testing.T) {
			r := report(fleet(), c.objects...)
			require.Len(t, r.Workloads, 1)
			require.NotEmpty(t, r.Workloads[0].Gaps)
			assert.Equal(t, "created", r.Workloads[0].Gaps[0].Missing)
			assert.Equal(t, c.reason, r.Workloads[0].Gaps[0].Reason)
		})
	}
}

func TestNotReadyReason(t *testing.T) {
	waiting := func(reason string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}})
		}
	}
	running := corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	runs := func(p *corev1.Pod) { p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, running) }
	inits := func(p *corev1.Pod) { p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, running) }
	sandbox := set(corev1.PodReadyToStartContainers, corev1.ConditionTrue, "")
	uninitialized := set(corev1.PodInitialized, corev1.ConditionFalse, "")
	for name, c := range map[string]struct {
		change []func(*corev1.Pod)
		reason string
	}{
		"the kubelet has said nothing": {nil, "preparing"},
		"no sandbox":                   {[]func(*corev1.Pod){waiting("ContainerCreating")}, "preparing"},
		"sandbox":                      {[]func(*corev1.Pod){sandbox, waiting("ContainerCreating")}, "pulling"},
		"one runs, one is pulled":      {[]func(*corev1.Pod){sandbox, runs, waiting("ContainerCreating")}, "pulling"},
		"init container runs":          {[]func(*corev1.Pod){sandbox, uninitialized, inits, waiting("PodInitializing")}, "init"},
		"runs":                         {[]func(*corev1.Pod){sandbox, runs}, "starting"},
		"pull fails":                   {[]func(*corev1.Pod){sandbox, waiting("ImagePullBackOff")}, "pull_failed"},
		"crashes beside one that runs": {[]func(*corev1.Pod){sandbox, runs, waiting("CrashLoopBackOff")}, "crash_loop"},
		"configuration":                {[]func(*corev1.Pod){sandbox, waiting("CreateContainerConfigError")}, "config"},
	} {
		t.Run(name, func(t *testing.T) {
			r := report(fleet(), pod("a", "n", 1, append(c.change, notReady)...))
			require.Len(t, r.Workloads[0].Gaps, 1)
			assert.Equal(t, c.reason, r.Workloads[0].Gaps[0].Reason)
		})
	}
}

func leaderWorkerSet(replicas int64, size int64, n int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
		"metadata": map[string]any{"namespace": "prod", "name": "big"},
		"spec": map[string]any{"replicas": replicas, "leaderWorkerTemplate": map[string]any{
			"size": size,
			"workerTemplate": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "llm", "model": "m"}},
				"spec": map[string]any{"containers": []any{map[string]any{
					"name": "engine", "resources": map[string]any{"limits": map[string]any{gpuResource: fmt.Sprint(n)}},
				}}},
			},
		}},
	}}
}

// Three groups of two pods are three replicas: one is ready, one has a pod that is
// not, one has one of its pods; a fourth has none.
func TestGroupIsOneReplica(t *testing.T) {
	in := func(group string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Labels["leaderworkerset.sigs.k8s.io/name"], p.Labels["leaderworkerset.sigs.k8s.io/group-index"] = "big", group
			p.Annotations = map[string]string{"leaderworkerset.sigs.k8s.io/size": "2"}
		}
	}
	pool := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool", "metadata": map[string]any{"namespace": "prod", "name": "pool"},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "llm"}}},
	}}
	r := report(fleet(), leaderWorkerSet(4, 2, 8), pool, pod("a0", "n", 8, in("0")), pod("a1", "n", 8, in("0")),
		pod("b0", "n", 8, in("1")), pod("b1", "n", 8, in("1"), notReady), pod("c0", "n", 8, in("2")))
	require.Len(t, r.Workloads, 1)
	w := r.Workloads[0]
	assert.Equal(t, "leaderworkerset", w.Source)
	assert.Equal(t, []int{4, 2, 2, 1}, []int{w.Desired, w.Created, w.Bound, w.Ready})
	assert.Equal(t, []capacity.Gap{
		{Missing: "created", Reason: "incomplete", Replicas: 2}, {Missing: "ready", Reason: "preparing", Replicas: 1, Age: time.Minute},
	}, w.Gaps)
	assert.Equal(t, []capacity.Pool{{Namespace: "prod", Name: "pool", Members: 3, Ready: 2}}, r.Pools)
}

// What is declared and scaled to zero is the smallest replica too.
func TestDeclaredReplica(t *testing.T) {
	assert.Equal(t, map[capacity.State]int{capacity.Fragmented: 4}, states(report(fleet(), node("n", 4), deployment("chat", 0, 8))))
	assert.Equal(t, map[capacity.State]int{capacity.Free: 4}, states(report(fleet(), node("n", 4), deployment("chat", 0, 8), deployment("small", 0, 2))))
	assert.Equal(t, map[capacity.State]int{capacity.Fragmented: 4}, states(report(fleet(), node("n", 4), leaderWorkerSet(0, 2, 8))))
	replaced := replicaSet("chat-4c", "")
	replaced.Spec.Replicas = new(int32(0))
	assert.Equal(t, map[capacity.State]int{capacity.Fragmented: 4}, states(report(fleet(), node("n", 4), deployment("chat", 0, 8), replaced)))
}

func TestLimits(t *testing.T) {
	o := fleet()
	o.MaxObjects, o.MaxSeries = 3, 2
	s := capacity.New(o)
	for i := range 3 {
		require.True(t, s.Set(pod(fmt.Sprintf("p%d", i), "n", 1)), "up to the limit")
	}
	require.True(t, s.Set(pod("p0", "n", 1)), "not one more")
	require.False(t, s.Set(pod("p3", "n", 1)))
	require.True(t, s.Set(pod("web", "n", 0, stranger)), "what holds no GPU takes no room")
	s.Set(node("n", 4))
	r := s.Report(noon)
	assert.Equal(t, capacity.Overflow{Objects: 1, Rows: 1}, r.Overflow)
	assert.Len(t, r.Workloads, 2)
	assert.Equal(t, map[capacity.State]int{capacity.AllocatedReady: 3, capacity.Free: 1}, states(r), "the sum stays")
	assert.Contains(t, r.States, capacity.StateCount{
		Place: r.GPUs[0].Place, State: capacity.AllocatedReady, GPUs: 1, Identity: capacity.Identity{Overflow: true},
	})
	s.Delete(pod("p0", "n", 1))
	require.True(t, s.Set(pod("p3", "n", 1)))
}

// Pods that ask for more than a node has are not installed GPUs.
func TestExcess(t *testing.T) {
	r := report(fleet(), node("n", 2), pod("a", "n", 2), pod("b", "n", 1, stranger))
	assert.Equal(t, map[capacity.State]int{capacity.AllocatedReady: 2}, states(r))
	assert.Equal(t, 1, r.Overflow.Excess)
}

// A partition that a device plugin offers by itself is a model of its own.
func TestPartitionsOfADevicePlugin(t *testing.T) {
	r := report(fleet(), node("n", 2, func(n *corev1.Node) {
		n.Status.Capacity["nvidia.com/mig-1g.10gb"] = gpus(7)[gpuResource]
		n.Status.Allocatable["nvidia.com/mig-1g.10gb"] = gpus(7)[gpuResource]
	}))
	require.Len(t, r.GPUs, 2)
	assert.Equal(t, "NVIDIA-H100-80GB-HBM3", r.GPUs[0].GPUModel)
	assert.Equal(t, "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", r.GPUs[1].GPUModel)
	assert.Equal(t, 7, r.GPUs[1].Installed)
}
