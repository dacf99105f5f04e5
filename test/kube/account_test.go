// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/llmfleet/llmfleet/test/kube/controlplanetest"
)

// namespace is the collector's own, as rbac.yaml has it.
const namespace = "llmfleet"

// rolesFile is what users are told to grant the receiver.
const rolesFile = "../../receiver/k8sfleetreceiver/rbac.yaml"

// account makes the service account of rbac.yaml with its roles and returns a kubeconfig of it.
func account(t *testing.T, cp *controlplanetest.ControlPlane) string {
	t.Helper()
	create := metav1.CreateOptions{}
	_, err := cp.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, create)
	require.NoError(t, err)
	for _, object := range readRoles(t) {
		switch o := object.(type) {
		case *corev1.ServiceAccount:
			_, err = cp.Client.CoreV1().ServiceAccounts(o.Namespace).Create(t.Context(), o, create)
		case *rbacv1.ClusterRole:
			_, err = cp.Client.RbacV1().ClusterRoles().Create(t.Context(), o, create)
		case *rbacv1.ClusterRoleBinding:
			_, err = cp.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), o, create)
		case *rbacv1.Role:
			_, err = cp.Client.RbacV1().Roles(o.Namespace).Create(t.Context(), o, create)
		case *rbacv1.RoleBinding:
			_, err = cp.Client.RbacV1().RoleBindings(o.Namespace).Create(t.Context(), o, create)
		default:
			t.Fatalf("a %T in %s", o, rolesFile)
		}
		require.NoError(t, err)
	}
	return cp.Kubeconfig(t, namespace, "llmfleet")
}

// readRoles reads the objects of rbac.yaml.
func readRoles(t *testing.T) (objects []runtime.Object) {
	t.Helper()
	content, err := os.ReadFile(rolesFile)
	require.NoError(t, err)
	for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
		require.NoError(t, err)
		objects = append(objects, object)
	}
	return objects
}
