// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// user is the one that deploy/docker/Dockerfile creates.
const user = int64(10001)

// TestPodsAreRestricted: every pod is what the pod security standard `restricted` asks for, and reads no file but its own.
func TestPodsAreRestricted(t *testing.T) {
	t.Parallel()
	for _, w := range collectors(t) {
		t.Run(w.title, func(t *testing.T) {
			pod, c := w.pod.Spec.SecurityContext, w.container(t).SecurityContext
			require.NotNil(t, pod)
			require.NotNil(t, c)
			assert.Equal(t, new(true), pod.RunAsNonRoot)
			assert.Equal(t, new(user), pod.RunAsUser)
			assert.Equal(t, new(user), pod.RunAsGroup)
			assert.Equal(t, &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}, pod.SeccompProfile)
			assert.Equal(t, new(false), c.AllowPrivilegeEscalation)
			assert.Equal(t, new(true), c.ReadOnlyRootFilesystem)
			assert.Equal(t, &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, c.Capabilities)
			if len(w.claims) > 0 {
				assert.Equal(t, new(user), pod.FSGroup, "it could not write to its volume")
			}
			assert.False(t, w.pod.Spec.HostNetwork || w.pod.Spec.HostPID || w.pod.Spec.HostIPC)
			for _, volume := range w.pod.Spec.Volumes {
				assert.Nil(t, volume.HostPath, volume.Name)
			}
		})
	}
}

// TestAccountIsMountedWhereNeeded: a pod has a token for the API server exactly if its collector asks that server, and the
// chart's roles are bound to that account then, and to none else. Whoever brings an account of their own binds it themselves.
func TestAccountIsMountedWhereNeeded(t *testing.T) {
	t.Parallel()
	for _, w := range collectors(t) {
		t.Run(w.title, func(t *testing.T) {
			asks := asksAPIServer(t, w)
			require.NotNil(t, w.pod.Spec.AutomountServiceAccountToken)
			assert.Equal(t, asks, *w.pod.Spec.AutomountServiceAccountToken)
			for _, made := range of[corev1.ServiceAccount](t, w.all, "ServiceAccount") {
				assert.Equal(t, new(false), made.AutomountServiceAccountToken, "the pod says so where it needs one")
				if made.Name == w.pod.Spec.ServiceAccountName {
					assert.Equal(t, asks, slices.Contains(boundAccounts(t, w.all), made.Name))
				}
			}
		})
	}
}

// asksAPIServer reports whether a configuration has something in it that reads from the API server.
func asksAPIServer(t *testing.T, w workload) bool {
	t.Helper()
	config := w.parsed(t)
	for name := range config.Receivers {
		if component(name) == "k8s_fleet" {
			return true
		}
	}
	for _, name := range sortedKeys(config.Exporters) {
		if at(config.Exporters[name], "resolver", "k8s") != nil {
			return true
		}
	}
	return strings.Contains(w.config, "kubernetes_sd_configs:")
}

func boundAccounts(t *testing.T, all manifests) []string {
	t.Helper()
	var subjects []rbacv1.Subject
	for _, binding := range of[rbacv1.ClusterRoleBinding](t, all, "ClusterRoleBinding") {
		subjects = append(subjects, binding.Subjects...)
	}
	for _, binding := range of[rbacv1.RoleBinding](t, all, "RoleBinding") {
		subjects = append(subjects, binding.Subjects...)
	}
	var names []string
	for _, subject := range subjects {
		assert.Equal(t, namespace, subject.Namespace)
		assert.Equal(t, "ServiceAccount", subject.Kind)
		names = append(names, subject.Name)
	}
	return names
}

// TestMemoryLimit: the Go runtime starts to collect in earnest at 80 % of what the kernel allows, and no request exceeds it.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	for _, w := range collectors(t) {
		t.Run(w.title, func(t *testing.T) {
			c := w.container(t)
			limit, request := c.Resources.Limits[corev1.ResourceMemory], c.Resources.Requests[corev1.ResourceMemory]
			require.False(t, limit.IsZero(), "no memory limit")
			assert.LessOrEqual(t, request.Cmp(limit), 0)
			for _, variable := range c.Env {
				if variable.Name == "GOMEMLIMIT" {
					assert.InDelta(t, 0.8*float64(limit.Value()), goMemory(t, variable.Value), 1<<20)
					return
				}
			}
			t.Error("GOMEMLIMIT is not set")
		})
	}
}

// TestMemoryUnits: a limit may be written in each unit that Go has, too.
func TestMemoryUnits(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"1536Mi", "3Gi", "1.5Gi", "1Ti"} {
		w := gateway(t, installation{flags: []string{"--set=resources.limits.memory=" + limit}}.render(t))
		amount := resource.MustParse(limit)
		assert.InDelta(t, 0.8*float64(amount.Value()), goMemory(t, environmentOf(t, w)["GOMEMLIMIT"]), 1<<20, limit)
	}
}

// goMemory reads an amount as the Go runtime does: bytes, or with a unit that ends in B.
func goMemory(t *testing.T, text string) float64 {
	t.Helper()
	if bytes, err := strconv.ParseInt(text, 10, 64); err == nil {
		return float64(bytes)
	}
	require.Regexp(t, `^[0-9]+[KMGT]iB$`, text)
	amount, err := resource.ParseQuantity(text[:len(text)-1])
	require.NoError(t, err)
	return amount.AsApproximateFloat64()
}

// TestMountsHaveVolumes: what is mounted is there, and what is there is mounted.
func TestMountsHaveVolumes(t *testing.T) {
	t.Parallel()
	for _, w := range collectors(t) {
		t.Run(w.title, func(t *testing.T) {
			var volumes, mounts []string
			for _, volume := range w.pod.Spec.Volumes {
				volumes = append(volumes, volume.Name)
			}
			for _, claim := range w.claims {
				volumes = append(volumes, claim.Name)
			}
			for _, mount := range w.container(t).VolumeMounts {
				mounts = append(mounts, mount.Name)
			}
			assert.ElementsMatch(t, volumes, mounts)
		})
	}
}
