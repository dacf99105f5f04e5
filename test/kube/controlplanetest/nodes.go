// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GPUResource is the extended resource that GPUs are requested by.
const GPUResource corev1.ResourceName = "nvidia.com/gpu"

// Annotations of a pod. How long a part of its start lasts on a played node is a Go duration; 100ms where absent.
const (
	// ImagePullAnnotation is the time from the Pulling to the Pulled event of the first container.
	ImagePullAnnotation = "llmfleet.test/image-pull"
	// ReadinessAnnotation is the time from the start of the containers to ready.
	ReadinessAnnotation = "llmfleet.test/readiness"
	// PodIPAnnotation is the pod's address, where something answers for it.
	PodIPAnnotation = "llmfleet.test/pod-ip"
)

// NodePool describes nodes that are alike.
type NodePool struct {
	Name  string // of the pool: karpenter.sh/nodepool, and the first part of the nodes' names
	GPUs  int64  // of one node, as nvidia.com/gpu; may be 0
	Model string // nvidia.com/gpu.product
}

// AddNodes adds nodes <pool>-<first>, <pool>-<first+1>, … and returns their names.
func (cp *ControlPlane) AddNodes(t *testing.T, pool NodePool, first, n int) []string {
	t.Helper()
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", pool.Name, first+i)
		_, err := cp.Client.CoreV1().Nodes().Create(t.Context(), pool.node(names[i]), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	return names
}

// node describes a node as its kubelet registers it, not yet ready.
func (pool NodePool) node(name string) *corev1.Node {
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("192"),
		corev1.ResourceMemory: resource.MustParse("2Ti"),
		corev1.ResourcePods:   resource.MustParse("250"),
	}
	labels := map[string]string{corev1.LabelHostname: name, "karpenter.sh/nodepool": pool.Name}
	if pool.GPUs > 0 {
		resources[GPUResource] = *resource.NewQuantity(pool.GPUs, resource.DecimalSI)
		labels["nvidia.com/gpu.product"] = pool.Model
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status:     corev1.NodeStatus{Capacity: resources, Allocatable: resources},
	}
}
