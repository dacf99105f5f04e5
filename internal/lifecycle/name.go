// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

// Name is what happened. Its text is the event name of the log record that tells
// it.
type Name uint8

// The facts, in the order in which a start has them.
const (
	Unknown Name = iota
	// Desired: someone asked for more replicas than there were. Reason is who:
	// hpa, keda, deployment, statefulset, leaderworkerset.
	Desired
	// Created is the pod's creationTimestamp.
	Created
	// Unschedulable: the scheduler found no place. Message says why.
	Unschedulable
	// NodeRequested: an autoscaler announced a node for the pod. Reason is who.
	NodeRequested
	// NodeCreated is the creationTimestamp of the pod's node.
	NodeCreated
	// NodeReady is when the pod's node was Ready first.
	NodeReady
	// ClaimCreated: the pod's resource claim was made. Container is the claim.
	ClaimCreated
	// ClaimAllocated: the claim got its devices.
	ClaimAllocated
	// ClaimFailed: the node could not prepare the claim's devices.
	ClaimFailed
	// Scheduled: the pod was bound to a node.
	Scheduled
	// VolumeAttached: a volume was attached to the node.
	VolumeAttached
	// VolumeFailed: a volume could not be attached or mounted.
	VolumeFailed
	// SandboxReady: the pod's sandbox and network are there
	// (PodReadyToStartContainers).
	SandboxReady
	// PullStarted: the kubelet asked for an image.
	PullStarted
	// PullFailed: it did not get it.
	PullFailed
	// PullBackOff: it waits before it asks again.
	PullBackOff
	// PullFinished: the image is there. Took is the pull, Waited the time in line
	// before it; Cached if it was there already.
	PullFinished
	// ContainerCreated: the container was made.
	ContainerCreated
	// ContainerStarted: the container runs.
	ContainerStarted
	// ContainerExited: the container ended. Reason and ExitCode say how.
	ContainerExited
	// RestartBackOff: the kubelet waits before it starts the container again.
	RestartBackOff
	// Initialized: all init containers are done.
	Initialized
	// ProbeFailed: a probe did not succeed. Reason is its kind.
	ProbeFailed

	// EngineInitializing: the engine says that it begins.
	EngineInitializing
	// DownloadStarted: the model's files are being fetched.
	DownloadStarted
	// DownloadFinished: they are there.
	DownloadFinished
	// WeightsStarted: weights are being loaded into the accelerator.
	WeightsStarted
	// WeightsFinished: they are there.
	WeightsFinished
	// CompileStarted: the model is being compiled.
	CompileStarted
	// CompileFinished: it is. Cached if it was found compiled.
	CompileFinished
	// ProfileFinished: the engine has run once to see what memory it needs.
	ProfileFinished
	// KVCacheStarted: the KV cache is being allocated.
	KVCacheStarted
	// KVCacheFinished: it is.
	KVCacheFinished
	// GraphsStarted: graphs are being captured.
	GraphsStarted
	// GraphsFinished: they are.
	GraphsFinished
	// WarmupFinished: the engine is initialized and warm, but not reachable yet.
	WarmupFinished
	// EngineReady: the engine says that it serves.
	EngineReady

	// Ready: the pod was Ready for the first time.
	Ready
	// FirstToken: the replica has made its first token. Took is how late that may
	// be told: the time since it was last seen without one.
	FirstToken
	// Failed: the pod has ended in error. Reason says why: Evicted, OutOfcpu.
	Failed
	// Deleted: the pod is gone.
	Deleted
)

var names = [...]string{ //nolint:gosec // a first token is no credential
	Desired: "llmfleet.replica.desired", Created: "llmfleet.pod.created",
	Unschedulable: "llmfleet.pod.unschedulable", NodeRequested: "llmfleet.node.requested",
	NodeCreated: "llmfleet.node.created", NodeReady: "llmfleet.node.ready",
	ClaimCreated: "llmfleet.claim.created", ClaimAllocated: "llmfleet.claim.allocated", ClaimFailed: "llmfleet.claim.failed",
	Scheduled: "llmfleet.pod.scheduled", VolumeAttached: "llmfleet.volume.attached", VolumeFailed: "llmfleet.volume.failed",
	SandboxReady: "llmfleet.pod.sandbox_ready",
	PullStarted:  "llmfleet.image.pull_started", PullFailed: "llmfleet.image.pull_failed",
	PullBackOff: "llmfleet.image.pull_back_off", PullFinished: "llmfleet.image.pulled",
	ContainerCreated: "llmfleet.container.created", ContainerStarted: "llmfleet.container.started",
	ContainerExited: "llmfleet.container.exited", RestartBackOff: "llmfleet.container.restart_back_off",
	Initialized: "llmfleet.pod.initialized", ProbeFailed: "llmfleet.container.probe_failed",
	EngineInitializing: "llmfleet.engine.initializing",
	DownloadStarted:    "llmfleet.model.download_started", DownloadFinished: "llmfleet.model.downloaded",
	WeightsStarted: "llmfleet.weights.load_started", WeightsFinished: "llmfleet.weights.loaded",
	CompileStarted: "llmfleet.compile.started", CompileFinished: "llmfleet.compile.finished",
	ProfileFinished: "llmfleet.profile.finished",
	KVCacheStarted:  "llmfleet.kv_cache.init_started", KVCacheFinished: "llmfleet.kv_cache.initialized",
	GraphsStarted: "llmfleet.graph.capture_started", GraphsFinished: "llmfleet.graph.captured",
	WarmupFinished: "llmfleet.engine.warm", EngineReady: "llmfleet.engine.ready",
	Ready: "llmfleet.pod.ready", FirstToken: "llmfleet.replica.first_token",
	Failed: "llmfleet.pod.failed", Deleted: "llmfleet.pod.deleted",
}

var byText = func() map[string]Name {
	of := make(map[string]Name, len(names))
	for name, text := range names {
		if text != "" {
			of[text] = Name(name)
		}
	}
	return of
}()

// String is the event name.
func (n Name) String() string {
	if int(n) < len(names) {
		return names[n]
	}
	return ""
}

// NameOf finds the fact of an event name.
func NameOf(event string) (Name, bool) {
	n, ok := byText[event]
	return n, ok
}

// OfEngine tells whether the engine itself tells the fact.
func (n Name) OfEngine() bool { return n >= EngineInitializing && n <= EngineReady }
