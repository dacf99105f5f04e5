// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// What counts as a GPU, and where its pool and model are written, unless told otherwise.
var (
	DefaultGPUResources = []string{
		"nvidia.com/gpu", "nvidia.com/mig-*", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe",
		"google.com/tpu", "habana.ai/gaudi", "aws.amazon.com/neuron",
	}
	DefaultGPUDrivers = []string{
		"gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com", "gaudi.intel.com", "tpu.google.com", "neuron.aws.com",
	}
	DefaultNodePoolLabels = []string{
		"cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "kubernetes.azure.com/agentpool", "karpenter.sh/nodepool",
	}
	DefaultGPUModelLabels = []string{
		"nvidia.com/gpu.product", "amd.com/gpu.product-name", "gpu.intel.com/product", "cloud.google.com/gke-accelerator",
		"cloud.google.com/gke-tpu-accelerator", "karpenter.k8s.aws/instance-gpu-name",
	}
)

const (
	defaultMaxObjects = 20_000
	defaultMaxSeries  = 2_000
)

// Store holds the objects of a cluster. It is safe for concurrent use. It keeps the
// pointers it is given and never writes to what they point at, as informers demand
// of their readers.
type Store struct {
	mu      sync.Mutex
	options Options
	refused int

	pods       map[types.NamespacedName]*member
	nodes      map[types.NamespacedName]*corev1.Node
	claims     map[types.NamespacedName]*resourcev1.ResourceClaim
	slices     map[types.NamespacedName]*resourcev1.ResourceSlice
	classes    map[types.NamespacedName]*resourcev1.DeviceClass
	taintRules map[types.NamespacedName]*resourcev1.DeviceTaintRule
	scalers    map[types.NamespacedName]scaler
	selectors  map[types.NamespacedName]selector
	wishes     map[ref]*wish

	short map[ref]time.Time // since when a workload has fewer pods than were asked for
}

// member is a pod and what the options say of it.
type member struct {
	*corev1.Pod
	selected bool
	model    string
	group    string
	size     int
}

// New returns an empty store.
func New(o Options) *Store {
	if len(o.GPUResources) == 0 {
		o.GPUResources = DefaultGPUResources
	}
	if len(o.GPUDrivers) == 0 {
		o.GPUDrivers = DefaultGPUDrivers
	}
	if len(o.NodePoolLabels) == 0 {
		o.NodePoolLabels = DefaultNodePoolLabels
	}
	if len(o.GPUModelLabels) == 0 {
		o.GPUModelLabels = DefaultGPUModelLabels
	}
	if o.Group == nil {
		o.Group = leaderWorkerGroup
	}
	o.MaxObjects, o.MaxSeries = cmp.Or(o.MaxObjects, defaultMaxObjects), cmp.Or(o.MaxSeries, defaultMaxSeries)
	return &Store{
		options:    o,
		pods:       map[types.NamespacedName]*member{},
		nodes:      map[types.NamespacedName]*corev1.Node{},
		claims:     map[types.NamespacedName]*resourcev1.ResourceClaim{},
		slices:     map[types.NamespacedName]*resourcev1.ResourceSlice{},
		classes:    map[types.NamespacedName]*resourcev1.DeviceClass{},
		taintRules: map[types.NamespacedName]*resourcev1.DeviceTaintRule{},
		scalers:    map[types.NamespacedName]scaler{},
		selectors:  map[types.NamespacedName]selector{},
		wishes:     map[ref]*wish{},
		short:      map[ref]time.Time{},
	}
}

// Set takes an object, or its newer version, into the account: a Pod, Node,
// Deployment, ReplicaSet, StatefulSet, HorizontalPodAutoscaler, ResourceClaim,
// ResourceSlice, DeviceClass or DeviceTaintRule, or the unstructured form of a
// LeaderWorkerSet or InferencePool. It returns false for an object of another kind
// and for one beyond the limit. All pods that ask for a GPU should be told, those
// outside of the fleet too: what they hold would look free.
func (s *Store) Set(object any) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o := object.(type) {
	case *corev1.Pod:
		return s.setPod(o)
	case *corev1.Node:
		return put(s, s.nodes, keyOf(o), o)
	case *resourcev1.ResourceClaim:
		return put(s, s.claims, keyOf(o), o)
	case *resourcev1.ResourceSlice:
		return put(s, s.slices, keyOf(o), o)
	case *resourcev1.DeviceClass:
		return put(s, s.classes, keyOf(o), o)
	case *resourcev1.DeviceTaintRule:
		return put(s, s.taintRules, keyOf(o), o)
	case *autoscalingv2.HorizontalPodAutoscaler:
		return put(s, s.scalers, keyOf(o), scalerOf(o))
	case *appsv1.Deployment:
		return s.setWish(refOf("Deployment", o), s.deployment(o))
	case *appsv1.ReplicaSet:
		return s.setWish(refOf("ReplicaSet", o), s.replicaSet(o))
	case *appsv1.StatefulSet:
		return s.setWish(refOf("StatefulSet", o), s.statefulSet(o))
	case *unstructured.Unstructured:
		return s.setCustom(o)
	}
	return false
}

