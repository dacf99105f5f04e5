// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// admin is the cluster administrator.
const admin = "admin"

// ServiceAccount makes a service account that may do exactly what the rules say, cluster-wide, and returns the path of a
// kubeconfig with a token of it.
func (cp *ControlPlane) ServiceAccount(t *testing.T, namespace, name string, rules []rbacv1.PolicyRule) string {
	t.Helper()
	meta := metav1.ObjectMeta{Name: name}
	account := &corev1.ServiceAccount{ObjectMeta: meta}
	_, err := cp.Client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{})
	require.NoError(t, err)
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}
	_, err = cp.Client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	require.NoError(t, err)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}
	_, err = cp.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	require.NoError(t, err)
	return cp.Kubeconfig(t, namespace, name)
}

// Kubeconfig returns the path of a kubeconfig with a token of a service account that is there.
func (cp *ControlPlane) Kubeconfig(t *testing.T, namespace, name string) string {
	t.Helper()
	return cp.kubeconfig(t, name, &clientcmdapi.AuthInfo{Token: cp.Token(t, namespace, name)})
}

// Token returns a token of a service account that is there, as its pods have it.
func (cp *ControlPlane) Token(t *testing.T, namespace, name string) string {
	t.Helper()
	token, err := cp.Client.CoreV1().ServiceAccounts(namespace).
		CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	return token.Status.Token
}

// AdminKubeconfig is the path of a kubeconfig of the cluster administrator.
func (cp *ControlPlane) AdminKubeconfig() string { return cp.kubeconfigPath(admin) }

// clientKubeconfig writes a kubeconfig for a user known by certificate and returns its path.
func (cp *ControlPlane) clientKubeconfig(t *testing.T, user string, groups ...string) string {
	t.Helper()
	client := cp.authority.issueClient(t, user, groups...)
	return cp.kubeconfig(t, user, &clientcmdapi.AuthInfo{ClientCertificate: client.cert, ClientKey: client.key})
}

// kubeconfig writes a kubeconfig and returns its path.
func (cp *ControlPlane) kubeconfig(t *testing.T, user string, info *clientcmdapi.AuthInfo) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: cp.address, CertificateAuthority: cp.authority.file.cert}
	config.AuthInfos[user] = info
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: user}
	config.CurrentContext = "test"
	path := cp.kubeconfigPath(user)
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path
}

func (cp *ControlPlane) kubeconfigPath(user string) string {
	return filepath.Join(cp.dir, user+".kubeconfig")
}
