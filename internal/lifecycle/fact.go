// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	"github.com/llmfleet/llmfleet/internal/window"
)

// Fact is one thing that happened to a pod, at a time that its source told. A
// fact told twice is one fact: (Pod, Name, Container, Attempt, At) tells facts
// apart.
type Fact struct {
	// Pod is the pod's uid.
	Pod  string
	Name Name
	// At is when it happened, by Clock: the source's own field, never the time at
	// which it was learned.
	At window.Instant
	// Grain is how coarse At is: a second for what Kubernetes keeps in
	// metav1.Time, 0 for finer.
	Grain time.Duration
	// Clock is who told At.
	Clock Clock
	// Learned is when a collector was told, by its own clock; 0 if what was told
	// was no news: a list, a replay, a file read from its beginning. Only news
	// show how far a clock is off.
	Learned window.Instant

	// Count is how often it has happened since At, and Until when it did last: for
	// what repeats, as back-offs. 0 and 1 are once. A fact told again with a later
	// Until is the same fact.
	Count int
	Until window.Instant

	// Container is empty for facts of the whole pod.
	Container string
	// Attempt is the container's restart count when the fact happened, -1 if the
	// source does not know it: then At says which attempt it was.
	Attempt int
	// Took is how long that took which ended at At, 0 if it was not told.
	Took time.Duration
	// Waited is how long it waited before Took began, 0 if it was not told.
	Waited time.Duration
	// Reason is a short word of the source: Unschedulable, OOMKilled, hpa.
	Reason string
	// Message is the source's sentence, for people.
	Message string
	// Cached says that there was nothing to do: the image was present already, the
	// graph compiled already.
	Cached bool
	// ExitCode is a container's, in ContainerExited.
	ExitCode int
	// Copy tells apart the ranks of one engine that each tell the same stage, as
	// the process id or the rank of a log line's prefix.
	Copy string
	// About is who the pod is; facts that do not know leave it nil.
	About *Pod
}

// Pod is what is known of a pod besides times. Empty fields are not known.
type Pod struct {
	Name, Namespace, Node string
	// Workload is who made it: the outermost owner, not the ReplicaSet.
	WorkloadKind, Workload string
	// Model is the name that the engine serves it under, Engine which engine it is.
	Model, Engine string
	GPUModel      string
	// GPUs is how many it asks for, as extended resource or by claims.
	GPUs int
	// Group is the replica group that the pod is one of: the group's name with its
	// namespace, "" for a replica of one pod.
	Group string
	// Leader is the uid of the group's leader, "" while it is not known. The
	// leader of a LeaderWorkerSet has worker index 0, of Ray the node type head.
	Leader string
	// GroupSize is how many pods the group has, 0 if it is not known.
	GroupSize int
	// Containers are those that the pod waits for.
	Containers []Container
}

// Container is one of a pod's containers.
type Container struct {
	Name string
	Role ContainerRole
}

// ContainerRole says how a pod waits for a container.
type ContainerRole uint8

const (
	// Main containers run beside each other, and the pod is ready when they are.
	Main ContainerRole = iota
	// Init containers run one after the other, before the main ones.
	Init
	// Sidecar is an init container that is restarted always: it is waited for until
	// it has started, not until it ends.
	Sidecar
)

// Clock is the clock that told a time. Two facts of one clock are as far apart as
// they say; facts of two clocks are so only as far as the clocks agree.
type Clock struct {
	Kind ClockKind
	// Of is the node's name, or the pod's uid for Engine.
	Of string
}

// ClockKind says what sort of machine a clock belongs to.
type ClockKind uint8

const (
	// ControlPlane is the clock of the API server, the scheduler and the
	// controllers. All others are compared with it.
	ControlPlane ClockKind = iota
	// Node is the clock of a kubelet.
	Node
	// Engine is the clock of what runs in the container.
	Engine
)

// Link is a span of another trace that tells of a pod's start.
type Link struct {
	Trace [16]byte
	Span  [8]byte
	Name  string
}
