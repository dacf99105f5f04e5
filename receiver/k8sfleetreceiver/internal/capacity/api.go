// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package capacity accounts for replicas and GPUs by what Kubernetes alone can know: what was asked for, what is there,
// who holds it, and why the rest waits.
//
// A [Store] holds the cluster's objects as the informers deliver them, and a [Report] is the closed account of one
// moment. The package reads no clock and starts nothing.
package capacity

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Options say which pods are the fleet's and how the cluster spells what is asked about. The zero value works: each
// field that is left empty has the default named with it.
type Options struct {
	// Selected tells whether a pod, or the pod that a template would make (namespace, labels, annotations and spec), is
	// of the fleet. GPUs of other pods count as [Other]. nil: every pod that asks for a GPU or a claim.
	Selected func(*corev1.Pod) bool
	// Model names the model that a pod, or the pod that a template would make, serves; "" where it is not known. nil: not known.
	Model func(*corev1.Pod) string
	// Group names the replica group of a pod within its workload and how many pods make it whole (0: not known); "" for a
	// pod that is a replica by itself. nil: the labels and annotations of LeaderWorkerSet.
	Group func(*corev1.Pod) (key string, size int)
	// GPUResources are the extended resources that count as GPUs; one that ends in "*" stands for all that begin so.
	// Empty: [DefaultGPUResources].
	GPUResources []string
	// GPUDrivers are the DRA drivers whose devices are GPUs. Empty: [DefaultGPUDrivers].
	GPUDrivers []string
	// NodePoolLabels and GPUModelLabels are the labels of a node to look at, the first that is there wins.
	// Empty: [DefaultNodePoolLabels], [DefaultGPUModelLabels].
	NodePoolLabels, GPUModelLabels []string
	// MaxObjects bounds how many objects of one kind are held (0: 20,000), MaxSeries how many rows one table of a Report
	// has (0: 2,000). What is beyond is counted in [Overflow].
	MaxObjects, MaxSeries int
}

// Workload is an owner of pods, with its replicas counted at four places of their way. A replica group counts as one
// replica, and is at a place when all of its pods are.
type Workload struct {
	Identity
	// Source is who asked for the replicas: hpa, keda, deployment, replicaset, statefulset, leaderworkerset; "" where
	// nothing that was seen asks for a number.
	Source string
	// Desired is how many replicas were asked for, -1 where that is not known.
	Desired int
	// Created, Bound and Ready replicas: their pods exist, have a node, are ready. Pods that ended or are being deleted
	// do not count.
	Created, Bound, Ready int
	// Gaps are the replicas that stand before each place, by reason.
	Gaps []Gap
}

// Gap is a number of replicas that are missing at one place for one reason.
type Gap struct {
	// Missing is where: "created" (asked for, but no pod), "bound" (a pod without a node), "ready" (bound, not ready).
	Missing string
	// Reason is why. For "created": quota, admission, ordered (a StatefulSet waits for the pod before), incomplete (a group
	// has some of its pods), other. For "bound": those of [Pending]. For "ready": preparing (volumes, claims, sandbox),
	// pulling, pull_failed, config, init, starting, crash_loop.
	Reason   string
	Replicas int
	// Age is how long the one that waits longest has waited.
	Age time.Duration
}

// Identity is what a series of a workload is told by. It is spelled as on the series of the engines, so that they join.
type Identity struct {
	Namespace, Kind, Workload, Model string
	// Overflow marks the row that stands for all workloads beyond the limit.
	Overflow bool
}

// Pool is an InferencePool.
type Pool struct {
	Namespace, Name string
	// Members are the replicas that its selector matches: how many ought to be heard of. Ready are those that are ready.
	Members, Ready int
}

// Place is where GPUs are and what they are.
type Place struct {
	// NodePool and GPUModel are "" where no label tells them. Blanks of a model are dashes, as in the labels of nodes.
	NodePool, GPUModel string
	// Overflow marks the row that stands for all places beyond the limit.
	Overflow bool
}

