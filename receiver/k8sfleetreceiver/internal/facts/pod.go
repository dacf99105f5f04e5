// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// teller gathers the facts of one pod.
type teller struct {
	pod   *corev1.Pod
	about *lifecycle.Pod
	told  []lifecycle.Fact
}

// at adds a fact at a time of the API, which has whole seconds. Without a time
// there is none.
func (t *teller) at(when metav1.Time, f lifecycle.Fact) {
	if when.IsZero() {
		return
	}
	f.Pod, f.About = string(t.pod.UID), t.about
	f.At, f.Grain = instant(when.Time), time.Second
	if f.Clock.Kind == lifecycle.Node {
		f.Clock.Of = t.pod.Spec.NodeName
	}
	t.told = append(t.told, f)
}

func instant(t time.Time) window.Instant { return window.Instant(t.UnixNano()) }

// kubelet is the clock of the pod's node.
var kubelet = lifecycle.Clock{Kind: lifecycle.Node}

// Pod is all that a pod's object, and those around it, say of its start so far.
// The times are theirs; a fact that has none is left out.
func (c *Cluster) Pod(p *corev1.Pod) []lifecycle.Fact {
	t := teller{pod: p, about: c.About(p)}
	t.at(p.CreationTimestamp, lifecycle.Fact{Name: lifecycle.Created})
	if at, source, ok := c.desired(p); ok {
		t.at(at, lifecycle.Fact{Name: lifecycle.Desired, Reason: source})
	}
	c.claimsTold(&t)
	c.node(&t)
	for i := range p.Status.Conditions {
		t.condition(&p.Status.Conditions[i])
	}
	for _, statuses := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range statuses {
			t.container(&statuses[i])
		}
	}
	t.failure()
	return t.told
}

// claimsTold tells when the pod's claims were made, and got their devices.
func (c *Cluster) claimsTold(t *teller) {
	for _, name := range claimsOf(t.pod) {
		claim := c.claims[types.NamespacedName{Namespace: t.pod.Namespace, Name: name}]
		if claim == nil {
			continue
		}
		t.at(claim.CreationTimestamp, lifecycle.Fact{Name: lifecycle.ClaimCreated, Container: name})
		allocation := claim.Status.Allocation
		switch {
		case allocation == nil:
		case allocation.AllocationTimestamp != nil:
			t.at(*allocation.AllocationTimestamp, lifecycle.Fact{Name: lifecycle.ClaimAllocated, Container: name})
		default: // behind a feature gate: who wrote the allocation, and when, is always told
			for _, e := range claim.ManagedFields {
				if e.Time != nil {
					t.at(*e.Time, lifecycle.Fact{Name: lifecycle.ClaimAllocated, Container: name})
				}
			}
		}
	}
}

// node tells of the pod's node: when it was asked for, came and was ready.
func (c *Cluster) node(t *teller) {
	node := c.nodes[t.pod.Spec.NodeName]
	if node == nil {
		return
	}
	if claim, ok := c.nodeClaims[node.Name]; ok && claim.made.Add(wishAfter).After(t.pod.CreationTimestamp.Time) {
		t.at(claim.made, lifecycle.Fact{Name: lifecycle.NodeRequested, Reason: "karpenter", Message: "NodeClaim " + claim.name})
	}
	t.at(node.CreationTimestamp, lifecycle.Fact{Name: lifecycle.NodeCreated})
	for i := range node.Status.Conditions {
		if cond := &node.Status.Conditions[i]; cond.Type == corev1.NodeReady && cond.Status == corev1.ConditionTrue {
			t.at(cond.LastTransitionTime, lifecycle.Fact{Name: lifecycle.NodeReady, Clock: kubelet})
		}
	}
}

