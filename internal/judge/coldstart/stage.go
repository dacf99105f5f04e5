// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

// Stage is one part of a replica's way from asked-for to first token.
type Stage uint8

// The stages, in the order in which a start has them.
const (
	// Whole is the start itself, PodBranch one pod of a replica group, AttemptOf one
	// attempt of a container that failed. They hold stages and are none.
	Whole Stage = iota
	PodBranch
	AttemptOf

	// Decision: from the wish for a replica to its pod.
	Decision
	// Scheduling: waiting for a place, less what a node or a claim explain.
	Scheduling
	// NodeProvision: a node was made for the pod.
	NodeProvision
	// DRAAllocate: the pod's resource claims waited for devices.
	DRAAllocate
	// VolumeAttach: the volumes came to the node.
	VolumeAttach
	// Sandbox: the pod's sandbox and network.
	Sandbox
	// PullWait: in line before the pull of an image.
	PullWait
	// ImagePull: the pull of an image.
	ImagePull
	// PullBackOff: a pull failed, and the kubelet waited.
	PullBackOff
	// ContainerCreate: from the image to a running container.
	ContainerCreate
	// ContainerInit: an init container ran.
	ContainerInit
	// ModelDownload: the model's files were fetched.
	ModelDownload
	// EngineBoot: from the container's start to the engine's first word.
	EngineBoot
	// WeightsLoad: weights went into the accelerator.
	WeightsLoad
	// Compile: the model was compiled.
	Compile
	// KVCacheInit: memory was measured and the KV cache allocated.
	KVCacheInit
	// GraphCapture: graphs were captured.
	GraphCapture
	// Warmup: from the graphs to an engine that serves.
	Warmup
	// CrashLoop: a container failed, and the kubelet waited before it started it
	// again.
	CrashLoop
	// Readiness: from an engine that serves to a pod that is Ready.
	Readiness
	// FirstToken: from ready to the first token. It begins where the root ends.
	FirstToken
	// Unattributed: a gap that nothing known explains.
	Unattributed

	stages
)

var stageNames = [stages]string{
	"replica.cold_start", "pod", "attempt",
	"decision", "scheduling", "node.provision", "dra.allocate", "volume.attach", "sandbox",
	"image.pull_wait", "image.pull", "image.pull_back_off", "container.create", "container.init",
	"model.download", "engine.boot", "weights.load", "compile", "kv_cache.init", "graph.capture", "warmup",
	"crash_loop", "ready", "first_token", "unattributed",
}

// String is the stage's name, as spans and the stage attribute have it.
func (s Stage) String() string { return stageNames[s] }

// Holds tells that the span is of other spans' parents, and no stage.
func (s Stage) Holds() bool { return s <= AttemptOf }

// Stages are all stages, in order.
func Stages() []Stage {
	all := make([]Stage, 0, stages-Decision)
	for s := Decision; s < stages; s++ {
		all = append(all, s)
	}
	return all
}
