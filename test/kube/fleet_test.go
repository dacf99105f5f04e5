// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/llmfleet/llmfleet/test/kube/controlplanetest"
)

// engine describes a pod that requests GPUs, if any.
func engine(app string, gpus int64) corev1.PodTemplateSpec {
	container := corev1.Container{Name: "engine", Image: "registry.test/vllm:v1"}
	if gpus > 0 {
		container.Resources.Limits = corev1.ResourceList{controlplanetest.GPUResource: *resource.NewQuantity(gpus, resource.DecimalSI)}
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}, Annotations: map[string]string{}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{container}},
	}
}

// deploy makes a Deployment in namespace default.
func deploy(t *testing.T, cp *controlplanetest.ControlPlane, replicas int32, template corev1.PodTemplateSpec) {
	t.Helper()
	app := template.Labels["app"]
	_, err := cp.Client.AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
			Template: template,
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// scale asks for replicas of a Deployment.
func scale(t *testing.T, cp *controlplanetest.ControlPlane, app string, replicas int) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := cp.Client.AppsV1().Deployments("default").
		Patch(t.Context(), app, types.MergePatchType, patch, metav1.PatchOptions{}, "scale")
	require.NoError(t, err)
}

// place makes a pod in namespace default; on a node, if one is named, as far as the scheduler agrees.
func place(t *testing.T, cp *controlplanetest.ControlPlane, name, node string, template corev1.PodTemplateSpec) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name = name
	if node != "" {
		pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	}
	pod, err := cp.Client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	return pod
}

// pods are those of an app.
func pods(t *testing.T, cp *controlplanetest.ControlPlane, app string) []corev1.Pod {
	t.Helper()
	list, err := cp.Client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	require.NoError(t, err)
	return list.Items
}

// ready tells whether a pod is.
func ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// awaitReady waits until so many pods of an app are ready.
func awaitReady(t *testing.T, cp *controlplanetest.ControlPlane, app string, n int) (are []corev1.Pod) {
	t.Helper()
	require.Eventually(t, func() bool {
		are = nil
		for _, pod := range pods(t, cp, app) {
			if ready(&pod) {
				are = append(are, pod)
			}
		}
		return len(are) >= n
	}, patience, tick, "%d ready pods of %s", n, app)
	return are
}

// awaitTraces waits until the traces of all pods are in the store.
func awaitTraces(t *testing.T, j jaeger, of []corev1.Pod) map[types.UID]trace {
	t.Helper()
	traces := map[types.UID]trace{}
	require.Eventually(t, func() bool {
		for _, pod := range of {
			if _, known := traces[pod.UID]; known {
				continue
			}
			found := j.trace(t, pod.UID)
			if found == nil {
				return false
			}
			traces[pod.UID] = found
		}
		return true
	}, patience, tick, "the traces of %d pods", len(of))
	return traces
}
