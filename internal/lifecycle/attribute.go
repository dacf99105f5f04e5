// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

// Attributes of the log record that tells a fact, as semantic conventions have
// them and, where they have none, of our own. Durations are in seconds.
const (
	KeyID        = "log.record.uid"
	KeyContainer = "k8s.container.name"
	KeyAttempt   = "k8s.container.restart_count"
	KeyReplayed  = "llmfleet.fact.replayed" // it was no news when it was learned
	KeyGrain     = "llmfleet.fact.grain"
	KeyClock     = "llmfleet.fact.clock"    // a ClockKind
	KeyClockOf   = "llmfleet.fact.clock_of" // the node's name, the pod's uid
	KeyCount     = "llmfleet.fact.count"
	KeyUntil     = "llmfleet.fact.until" // in RFC 3339
	KeyDuration  = "llmfleet.fact.duration"
	KeyWait      = "llmfleet.fact.wait"
	KeyReason    = "llmfleet.fact.reason"
	KeyMessage   = "llmfleet.fact.message"
	KeyCached    = "llmfleet.fact.cached"
	KeyExitCode  = "llmfleet.fact.exit_code"
	KeyCopy      = "llmfleet.fact.copy"
)

// Attributes of the record's resource, which say who the pod is.
const (
	KeyPod            = "k8s.pod.uid"
	KeyPodName        = "k8s.pod.name"
	KeyNamespace      = "k8s.namespace.name"
	KeyNode           = "k8s.node.name"
	KeyModel          = "model_name"
	KeyEngine         = "engine_name"
	KeyGPUModel       = "gpu_model"
	KeyWorkloadKind   = "llmfleet.workload.kind"
	KeyWorkload       = "llmfleet.workload.name"
	KeyGPUs           = "llmfleet.pod.gpus"
	KeyContainers     = "llmfleet.pod.containers"      // names
	KeyContainerRoles = "llmfleet.pod.container_roles" // of each the ContainerRole
	KeyGroup          = "llmfleet.group.name"
	KeyLeader         = "llmfleet.group.leader"
	KeyGroupSize      = "llmfleet.group.size"
)

var clockNames = [...]string{ControlPlane: "control_plane", Node: "node", Engine: "engine"}

// String is the value of KeyClock.
func (k ClockKind) String() string { return clockNames[k] }

// ClockKindOf finds the kind of a value of KeyClock, ControlPlane if it is none.
func ClockKindOf(text string) ClockKind {
	for k, name := range clockNames {
		if name == text {
			return ClockKind(k)
		}
	}
	return ControlPlane
}

var roleNames = [...]string{Main: "main", Init: "init", Sidecar: "sidecar"}

// String is an element of KeyContainerRoles.
func (r ContainerRole) String() string { return roleNames[r] }

// ContainerRoleOf finds the role of an element of KeyContainerRoles, Main if it
// is none.
func ContainerRoleOf(text string) ContainerRole {
	for r, name := range roleNames {
		if name == text {
			return ContainerRole(r)
		}
	}
	return Main
}