// GPUs are those of one node pool and one model.
type GPUs struct {
	Place
	// Installed is what nodes and complete DRA pools tell as present, Allocatable what of it is healthy and carries no
	// taint of a device, Requested what the pods on these nodes asked for.
	Installed, Allocatable, Requested int
}

// State is what a GPU is doing as far as Kubernetes can know.
type State string

// The states of an installed GPU. Each is in exactly one; where several would fit, the first does.
const (
	// AllocatedReady GPUs are held by a ready pod of the fleet.
	AllocatedReady State = "allocated_ready"
	// AllocatedNotReady GPUs are held by a pod of the fleet that is bound and not ready.
	AllocatedNotReady State = "allocated_not_ready"
	// Other GPUs are held by pods outside of the fleet, by pods that are being deleted, or by claims that no pod uses.
	Other State = "other"
	// Draining GPUs are held by nobody on a node that is cordoned or about to be removed.
	Draining State = "draining"
	// Tainted GPUs are held by nobody and cannot be had: the device, or its node, has a taint that no pod of the fleet
	// tolerates, or the device plugin tells it as unhealthy.
	Tainted State = "tainted"
	// Fragmented GPUs are free, but on a node that has fewer of them than the smallest pending or declared replica wants:
	// the smallest GPU request of one pod, over the fleet's pending pods, its running pods and the pod templates of its
	// workloads, those scaled to zero included, for the same resource. Other resources of the node are not looked at.
	Fragmented State = "fragmented"
	// Free GPUs can be had.
	Free State = "free"
)

// States are all states, in the order in which they are looked at.
var States = []State{AllocatedReady, AllocatedNotReady, Other, Draining, Tainted, Fragmented, Free}

// StateCount is how many installed GPUs of a place are in a state. Those that are held name who holds them.
type StateCount struct {
	Place
	Identity
	State State
	GPUs  int
}

// Pending are pods that ask for GPUs and have no node. They are demand, apart from the states of what is installed.
type Pending struct {
	Identity
	// Reason is one of: insufficient (too few GPUs are to be had), fragmented (enough, but on no node enough), taint,
	// quota, claim, volume, gated, other.
	Reason string
	Pods   int
	GPUs   int
	// Oldest is the age of the pod that waits longest.
	Oldest time.Duration
}

// Devices are those of one DRA pool in its highest generation, once all of its slices were seen. A device and its
// partitions are one device.
type Devices struct {
	Driver, Pool string
	// Complete tells whether all slices of the highest generation were seen. Where they were not, the three counts are 0
	// and mean nothing.
	Complete bool
	// Installed are all, Allocatable those without a NoSchedule or NoExecute taint, Tainted the others.
	Installed, Allocatable, Tainted int
	// Classes are the allocated devices by the class that the claim asked for. A partition counts as the share of its
	// device that it takes: the largest of its counters, or one of the device's partitions where it tells no counters.
	Classes map[string]float64
	// Shared is how much of the capacity of shared devices their claims consume, by the capacity's name, as a share.
	Shared map[string]float64
}

// Claims are resource claims of one class in one state.
type Claims struct {
	Class string
	// State is pending (nothing allocated), allocated (allocated, used by no pod) or reserved (used by a pod).
	State string
	// Count are the claims, Oldest how long the oldest has been in the state; unknown (-1) where no time is told.
	Count  int
	Oldest time.Duration
}

// Report is the account of one moment. Tables are sorted by their keys.
type Report struct {
	Workloads []Workload
	Pools     []Pool
	GPUs      []GPUs
	States    []StateCount
	Pending   []Pending
	Devices   []Devices
	Claims    []Claims
	Overflow  Overflow
}

// Overflow counts what the limits kept out.
type Overflow struct {
	// Objects were refused by the store until now, each time that they were told.
	Objects int
	// Rows are those of this report that were folded into one, or left out.
	Rows int
	// Excess GPUs are asked for by pods of a node beyond what is installed there.
	Excess int
}
