// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const patience = time.Minute

var pool = NodePool{Name: "h100", GPUs: 4, Model: "NVIDIA-H100-80GB-HBM3"}

func TestControlPlane(t *testing.T) {
	cp := Start(t)
	nodes := cp.AddNodes(t, pool, 0, 2)

	t.Run("eight pods fill the GPUs of two nodes and get ready", func(t *testing.T) { testDeployment(t, cp, nodes) })
	t.Run("the scheduler allocates a claim from published devices", func(t *testing.T) { testClaim(t, cp, nodes) })
	t.Run("a service account may do what its role says", func(t *testing.T) { testServiceAccount(t, cp) })
}

func testDeployment(t *testing.T, cp *ControlPlane, nodes []string) {
	t.Helper()
	labels := map[string]string{"app": "vllm"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "vllm"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(8)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      labels,
					Annotations: map[string]string{ImagePullAnnotation: "1500ms", ReadinessAnnotation: "2s"},
				},
				Spec: corev1.PodSpec{Containers: []corev1.Container{gpuContainer(1)}},
			},
		},
	}
	_, err := cp.Client.AppsV1().Deployments("default").Create(t.Context(), deployment, metav1.CreateOptions{})
	require.NoError(t, err)
	pods := awaitReady(t, cp, "app=vllm", 8)

	perNode := map[string]int{}
	key := cp.AnswerKey(t)
	for _, pod := range pods {
		perNode[pod.Spec.NodeName]++
		times := key[pod.UID]
		if !assert.NotNil(t, times, "the answer key misses %s", pod.Name) {
			continue
		}
		assert.Equal(t, pod.Name, times.Name)
		assert.Equal(t, "default", times.Namespace)
		assert.True(t, times.Created.Before(pod.CreationTimestamp.Add(time.Second)), "%+v", times)
		assert.True(t, times.Bound.After(times.Created), "%+v", times)
		assert.True(t, times.Pulling.After(times.Bound), "%+v", times)
		assert.True(t, times.Running.After(times.Pulled), "%+v", times)
		assert.GreaterOrEqual(t, times.Pulled.Sub(times.Pulling), 1500*time.Millisecond, "%+v", times)
		assert.GreaterOrEqual(t, times.Ready.Sub(times.Running), 2*time.Second, "%+v", times)
	}
	assert.Equal(t, map[string]int{nodes[0]: 4, nodes[1]: 4}, perNode)
}

func testClaim(t *testing.T, cp *ControlPlane, nodes []string) {
	t.Helper()
	api := cp.Client.ResourceV1()
	class := &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu"},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
			{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.llmfleet.test"`}},
		}},
	}
	_, err := api.DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{})
	require.NoError(t, err)
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: nodes[1]},
		Spec: resourcev1.ResourceSliceSpec{
			Driver:   "gpu.llmfleet.test",
			NodeName: &nodes[1],
			Pool:     resourcev1.ResourcePool{Name: nodes[1], Generation: 1, ResourceSliceCount: 1},
			Devices:  []resourcev1.Device{{Name: "gpu-0"}},
		},
	}
	_, err = api.ResourceSlices().Create(t.Context(), slice, metav1.CreateOptions{})
	require.NoError(t, err)
	template := &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "one-gpu"},
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"}}},
		}}},
	}
	_, err = api.ResourceClaimTemplates("default").Create(t.Context(), template, metav1.CreateOptions{})
	require.NoError(t, err)

	container := gpuContainer(0)
	container.Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "sglang", Labels: map[string]string{"app": "sglang"}},
		Spec: corev1.PodSpec{
			Containers:     []corev1.Container{container},
			ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("one-gpu")}},
		},
	}
	_, err = cp.Client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)

	ready := awaitReady(t, cp, "app=sglang", 1)[0]
	assert.Equal(t, nodes[1], ready.Spec.NodeName)
	require.Len(t, ready.Status.ResourceClaimStatuses, 1)
	claim, err := api.ResourceClaims("default").Get(t.Context(), *ready.Status.ResourceClaimStatuses[0].ResourceClaimName, metav1.GetOptions{})
	require.NoError(t, err)
	require.NotNil(t, claim.Status.Allocation)
	require.Len(t, claim.Status.Allocation.Devices.Results, 1)
	assert.Equal(t, nodes[1], claim.Status.Allocation.Devices.Results[0].Pool)
	assert.Equal(t, "gpu-0", claim.Status.Allocation.Devices.Results[0].Device)
	assert.Contains(t, cp.AnswerKey(t), ready.UID)
}

func testServiceAccount(t *testing.T, cp *ControlPlane) {
	t.Helper()
	path := cp.ServiceAccount(t, "default", "reader", []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
	})
	config, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)

	// The authorizer learns of a new role by a watch.
	require.Eventually(t, func() bool {
		_, err = client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, patience, 50*time.Millisecond)
	_, err = client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	assert.True(t, apierrors.IsForbidden(err), "listing nodes: %v", err)
}

// gpuContainer describes an engine's container that requests GPUs as an extended resource, if any.
func gpuContainer(gpus int64) corev1.Container {
	container := corev1.Container{Name: "engine", Image: "registry.test/vllm:v1"}
	if gpus > 0 {
		container.Resources.Limits = corev1.ResourceList{GPUResource: *resource.NewQuantity(gpus, resource.DecimalSI)}
	}
	return container
}

// awaitReady waits until n pods of namespace default that match a label selector are ready.
func awaitReady(t *testing.T, cp *ControlPlane, selector string, n int) []corev1.Pod {
	t.Helper()
	var ready []corev1.Pod
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		pods, err := cp.Client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: selector})
		require.NoError(c, err)
		ready = ready[:0]
		for _, pod := range pods.Items {
			for _, condition := range pod.Status.Conditions {
				if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
					ready = append(ready, pod)
				}
			}
		}
		assert.Len(c, ready, n)
	}, patience, 100*time.Millisecond)
	return ready
}
