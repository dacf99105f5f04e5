// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmfleet/llmfleet/test/kube/controlplanetest"
)

// release is what the chart is installed as, and what its objects are called.
const release = "llmfleet"

// The chart in a cluster with engines. The README comes first, for its reader begins with nothing.
func TestChart(t *testing.T) {
	cp := controlplanetest.Start(t)
	cp.DefineCustomResources(t)
	nodesOf(t, cp, "h100", 8, 1)
	offerVolumes(t, cp, 3)
	serveEngines(t, cp, 3)
	t.Run("README", func(t *testing.T) { testREADME(t, cp) })
	t.Run("lifecycle", func(t *testing.T) { testLifecycle(t, cp) })
	t.Run("roles", func(t *testing.T) { testRoles(t, cp) })
	t.Run("admission", func(t *testing.T) { testAdmission(t, cp) })
}

// ownNamespace makes that of the release, if there is none yet.
func ownNamespace(t *testing.T, cp *controlplanetest.ControlPlane) {
	t.Helper()
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := cp.Client.CoreV1().Namespaces().Create(t.Context(), space, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	awaitNamespace(t, cp, namespace)
}

// awaitNamespace waits until a new namespace has all that Kubernetes puts into it.
func awaitNamespace(t *testing.T, cp *controlplanetest.ControlPlane, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, noAccount := cp.Client.CoreV1().ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{})
		_, noRoot := cp.Client.CoreV1().ConfigMaps(name).Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
		return noAccount == nil && noRoot == nil
	}, patience, tick)
}

// offerVolumes makes volumes that claims without a class are bound to.
func offerVolumes(t *testing.T, cp *controlplanetest.ControlPlane, n int) {
	t.Helper()
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name: "local", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner: "kubernetes.io/no-provisioner",
	}
	_, err := cp.Client.StorageV1().StorageClasses().Create(t.Context(), class, metav1.CreateOptions{})
	require.NoError(t, err)
	for i := range n {
		volume := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("local-%d", i)},
			Spec: corev1.PersistentVolumeSpec{
				StorageClassName: class.Name,
				AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Capacity:         corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")},
				PersistentVolumeSource: corev1.PersistentVolumeSource{
					HostPath: &corev1.HostPathVolumeSource{Path: "/unused"}, // nodes are played
				},
			},
		}
		_, err := cp.Client.CoreV1().PersistentVolumes().Create(t.Context(), volume, metav1.CreateOptions{})
		require.NoError(t, err)
	}
}