// setPod keeps a pod if it is of the fleet, or might hold GPUs.
func (s *Store) setPod(p *corev1.Pod) bool {
	m := s.member(p)
	if !m.selected && len(p.Spec.ResourceClaims) == 0 && p.Status.ExtendedResourceClaimStatus == nil && len(s.extended(p)) == 0 {
		delete(s.pods, keyOf(p))
		return true
	}
	return put(s, s.pods, keyOf(p), m)
}

// setWish keeps a wish for pods of the fleet.
func (s *Store) setWish(of ref, w *wish) bool {
	if !slices.ContainsFunc(w.templates, func(m *member) bool { return m.selected }) {
		delete(s.wishes, of)
		return true
	}
	return put(s, s.wishes, of, w)
}

func (s *Store) setCustom(o *unstructured.Unstructured) bool {
	switch o.GetKind() {
	case leaderWorkerSetKind:
		w, ok := s.leaderWorkerSet(o)
		return ok && s.setWish(refOf(o.GetKind(), o), w)
	case "InferencePool":
		return put(s, s.selectors, keyOf(o), selectorOf(o))
	}
	return false
}

// Delete forgets an object.
func (s *Store) Delete(object any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o := object.(type) {
	case *corev1.Pod:
		delete(s.pods, keyOf(o))
	case *corev1.Node:
		delete(s.nodes, keyOf(o))
	case *resourcev1.ResourceClaim:
		delete(s.claims, keyOf(o))
	case *resourcev1.ResourceSlice:
		delete(s.slices, keyOf(o))
	case *resourcev1.DeviceClass:
		delete(s.classes, keyOf(o))
	case *resourcev1.DeviceTaintRule:
		delete(s.taintRules, keyOf(o))
	case *autoscalingv2.HorizontalPodAutoscaler:
		delete(s.scalers, keyOf(o))
	case *appsv1.Deployment:
		delete(s.wishes, refOf("Deployment", o))
	case *appsv1.ReplicaSet:
		delete(s.wishes, refOf("ReplicaSet", o))
	case *appsv1.StatefulSet:
		delete(s.wishes, refOf("StatefulSet", o))
	case *unstructured.Unstructured:
		delete(s.wishes, refOf(o.GetKind(), o))
		if o.GetKind() == "InferencePool" {
			delete(s.selectors, keyOf(o))
		}
	}
}

// Report closes the account of a moment. Ages are those at now; none is negative.
func (s *Store) Report(now time.Time) Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.open(now)
	a.takeDevices()
	a.takeNodes()
	a.takePods()
	a.settleNodes()
	a.tellPending()
	a.tellWorkloads()
	a.tellInferencePools()
	a.tellClaims()
	a.report.Overflow.Objects = s.refused
	return a.report
}

// put keeps a value under its key unless that is new and the limit reached.
func put[K comparable, V any](s *Store, in map[K]V, key K, value V) bool {
	if _, known := in[key]; !known && len(in) >= s.options.MaxObjects {
		s.refused++
		return false
	}
	in[key] = value
	return true
}

func keyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// member is a pod, or the pod of a template, with what the options say of it.
func (s *Store) member(p *corev1.Pod) *member {
	m := &member{Pod: p}
	if s.options.Selected == nil {
		m.selected = len(p.Spec.ResourceClaims) > 0 || len(s.extended(p)) > 0
	} else {
		m.selected = s.options.Selected(p)
	}
	if s.options.Model != nil {
		m.model = s.options.Model(p)
	}
	m.group, m.size = s.options.Group(p)
	return m
}

// active tells whether a pod runs or waits to, and is not on its way out.
func (m *member) active() bool { return m.DeletionTimestamp == nil && !m.ended() }

// ended tells whether a pod has given back what it held.
func (m *member) ended() bool {
	return m.Status.Phase == corev1.PodSucceeded || m.Status.Phase == corev1.PodFailed
}

func (m *member) bound() bool { return m.Spec.NodeName != "" }

func (m *member) ready() bool {
	c := condition(m.Pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

func condition(p *corev1.Pod, of corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == of {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}
