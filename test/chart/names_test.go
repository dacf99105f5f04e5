// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
)

// TestNames: objects are called after the release, with the chart's name if the release's does not say it already.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ release, set, name string }{
		{"llmfleet", "", "llmfleet"},
		{"my-llmfleet", "", "my-llmfleet"},
		{"monitoring", "", "monitoring-llmfleet"},
		{"monitoring", "nameOverride=fleet", "monitoring-fleet"},
		{"monitoring", "fullnameOverride=gateway", "gateway"},
	} {
		all := decode(t, helm(t, "template", c.release, chartFolder, "--set="+c.set))
		assert.Equal(t, c.name, gateway(t, all).name, "%s %s", c.release, c.set)
	}
}

// TestClusterRolesAreApart: releases of other names or namespaces share no ClusterRole, though the hyphens of both could be read
// either way. A colon parts them, which neither can hold.
func TestClusterRolesAreApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ namespace, release, name string }{
		{"llmfleet-prod", "llmfleet", "llmfleet-prod:llmfleet"},
		{"llmfleet", "prod", "llmfleet:prod-llmfleet"},
		{"chat", "llmfleet", "chat:llmfleet"},
	} {
		all := decode(t, helm(t, "template", c.release, chartFolder, "--namespace="+c.namespace))
		require.NotEmpty(t, of[rbacv1.ClusterRole](t, all, "ClusterRole"))
		for _, role := range of[rbacv1.ClusterRole](t, all, "ClusterRole") {
			assert.Equal(t, c.name, role.Name)
		}
		for _, binding := range of[rbacv1.ClusterRoleBinding](t, all, "ClusterRoleBinding") {
			assert.Equal(t, c.name, binding.Name)
			assert.Equal(t, c.name, binding.RoleRef.Name)
		}
	}
}

// TestLongNamesFit: with the longest name that helm gives a release, all objects have names that Kubernetes takes: 63
// characters; of a StatefulSet 52, as its pods get a label of the name with a hash; and 253 where a name is nobody's label.
func TestLongNamesFit(t *testing.T) {
	t.Parallel()
	release := strings.Repeat("a", 53)
	all := decode(t, helm(t, "template", release, chartFolder, "--values="+chartFolder+"/examples/scale-out/values.yaml",
		"--set=dashboards.enabled=true,rules.enabled=true,presets.capacity.enabled=true"))
	for _, m := range all {
		longest := 63
		switch m.Kind {
		case "StatefulSet":
			longest = 52
		case "ClusterRole", "ClusterRoleBinding", "ConfigMap":
			longest = 253
		}
		assert.LessOrEqual(t, len(m.Metadata.Name), longest, "%s %s", m.Kind, m.Metadata.Name)
	}
	for _, w := range workloads(t, all) {
		for key, value := range w.pod.Labels {
			assert.LessOrEqual(t, len(value), 63, key)
		}
	}
}
