// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/llmfleet/llmfleet/test/kube/controlplanetest"
)

// The API server takes all that the chart makes of any values, without a warning, where pods have to be restricted.
func testAdmission(t *testing.T, cp *controlplanetest.ControlPlane) {
	t.Helper()
	ownNamespace(t, cp)
	n := newNewcomer(t, cp)
	for _, mode := range []string{"enforce", "warn", "audit"} {
		n.does(t, "kubectl label namespace "+namespace+" pod-security.kubernetes.io/"+mode+"=restricted")
	}
	files, err := filepath.Glob("../../deploy/helm/llmfleet/ci/*-values.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			a := newAdmission(t, cp)
			values, err := filepath.Abs(file)
			require.NoError(t, err)
			objects := decodeObjects(t, n.does(t, "helm template llmfleet deploy/helm/llmfleet --namespace "+namespace+" --values "+values))
			require.NotEmpty(t, objects)
			for _, object := range objects {
				a.apply(t, object)
				a.createPod(t, object)
			}
			assert.Empty(t, a.warnings)
		})
	}
	t.Run("a pod that runs as root is refused", func(t *testing.T) {
		set := decodeObjects(t, n.does(t, "helm template llmfleet deploy/helm/llmfleet --show-only templates/statefulset.yaml"))[0]
		pod := podOf(t, set)
		require.NotNil(t, pod)
		pod.Spec.SecurityContext.RunAsUser = new(int64(0))
		require.ErrorContains(t, newAdmission(t, cp).tryPod(t, pod), "violates PodSecurity")
	})
}

// admission asks the API server whether it would take objects, and collects its warnings.
type admission struct {
	sync.Mutex

	warnings []string
	client   dynamic.Interface
	typed    kubernetes.Interface
	kinds    meta.RESTMapper
}

func newAdmission(t *testing.T, cp *controlplanetest.ControlPlane) *admission {
	t.Helper()
	a := &admission{kinds: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(cp.Client.Discovery()))}
	config := rest.CopyConfig(cp.Config)
	config.WarningHandler = a
	var err error
	a.client, err = dynamic.NewForConfig(config)
	require.NoError(t, err)
	a.typed, err = kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return a
}

// HandleWarningHeader implements [rest.WarningHandler].
func (a *admission) HandleWarningHeader(_ int, _, text string) {
	a.Lock()
	defer a.Unlock()
	a.warnings = append(a.warnings, text)
}

// apply asks whether an object would be taken; its namespace is made, if there is none.
func (a *admission) apply(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	if space := object.GetNamespace(); space != "" {
		a.provide(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}})
	}
	options := metav1.ApplyOptions{FieldManager: "helm", Force: true, DryRun: []string{metav1.DryRunAll}}
	_, err := a.resource(t, object).Apply(t.Context(), object.GetName(), object, options)
	assert.NoError(t, err, "%s %s", object.GetKind(), object.GetName())
}

// createPod asks whether a pod of a workload would be taken.
func (a *admission) createPod(t *testing.T, workload *unstructured.Unstructured) {
	t.Helper()
	if pod := podOf(t, workload); pod != nil {
		assert.NoError(t, a.tryPod(t, pod), "a pod of %s %s", workload.GetKind(), workload.GetName())
	}
}

// tryPod asks whether a pod would be taken; its service account is made, if there is none.
func (a *admission) tryPod(t *testing.T, pod *corev1.Pod) error {
	t.Helper()
	a.provide(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.ServiceAccountName}})
	_, err := a.typed.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// provide makes what others refer to.
func (a *admission) provide(t *testing.T, object runtime.Object) {
	t.Helper()
	var err error
	switch o := object.(type) {
	case *corev1.Namespace:
		_, err = a.typed.CoreV1().Namespaces().Create(t.Context(), o, metav1.CreateOptions{})
	case *corev1.ServiceAccount:
		_, err = a.typed.CoreV1().ServiceAccounts(namespace).Create(t.Context(), o, metav1.CreateOptions{})
	}
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
}

// podOf is a pod as the controller of a workload would make it; nil if the object is no workload.
func podOf(t *testing.T, workload *unstructured.Unstructured) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: workload.GetName() + "-0"}}
	switch workload.GetKind() {
	case "StatefulSet":
		set := convert[appsv1.StatefulSet](t, workload)
		pod.Labels, pod.Annotations, pod.Spec = set.Spec.Template.Labels, set.Spec.Template.Annotations, set.Spec.Template.Spec
		for _, claim := range set.Spec.VolumeClaimTemplates {
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name + "-" + pod.Name},
			}})
		}
	case "Deployment":
		deployment := convert[appsv1.Deployment](t, workload)
		template := deployment.Spec.Template
		pod.Labels, pod.Annotations, pod.Spec = template.Labels, template.Annotations, template.Spec
	default:
		return nil
	}
	return pod
}

// convert reads an object as one of a kind that Kubernetes has itself.
func convert[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()
	typed := new(T)
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true))
	return typed
}

// resource is where objects of a kind and namespace are.
func (a *admission) resource(t *testing.T, object *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	kind := object.GroupVersionKind()
	mapping, err := a.kinds.RESTMapping(kind.GroupKind(), kind.Version)
	require.NoError(t, err)
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return a.client.Resource(mapping.Resource)
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(namespace)
	}
	return a.client.Resource(mapping.Resource).Namespace(object.GetNamespace())
}
