// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package objects makes of what the API server sends what is kept in memory: typed
// objects with the fields that are used, and no others.
package objects

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Trim makes of an unstructured object a typed one of the kinds of Kubernetes
// itself, and keeps of all what is used. Of managedFields it keeps at most one
// entry, without fields: who set last what the kind was asked for, and when; that
// is spec.replicas, and of a ResourceClaim status.allocation. It is the transform
// of all informers.
func Trim(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil // trimmed before, or the mark of a deletion that was missed
	}
	keep := make([]metav1.ManagedFieldsEntry, 0, 1)
	if e := lastSet(u.GetManagedFields(), deciding(u.GetKind())...); e != nil {
		keep = append(keep, metav1.ManagedFieldsEntry{Manager: e.Manager, Time: e.Time, Subresource: e.Subresource})
	}
	u.SetManagedFields(nil)
	typed := typeOf(u.GroupVersionKind().Group, u.GetKind())
	if typed == nil {
		u.SetManagedFields(keep)
		return u, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed); err != nil {
		return nil, fmt.Errorf("%s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
	}
	typed.SetManagedFields(keep)
	typed.SetAnnotations(annotations(typed.GetAnnotations()))
	trim(typed)
	return typed, nil
}

// object is a typed object of the API.
type object interface {
	metav1.Object
	runtime.Object
}

// typeOf is an empty object of a kind; nil for those of custom resources.
func typeOf(group, kind string) object {
	switch group + "/" + kind {
	case "/Pod":
		return new(corev1.Pod)
	case "/Event":
		return new(corev1.Event)
	case "/Node":
		return new(corev1.Node)
	case "apps/Deployment":
		return new(appsv1.Deployment)
	case "apps/ReplicaSet":
		return new(appsv1.ReplicaSet)
	case "apps/StatefulSet":
		return new(appsv1.StatefulSet)
	case "autoscaling/HorizontalPodAutoscaler":
		return new(autoscalingv2.HorizontalPodAutoscaler)
	case "resource.k8s.io/ResourceClaim":
		return new(resourcev1.ResourceClaim)
	case "resource.k8s.io/ResourceSlice":
		return new(resourcev1.ResourceSlice)
	case "resource.k8s.io/DeviceClass":
		return new(resourcev1.DeviceClass)
	case "resource.k8s.io/DeviceTaintRule":
		return new(resourcev1.DeviceTaintRule)
	}
	return nil
}

func trim(obj object) {
	switch o := obj.(type) {
	case *corev1.Pod:
		trimPod(&o.Spec)
		o.Status.PodIP, o.Status.PodIPs, o.Status.HostIP, o.Status.HostIPs = "", nil, "", nil
		o.Status.EphemeralContainerStatuses = nil
	case *corev1.Node:
		o.Status.Images, o.Status.Addresses, o.Status.VolumesInUse, o.Status.VolumesAttached = nil, nil, nil, nil
	case *appsv1.Deployment:
		trimPod(&o.Spec.Template.Spec)
	case *appsv1.StatefulSet:
		trimPod(&o.Spec.Template.Spec)
		o.Spec.VolumeClaimTemplates = nil
	case *appsv1.ReplicaSet:
		trimPod(&o.Spec.Template.Spec)
	}
}

// trimPod keeps of a pod's specification where it may run, what it asks for and
// what its containers are told to run.
func trimPod(s *corev1.PodSpec) {
	s.Volumes, s.HostAliases, s.ImagePullSecrets, s.SecurityContext, s.DNSConfig = nil, nil, nil, nil, nil
	s.EphemeralContainers = nil
	for _, containers := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range containers {
			c := &containers[i]
			containers[i] = corev1.Container{
				Name: c.Name, Image: c.Image, Command: c.Command, Args: c.Args, Resources: c.Resources, RestartPolicy: c.RestartPolicy,
			}
		}
	}
}

// GroupSizeAnnotation is how many pods a group of a LeaderWorkerSet has.
const GroupSizeAnnotation = "leaderworkerset.sigs.k8s.io/size"

// keptAnnotations are those that are read of objects.
var keptAnnotations = []string{GroupSizeAnnotation, "resource.kubernetes.io/extended-resource-claim"}

func annotations(all map[string]string) (kept map[string]string) {
	for _, key := range keptAnnotations {
		if value, ok := all[key]; ok {
			if kept == nil {
				kept = make(map[string]string, len(keptAnnotations))
			}
			kept[key] = value
		}
	}
	return kept
}

// deciding is the path of the field whose last change is a fact.
func deciding(kind string) []string {
	if kind == "ResourceClaim" {
		return []string{"f:status", "f:allocation"}
	}
	return []string{"f:spec", "f:replicas"}
}

// lastSet is the newest entry of who set the field at a path; nil if nobody did.
func lastSet(entries []metav1.ManagedFieldsEntry, path ...string) (last *metav1.ManagedFieldsEntry) {
	for i := range entries {
		e := &entries[i]
		if e.Time != nil && e.FieldsV1 != nil && (last == nil || last.Time.Before(e.Time)) && owns(e.FieldsV1.GetRawBytes(), path) {
			last = e
		}
	}
	return last
}

// owns tells whether a set of fields has a path in it.
func owns(fields []byte, path []string) bool {
	for _, key := range path {
		var of map[string]json.RawMessage
		if json.Unmarshal(fields, &of) != nil {
			return false
		}
		var ok bool
		if fields, ok = of[key]; !ok {
			return false
		}
	}
	return true
}
