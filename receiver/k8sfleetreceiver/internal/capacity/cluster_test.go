// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package capacity_test

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/capacity"
)

const (
	gpuResource = "nvidia.com/gpu"
	gpuDriver   = "gpu.nvidia.com"
)

var noon = time.Date(2026, 8, 5, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

// fleet are pods with the label app=llm.
func fleet() capacity.Options {
	return capacity.Options{
		Selected: func(p *corev1.Pod) bool { return p.Labels["app"] == "llm" },
		Model:    func(p *corev1.Pod) string { return p.Labels["model"] },
	}
}

func gpus(n int) corev1.ResourceList {
	return corev1.ResourceList{gpuResource: *resource.NewQuantity(int64(n), resource.DecimalSI)}
}

// node has GPUs of an H100 in the pool "h".
func node(name string, n int, change ...func(*corev1.Node)) *corev1.Node {
	made := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "karpenter.sh/nodepool": "h",
		}},
		Status: corev1.NodeStatus{Capacity: gpus(n), Allocatable: gpus(n)},
	}
	for _, c := range change {
		c(made)
	}
	return made
}

// pod is one of the fleet that is ready, and asks for GPUs of a node.
func pod(name, on string, n int, change ...func(*corev1.Pod)) *corev1.Pod {
	made := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "prod", Name: name, UID: types.UID(name), CreationTimestamp: ago(time.Hour),
			Labels: map[string]string{"app": "llm", "model": "m"},
		},
		Spec: corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{Name: "engine"}}},
	}
	if n > 0 {
		made.Spec.Containers[0].Resources.Limits = gpus(n)
	}
	set(corev1.PodReady, corev1.ConditionTrue, "")(made)
	for _, c := range change {
		c(made)
	}
	return made
}

// set is a condition of a minute ago.
func set(of corev1.PodConditionType, status corev1.ConditionStatus, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for i := range p.Status.Conditions {
			if c := &p.Status.Conditions[i]; c.Type == of {
				c.Status, c.Message, c.LastTransitionTime = status, message, ago(time.Minute)
				return
			}
		}
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: of, Status: status, Message: message, LastTransitionTime: ago(time.Minute),
		})
	}
}

func notReady(p *corev1.Pod) { set(corev1.PodReady, corev1.ConditionFalse, "")(p) }

func stranger(p *corev1.Pod) { p.Labels = nil }

func terminating(p *corev1.Pod) { p.DeletionTimestamp = new(ago(time.Second)) }

func created(age time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = ago(age) }
}

// unschedulable pods are not ready and the scheduler says why they have no node.
func unschedulable(says string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		notReady(p)
		set(corev1.PodScheduled, corev1.ConditionFalse, says)(p)
	}
}

func ownedBy(kind, name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.OwnerReferences = owner(kind, name) }
}

func owner(kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{Kind: kind, Name: name, UID: types.UID(kind + "/" + name), Controller: new(true)}}
}

func uses(claims ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, c := range claims {
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: c, ResourceClaimName: new(c)})
		}
	}
}

// slice is one of a pool's slices, with the pool named as its node.
func slice(name, on string, generation, of int64, devices ...resourcev1.Device) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: gpuDriver, NodeName: new(on), Devices: devices,
			Pool: resourcev1.ResourcePool{Name: on, Generation: generation, ResourceSliceCount: of},
		},
	}
}

func devices(n int) (all []resourcev1.Device) {
	for i := range n {
		all = append(all, resourcev1.Device{
			Name: "gpu-" + strconv.Itoa(i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"uuid": {StringValue: new("GPU-" + strconv.Itoa(i))}, "productName": {StringValue: new("NVIDIA H100 80GB HBM3")},
			},
		})
	}
	return all
}

// claim asks for one device of the class gpu.nvidia.com.
func claim(name string, change ...func(*resourcev1.ResourceClaim)) *resourcev1.ResourceClaim {
	made := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: name, CreationTimestamp: ago(10 * time.Minute)},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: gpuDriver, Count: 1},
		}}}},
	}
	for _, c := range change {
		c(made)
	}
	return made
}

func got(pool, device string, change ...func(*resourcev1.DeviceRequestAllocationResult)) func(*resourcev1.ResourceClaim) {
	return func(c *resourcev1.ResourceClaim) {
		if c.Status.Allocation == nil {
			c.Status.Allocation = &resourcev1.AllocationResult{}
		}
		r := resourcev1.DeviceRequestAllocationResult{Request: "gpu", Driver: gpuDriver, Pool: pool, Device: device}
		for _, ch := range change {
			ch(&r)
		}
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, r)
	}
}

func reservedFor(pods ...string) func(*resourcev1.ResourceClaim) {
	return func(c *resourcev1.ResourceClaim) {
		for _, name := range pods {
			c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{
				Resource: "pods", Name: name, UID: types.UID(name),
			})
		}
	}
}

func report(o capacity.Options, objects ...any) capacity.Report {
	s := capacity.New(o)
	for _, object := range objects {
		s.Set(object)
	}
	return s.Report(noon)
}

// states adds up the GPUs in each state.
func states(r capacity.Report) map[capacity.State]int {
	all := map[capacity.State]int{}
	for _, s := range r.States {
		if s.GPUs > 0 {
			all[s.State] += s.GPUs
		}
	}
	return all
}
