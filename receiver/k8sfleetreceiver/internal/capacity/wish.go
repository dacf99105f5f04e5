// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// The marks of LeaderWorkerSet on its pods.
const (
	leaderWorkerSetKind  = "LeaderWorkerSet"
	leaderWorkerSetLabel = "leaderworkerset.sigs.k8s.io/name"
	groupIndexLabel      = "leaderworkerset.sigs.k8s.io/group-index"
	groupSizeAnnotation  = "leaderworkerset.sigs.k8s.io/size"
)

// kedaLabel is on the autoscaler that KEDA makes of a ScaledObject.
const kedaLabel = "scaledobject.keda.sh/name"

// ref is who an object is.
type ref struct{ kind, namespace, name string }

func refOf(kind string, o metav1.Object) ref { return ref{kind, o.GetNamespace(), o.GetName()} }

// controller is who owns an object, or another if nobody does.
func controller(o metav1.Object, otherwise ref) ref {
	if c := metav1.GetControllerOfNoCopy(o); c != nil {
		return ref{c.Kind, o.GetNamespace(), c.Name}
	}
	return otherwise
}

// wish is a number of replicas that somebody asked for, and of what.
type wish struct {
	source    string
	owner     ref // zero: nobody
	replicas  int
	ordered   bool // one pod is made after the other
	templates []*member
	failure   string    // why pods could not be made, in the words of the controller; "" if they could
	since     time.Time // of the failure
}

// scaler is an autoscaler.
type scaler struct {
	source  string // hpa, keda
	target  ref
	desired int
}

// selector is that of an InferencePool.
type selector map[string]string

func (s *Store) wish(source string, o metav1.Object, replicas *int32, templates ...corev1.PodTemplateSpec) *wish {
	w := &wish{source: source, owner: controller(o, ref{}), replicas: 1}
	if replicas != nil {
		w.replicas = int(*replicas)
	}
	for i := range templates {
		p := &corev1.Pod{ObjectMeta: templates[i].ObjectMeta, Spec: templates[i].Spec}
		p.Namespace = o.GetNamespace()
		w.templates = append(w.templates, s.member(p))
	}
	return w
}

func (s *Store) deployment(o *appsv1.Deployment) *wish {
	w := s.wish("deployment", o, o.Spec.Replicas, o.Spec.Template)
	for _, c := range o.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			w.failure, w.since = cmp.Or(c.Message, c.Reason), c.LastTransitionTime.Time
		}
	}
	return w
}

func (s *Store) replicaSet(o *appsv1.ReplicaSet) *wish {
	w := s.wish("replicaset", o, o.Spec.Replicas, o.Spec.Template)
	for _, c := range o.Status.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
			w.failure, w.since = cmp.Or(c.Message, c.Reason), c.LastTransitionTime.Time
		}
	}
	return w
}

func (s *Store) statefulSet(o *appsv1.StatefulSet) *wish {
	w := s.wish("statefulset", o, o.Spec.Replicas, o.Spec.Template)
	w.ordered = o.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
	return w
}

// leaderWorkerSpec is what is read of a LeaderWorkerSet's spec.
type leaderWorkerSpec struct {
	Spec struct {
		Replicas             *int32 `json:"replicas"`
		LeaderWorkerTemplate struct {
			LeaderTemplate *corev1.PodTemplateSpec `json:"leaderTemplate"`
			WorkerTemplate corev1.PodTemplateSpec  `json:"workerTemplate"`
		} `json:"leaderWorkerTemplate"`
	} `json:"spec"`
}

func (s *Store) leaderWorkerSet(o *unstructured.Unstructured) (*wish, bool) {
	var of leaderWorkerSpec
	if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &of) != nil {
		return nil, false
	}
	templates := []corev1.PodTemplateSpec{of.Spec.LeaderWorkerTemplate.WorkerTemplate}
	if leader := of.Spec.LeaderWorkerTemplate.LeaderTemplate; leader != nil {
		templates = append(templates, *leader)
	}
	return s.wish("leaderworkerset", o, of.Spec.Replicas, templates...), true
}

// leaderWorkerGroup is the group of a LeaderWorkerSet's pod.
func leaderWorkerGroup(p *corev1.Pod) (string, int) {
	if p.Labels[leaderWorkerSetLabel] == "" {
		return "", 0
	}
	size, err := strconv.Atoi(p.Annotations[groupSizeAnnotation])
	if err != nil {
		size = 0
	}
	return p.Labels[groupIndexLabel], size
}

func scalerOf(o *autoscalingv2.HorizontalPodAutoscaler) scaler {
	source := "hpa"
	if _, keda := o.Labels[kedaLabel]; keda {
		source = "keda"
	}
	target := o.Spec.ScaleTargetRef
	return scaler{source, ref{target.Kind, o.Namespace, target.Name}, int(o.Status.DesiredReplicas)}
}

// selectorOf reads an InferencePool's selector in both of its forms: v1 has
// matchLabels, v1alpha2 the labels themselves.
func selectorOf(o *unstructured.Unstructured) selector {
	labels, _, err := unstructured.NestedStringMap(o.Object, "spec", "selector", "matchLabels")
	if err != nil || labels == nil {
		labels, _, _ = unstructured.NestedStringMap(o.Object, "spec", "selector")
	}
	return labels
}

func (l selector) matches(p *corev1.Pod) bool {
	for key, value := range l {
		if p.Labels[key] != value {
			return false
		}
	}
	return len(l) > 0
}

// owner is the workload that a pod is of: who asks for replicas, else who made it,
// else the pod itself.
func (s *Store) owner(p *corev1.Pod) ref {
	if name := p.Labels[leaderWorkerSetLabel]; name != "" {
		return ref{leaderWorkerSetKind, p.Namespace, name}
	}
	made := controller(p, refOf("Pod", p))
	w := s.wishes[made]
	switch {
	case w == nil && made.kind == "ReplicaSet":
		// Not seen: a Deployment names its ReplicaSets by itself and the hash of the template.
		if of, ok := strings.CutSuffix(made.name, "-"+p.Labels[appsv1.DefaultDeploymentUniqueLabelKey]); ok && of != "" {
			return ref{"Deployment", made.namespace, of}
		}
	case w == nil || w.owner == ref{}:
	case made.kind == "ReplicaSet" || s.wishes[w.owner] != nil:
		return w.owner
	}
	return made
}
