// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// TestDisruptionBudgets: of several pods some always stay; one alone may go, or its node could not be drained.
func TestDisruptionBudgets(t *testing.T) {
	t.Parallel()
	for _, installed := range append(installations(t), defaults) {
		all := installed.render(t)
		several := map[string]bool{}
		for _, s := range of[appsv1.StatefulSet](t, all, "StatefulSet") {
			several[s.Name] = *s.Spec.Replicas > 1
		}
		for _, d := range of[appsv1.Deployment](t, all, "Deployment") {
			several[d.Name] = *d.Spec.Replicas > 1
		}
		kept := map[string]bool{}
		for name := range several {
			kept[name] = false
		}
		for _, budget := range of[policyv1.PodDisruptionBudget](t, all, "PodDisruptionBudget") {
			selected := selectedBy(t, budget.Spec.Selector.MatchLabels, all)
			require.Len(t, selected, 1, installed.name)
			kept[selected[0].name] = true
			assert.Equal(t, int32(1), budget.Spec.MaxUnavailable.IntVal)
		}
		assert.Equal(t, several, kept, installed.name)
	}
}

// TestRolesOnlyWhereNeeded: a chart that asks the API server nothing may ask nothing, and none may ask more than to read,
// or for all of anything, or for Secrets.
func TestRolesOnlyWhereNeeded(t *testing.T) {
	t.Parallel()
	for _, installed := range append(installations(t), defaults) {
		all := installed.render(t)
		asks := slices.ContainsFunc(workloads(t, all), func(w workload) bool { return asksAPIServer(t, w) })
		var rules []rbacv1.PolicyRule
		for _, role := range of[rbacv1.ClusterRole](t, all, "ClusterRole") {
			rules = append(rules, role.Rules...)
		}
		for _, role := range of[rbacv1.Role](t, all, "Role") {
			rules = append(rules, role.Rules...)
		}
		if !asks {
			assert.Empty(t, rules, installed.name)
		}
		for _, rule := range rules {
			for _, all := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs} {
				assert.NotContains(t, all, "*", installed.name)
			}
			assert.NotContains(t, rule.Resources, "secrets", installed.name)
			if !slices.Equal(rule.Resources, []string{"leases"}) {
				assert.Subset(t, []string{"get", "list", "watch"}, rule.Verbs, installed.name)
			}
		}
	}
}

// TestNamespacesTakeNoClusterRole: who names the namespaces of the engines grants nothing beyond them.
func TestNamespacesTakeNoClusterRole(t *testing.T) {
	t.Parallel()
	all := installation{flags: []string{"--set=namespaces={chat,search},presets.engines.nodeLabels=false"}}.render(t)
	assert.Empty(t, of[rbacv1.ClusterRole](t, all, "ClusterRole"))
	assert.Empty(t, of[rbacv1.ClusterRoleBinding](t, all, "ClusterRoleBinding"))
	var places []string
	for _, role := range of[rbacv1.Role](t, all, "Role") {
		places = append(places, role.Namespace)
	}
	assert.ElementsMatch(t, []string{"chat", "search"}, places)
}