// condition tells what a condition says. Who watches tells each once: one that
// turns False and True again is told as it was True first.
func (t *teller) condition(cond *corev1.PodCondition) {
	if cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse {
		t.at(cond.LastTransitionTime, lifecycle.Fact{Name: lifecycle.Unschedulable, Reason: cond.Reason, Message: cond.Message})
	}
	if cond.Status != corev1.ConditionTrue {
		return
	}
	switch cond.Type {
	case corev1.PodScheduled:
		t.at(cond.LastTransitionTime, lifecycle.Fact{Name: lifecycle.Scheduled})
	case corev1.PodReadyToStartContainers:
		t.at(cond.LastTransitionTime, lifecycle.Fact{Name: lifecycle.SandboxReady, Clock: kubelet})
	case corev1.PodInitialized:
		t.at(cond.LastTransitionTime, lifecycle.Fact{Name: lifecycle.Initialized, Clock: kubelet})
	case corev1.PodReady:
		t.at(cond.LastTransitionTime, lifecycle.Fact{Name: lifecycle.Ready, Clock: kubelet})
	}
}

// container tells of a container's runs: this one, and the one before. While it
// waits to be started again, its restart count is still that of the one before.
func (t *teller) container(s *corev1.ContainerStatus) {
	attempt := int(s.RestartCount)
	if s.State.Running != nil {
		t.at(s.State.Running.StartedAt, lifecycle.Fact{
			Name: lifecycle.ContainerStarted, Container: s.Name, Attempt: attempt, Clock: kubelet,
		})
	}
	t.ended(s.Name, attempt, s.State.Terminated)
	if s.State.Waiting == nil {
		attempt--
	}
	t.ended(s.Name, max(attempt, 0), s.LastTerminationState.Terminated)
}

// ended tells of a run that is over.
func (t *teller) ended(container string, attempt int, how *corev1.ContainerStateTerminated) {
	if how == nil {
		return
	}
	t.at(how.StartedAt, lifecycle.Fact{Name: lifecycle.ContainerStarted, Container: container, Attempt: attempt, Clock: kubelet})
	t.at(how.FinishedAt, lifecycle.Fact{
		Name: lifecycle.ContainerExited, Container: container, Attempt: attempt, Clock: kubelet,
		Reason: how.Reason, Message: how.Message, ExitCode: int(how.ExitCode),
	})
}

// failure tells that the pod has ended in error. No field says when: it is the
// last thing that its status tells.
func (t *teller) failure() {
	status := &t.pod.Status
	if status.Phase != corev1.PodFailed {
		return
	}
	f := lifecycle.Fact{Name: lifecycle.Failed, Clock: kubelet, Reason: status.Reason, Message: status.Message}
	for i := range status.ContainerStatuses {
		if how := status.ContainerStatuses[i].State.Terminated; f.Reason == "" && how != nil && how.ExitCode != 0 {
			f.Reason, f.Message, f.ExitCode = how.Reason, how.Message, int(how.ExitCode)
		}
	}
	t.at(lastTold(t.pod), f)
}

// Gone is the end of a pod that was deleted: when that was asked for. A pod whose
// deletion was not seen ends with the last thing that it told.
func (c *Cluster) Gone(p *corev1.Pod) lifecycle.Fact {
	t := teller{pod: p, about: c.About(p)}
	at := lastTold(p)
	if p.DeletionTimestamp != nil { // when it has to be gone at the latest
		grace := time.Duration(0)
		if p.DeletionGracePeriodSeconds != nil {
			grace = time.Duration(*p.DeletionGracePeriodSeconds) * time.Second
		}
		at = metav1.NewTime(p.DeletionTimestamp.Add(-grace))
	}
	t.at(at, lifecycle.Fact{Name: lifecycle.Deleted})
	return t.told[0]
}

// lastTold is the newest time in a pod's status.
func lastTold(p *corev1.Pod) (last metav1.Time) {
	later := func(t metav1.Time) {
		if last.Before(&t) {
			last = t
		}
	}
	later(p.CreationTimestamp)
	if p.Status.StartTime != nil {
		later(*p.Status.StartTime)
	}
	for i := range p.Status.Conditions {
		later(p.Status.Conditions[i].LastTransitionTime)
	}
	for _, statuses := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range statuses {
			if how := statuses[i].State.Terminated; how != nil {
				later(how.FinishedAt)
			}
		}
	}
	return last
}

// Served tells whether a pod is Ready, or has come to its end.
func Served(p *corev1.Pod) bool {
	for i := range p.Status.Conditions {
		if cond := &p.Status.Conditions[i]; cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue {
			return true
		}
	}
	return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
}
