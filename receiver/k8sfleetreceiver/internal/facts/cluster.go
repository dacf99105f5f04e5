// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Cluster is what is known of the objects around pods. Objects are kept as they
// are given, and are not changed. Not safe for concurrent use.
type Cluster struct {
	options    Options
	nodes      map[string]*corev1.Node
	nodeClaims map[string]nodeClaim // by node
	claims     map[types.NamespacedName]*resourcev1.ResourceClaim
	workloads  map[ref]workload
	scalers    map[ref]scaler               // by whom they scale
	leaders    map[string]map[string]string // by group: of pods that lead it, their uids by name
}

// Options say how pods and nodes tell what they are.
type Options struct {
	// GPUResources are the names of resources that are accelerators; a * at the end
	// stands for any.
	GPUResources []string
	// ModelLabels of pods name the model, GPUModelLabels of nodes the accelerator.
	ModelLabels, GPUModelLabels []string
	// GroupLabel of pods names the replica group, besides those of
	// LeaderWorkerSet and Ray; "" for none.
	GroupLabel string
}

// ref is who an object is.
type ref struct{ kind, namespace, name string }

// workload is what makes pods, or makes what makes them.
type workload struct {
	owner ref // of it; zero: nobody is
	// asked is when its number of replicas was set last, and manager by whom; zero
	// if that is not known.
	asked   metav1.Time
	manager string
	size    int // of its groups; 0: it has none
}

// scaler is an autoscaler.
type scaler struct {
	source string // hpa, keda
	last   *metav1.Time
}

// nodeClaim is when a node was asked for, and by whom.
type nodeClaim struct {
	name string
	made metav1.Time
}

// New returns a cluster of which nothing is known.
func New(o Options) *Cluster {
	return &Cluster{
		options: o, nodes: map[string]*corev1.Node{}, nodeClaims: map[string]nodeClaim{},
		claims: map[types.NamespacedName]*resourcev1.ResourceClaim{}, workloads: map[ref]workload{},
		scalers: map[ref]scaler{}, leaders: map[string]map[string]string{},
	}
}

// Set takes an object, or its newer version, into account. It ignores those of
// kinds that tell nothing.
func (c *Cluster) Set(obj any) {
	switch o := obj.(type) {
	case *corev1.Node:
		c.nodes[o.Name] = o
	case *resourcev1.ResourceClaim:
		c.claims[types.NamespacedName{Namespace: o.Namespace, Name: o.Name}] = o
	case *corev1.Pod:
		c.workloads[refOf("Pod", o)] = workload{owner: ownerOf(o)}
		c.lead(o)
	case *appsv1.ReplicaSet: // its number of replicas is its owner's wish
		c.workloads[refOf("ReplicaSet", o)] = workload{owner: ownerOf(o)}
	case *appsv1.Deployment:
		c.workloads[refOf("Deployment", o)] = workloadOf(o)
	case *appsv1.StatefulSet:
		c.workloads[refOf("StatefulSet", o)] = workloadOf(o)
	case *autoscalingv2.HorizontalPodAutoscaler:
		c.scalers[targetOf(o)] = scalerOf(o)
	case *unstructured.Unstructured:
		c.setCustom(o)
	}
}

// setCustom takes an object of a custom resource into account.
func (c *Cluster) setCustom(o *unstructured.Unstructured) {
	switch o.GetKind() {
	case "LeaderWorkerSet":
		w := workloadOf(o)
		size, _, _ := unstructured.NestedInt64(o.Object, "spec", "leaderWorkerTemplate", "size")
		w.size = int(size)
		c.workloads[refOf(o.GetKind(), o)] = w
	case "NodeClaim":
		if node, _, _ := unstructured.NestedString(o.Object, "status", "nodeName"); node != "" {
			c.nodeClaims[node] = nodeClaim{name: o.GetName(), made: o.GetCreationTimestamp()}
		}
	}
}

