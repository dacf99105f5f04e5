// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// unready is why, and since when, a bound replica is not ready: the reason of the
// pod that has not been ready for longest.
func (a *account) unready(r *replica) (reason string, age time.Duration) {
	age = -1
	for _, m := range r.pods {
		if m.ready() {
			continue
		}
		since := m.CreationTimestamp.Time
		for _, of := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReady} {
			if c := condition(m.Pod, of); c != nil && c.LastTransitionTime.After(since) {
				since = c.LastTransitionTime.Time
			}
		}
		if waits := a.since(since); waits > age {
			age, reason = waits, notReady(m.Pod)
		}
	}
	return reason, age
}

// notReady is what a bound pod is at, the worst of its containers first.
func notReady(p *corev1.Pod) string {
	found := map[string]bool{}
	for _, statuses := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range statuses {
			found[containerAt(p, &statuses[i])] = true
		}
	}
	initialized := condition(p, corev1.PodInitialized)
	for _, reason := range []string{"crash_loop", "pull_failed", "config"} {
		if found[reason] {
			return reason
		}
	}
	switch {
	case initialized != nil && initialized.Status != corev1.ConditionTrue && found["running"]:
		return "init"
	case found["pulling"]:
		return "pulling"
	case found["running"]:
		return "starting"
	}
	return "preparing"
}

// containerAt is what a container is at.
func containerAt(p *corev1.Pod, c *corev1.ContainerStatus) string {
	if c.State.Running != nil {
		return "running"
	}
	if c.State.Waiting == nil {
		return ""
	}
	switch c.State.Waiting.Reason {
	case "CrashLoopBackOff":
		return "crash_loop"
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable":
		return "pull_failed"
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreCreateHookError", "PreStartHookError":
		return "config"
	}
	// The kubelet says ContainerCreating, or PodInitializing, from the first moment; images are pulled once the sandbox is there.
	if s := condition(p, corev1.PodReadyToStartContainers); s != nil && s.Status == corev1.ConditionTrue {
		return "pulling"
	}
	return "waiting"
}