// Delete forgets an object.
func (c *Cluster) Delete(obj any) {
	switch o := obj.(type) {
	case *corev1.Node:
		delete(c.nodes, o.Name)
	case *resourcev1.ResourceClaim:
		delete(c.claims, types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
	case *corev1.Pod:
		delete(c.workloads, refOf("Pod", o))
		c.unlead(o)
	case *appsv1.ReplicaSet:
		delete(c.workloads, refOf("ReplicaSet", o))
	case *appsv1.Deployment:
		delete(c.workloads, refOf("Deployment", o))
	case *appsv1.StatefulSet:
		delete(c.workloads, refOf("StatefulSet", o))
	case *autoscalingv2.HorizontalPodAutoscaler:
		delete(c.scalers, targetOf(o))
	case *unstructured.Unstructured:
		delete(c.workloads, refOf(o.GetKind(), o))
		for node, claim := range c.nodeClaims {
			if o.GetKind() == "NodeClaim" && claim.name == o.GetName() {
				delete(c.nodeClaims, node)
			}
		}
	}
}

func refOf(kind string, o metav1.Object) ref {
	return ref{kind: kind, namespace: o.GetNamespace(), name: o.GetName()}
}

func ownerOf(o metav1.Object) ref {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil {
		return ref{}
	}
	return ref{kind: owner.Kind, namespace: o.GetNamespace(), name: owner.Name}
}

// workloadOf reads who set the number of replicas, from what was kept of
// managedFields.
func workloadOf(o metav1.Object) workload {
	w := workload{owner: ownerOf(o)}
	for _, e := range o.GetManagedFields() {
		if e.Time != nil {
			w.asked, w.manager = *e.Time, e.Manager
		}
	}
	return w
}

func targetOf(o *autoscalingv2.HorizontalPodAutoscaler) ref {
	return ref{kind: o.Spec.ScaleTargetRef.Kind, namespace: o.Namespace, name: o.Spec.ScaleTargetRef.Name}
}

// kedaLabel is on an HPA that KEDA made.
const kedaLabel = "scaledobject.keda.sh/name"

func scalerOf(o *autoscalingv2.HorizontalPodAutoscaler) scaler {
	s := scaler{source: "hpa", last: o.Status.LastScaleTime}
	if _, ok := o.Labels[kedaLabel]; ok {
		s.source = "keda"
	}
	return s
}

// outermost is who made a pod in the end, and who on the way there was asked for
// replicas: the outermost of those.
func (c *Cluster) outermost(p *corev1.Pod) (owner, asked ref) {
	const most = 8 // owners of owners: who owns itself ends here
	of := ownerOf(p)
	for range most {
		if of == (ref{}) {
			break
		}
		owner = of
		w, known := c.workloads[of]
		if !known {
			w.owner = deploymentOf(of, p)
		}
		if !w.asked.IsZero() {
			asked = of
		}
		of = w.owner
	}
	return owner, asked
}

// deploymentOf is the Deployment of a ReplicaSet that is not known, which has the
// hash of the pod's template at the end of its name; of others there is none.
func deploymentOf(owner ref, p *corev1.Pod) ref {
	hash := p.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	if name, ok := strings.CutSuffix(owner.name, "-"+hash); ok && hash != "" && owner.kind == "ReplicaSet" {
		return ref{kind: "Deployment", namespace: owner.namespace, name: name}
	}
	return ref{}
}

// Bounds of when a wish for replicas can have been for a pod.
const (
	// wishBefore is how long before the pod's creation it can have been told: who
	// is made later replaces one that was there.
	wishBefore = 10 * time.Minute
	// wishAfter is how far both times, of whole seconds, can be off.
	wishAfter = time.Second
	// scalerOff is how far apart a scaler and what it scales may tell of one thing.
	scalerOff = 5 * time.Second
)

// desired is when and by whom the replica was asked for that a pod is.
func (c *Cluster) desired(p *corev1.Pod) (at metav1.Time, source string, known bool) {
	_, asked := c.outermost(p)
	w := c.workloads[asked]
	before := p.CreationTimestamp.Sub(w.asked.Time)
	if w.asked.IsZero() || before > wishBefore || before < -wishAfter {
		return at, "", false
	}
	source = strings.ToLower(asked.kind)
	if s, ok := c.scalers[asked]; ok && s.last != nil && s.last.Sub(w.asked.Time).Abs() <= scalerOff {
		source = s.source
	}
	if strings.HasPrefix(w.manager, "keda") { // from none to one, KEDA scales by itself
		source = "keda"
	}
	return w.asked, source, true
}
