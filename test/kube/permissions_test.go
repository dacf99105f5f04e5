// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/llmfleet/llmfleet/test/kube/controlplanetest"
)

// user is how the API server's log names the collector.
const user = "system:serviceaccount:" + namespace + ":llmfleet"

// listFirst has collectors list what they watch, as they do where an API server cannot stream lists.
const listFirst = "KUBE_FEATURE_WatchListClient=false"

// permission is a verb on a resource: of all names and in all namespaces, or of those that are set.
type permission struct{ verb, group, resource, name, namespace string }

// String says it as the API server does when it refuses.
func (p permission) String() string {
	return fmt.Sprintf("%s resource %q in API group %q", p.verb, p.resource, p.group)
}

// covers tells whether it is this permission that a request needs.
func (p permission) covers(request *auditv1.Event) bool {
	ref := request.ObjectRef
	return p.verb == request.Verb && p.group == ref.APIGroup && p.resource == ref.Resource &&
		(p.name == "" || p.name == ref.Name) && (p.namespace == "" || p.namespace == ref.Namespace)
}

// role is one that the collector has, as far as tests read and change it.
type role struct {
	rules     []rbacv1.PolicyRule
	namespace string
	update    func(context.Context, []rbacv1.PolicyRule) error
}

// kind is ClusterRole or Role.
func (r role) kind() string {
	if r.namespace == "" {
		return "ClusterRole"
	}
	return "Role"
}

// permissions are those that a role grants.
func (r role) permissions() (all []permission) {
	for _, rule := range r.rules {
		all = append(all, expand(rule, r.namespace)...)
	}
	return all
}

// expand lists what a rule allows.
func expand(rule rbacv1.PolicyRule, namespace string) (all []permission) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range rule.Verbs {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					all = append(all, permission{verb, group, resource, name, namespace})
				}
			}
		}
	}
	return all
}

// roles are those that are bound to the collector's service account.
func roles(t *testing.T, cp *controlplanetest.ControlPlane) (all []role) {
	t.Helper()
	api := cp.Client.RbacV1()
	everywhere, err := api.ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, binding := range everywhere.Items {
		if bound(binding.Subjects) {
			r, err := api.ClusterRoles().Get(t.Context(), binding.RoleRef.Name, metav1.GetOptions{})
			require.NoError(t, err)
			all = append(all, role{rules: r.Rules, update: func(ctx context.Context, rules []rbacv1.PolicyRule) error {
				_, err := api.ClusterRoles().Patch(ctx, r.Name, types.MergePatchType, patch(rules), metav1.PatchOptions{})
				return err
			}})
		}
	}
	here, err := api.RoleBindings("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, binding := range here.Items {
		if bound(binding.Subjects) {
			require.Equal(t, "Role", binding.RoleRef.Kind)
			r, err := api.Roles(binding.Namespace).Get(t.Context(), binding.RoleRef.Name, metav1.GetOptions{})
			require.NoError(t, err)
			all = append(all, role{rules: r.Rules, namespace: r.Namespace, update: func(ctx context.Context, rules []rbacv1.PolicyRule) error {
				_, err := api.Roles(r.Namespace).Patch(ctx, r.Name, types.MergePatchType, patch(rules), metav1.PatchOptions{})
				return err
			}})
		}
	}
	return all
}

// patch sets rules.
func patch(rules []rbacv1.PolicyRule) []byte {
	content, err := json.Marshal(map[string]any{"rules": rules})
	if err != nil { // there is nothing in it that JSON does not have
		panic(err)
	}
	return content
}

// bound tells whether the collector is among those that a role is given.
func bound(subjects []rbacv1.Subject) bool {
	return slices.Contains(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: release})
}

// requests are those for objects that the collector made, after so many entries of the API server's log.
func requests(t *testing.T, cp *controlplanetest.ControlPlane, after int) []auditv1.Event {
	t.Helper()
	return slices.DeleteFunc(cp.AuditEvents(t)[after:], func(e auditv1.Event) bool {
		return e.User.Username != user || e.ObjectRef == nil
	})
}

// refused are the requests that no role allowed, sorted.
func refused(made []auditv1.Event) (all []permission) {
	for _, e := range made {
		if e.ResponseStatus != nil && e.ResponseStatus.Code == 403 {
			all = append(all, permission{verb: e.Verb, group: e.ObjectRef.APIGroup, resource: e.ObjectRef.Resource})
		}
	}
	slices.SortFunc(all, func(a, b permission) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(all)
}

// unused are the permissions that no request needed, of those that one could need.
func unused(t *testing.T, cp *controlplanetest.ControlPlane, made []auditv1.Event) (all []permission) {
	t.Helper()
	for _, r := range roles(t, cp) {
		all = append(all, r.permissions()...)
	}
	return slices.DeleteFunc(usable(t, cp, all), func(p permission) bool {
		return slices.ContainsFunc(made, func(e auditv1.Event) bool { return p.covers(&e) })
	})
}

// usable are the permissions on what this API server serves. Pools are asked for in the group that they have had since
// version 1, if it is there.
func usable(t *testing.T, cp *controlplanetest.ControlPlane, all []permission) []permission {
	t.Helper()
	served := servedResources(t, cp)
	return slices.DeleteFunc(all, func(p permission) bool {
		return !served[p.resource+"."+p.group] ||
			p.group == "inference.networking.x-k8s.io" && served["inferencepools.inference.networking.k8s.io"]
	})
}

// awaitLeast waits until a collector that began after so many entries of the log has used all of its permissions, and
// makes sure that it asked for nothing else.
func awaitLeast(t *testing.T, cp *controlplanetest.ControlPlane, after int) {
	t.Helper()
	var made []auditv1.Event
	assert.EventuallyWithT(t, func(c *assert.CollectT) {
		made = requests(t, cp, after)
		assert.NotEmpty(c, made)
		assert.Empty(c, unused(t, cp, made), "granted for nothing")
	}, patience, tick)
	assert.Empty(t, refused(made))
}

// servedResources are those that the API server has, as "resource.group".
func servedResources(t *testing.T, cp *controlplanetest.ControlPlane) map[string]bool {
	t.Helper()
	_, lists, err := cp.Client.Discovery().ServerGroupsAndResources()
	require.NoError(t, err)
	served := map[string]bool{}
	for _, list := range lists {
		group, _, grouped := strings.Cut(list.GroupVersion, "/")
		if !grouped {
			group = ""
		}
		for _, resource := range list.APIResources {
			served[resource.Name+"."+group] = true
		}
	}
	return served
}

// checkEachVerb takes one verb after the other from all roles; each time the collector, started anew, is refused, and
// says of every resource that it cannot. Pods are asked for when the rest is there, and events when pods are.
func checkEachVerb(t *testing.T, cp *controlplanetest.ControlPlane, start func(*testing.T) *collector) {
	t.Helper()
	type denial struct{ verb, of string }
	denials := map[denial]func(permission) bool{}
	for _, r := range roles(t, cp) {
		for _, p := range usable(t, cp, r.permissions()) {
			d := denial{p.verb, p.resource}
			if p.resource != "pods" && p.resource != "events" {
				d.of = "the rest"
			}
			denials[d] = func(p permission) bool {
				return p.verb == d.verb && (p.resource == d.of || d.of == "the rest" && p.resource != "pods" && p.resource != "events")
			}
		}
	}
	require.NotEmpty(t, denials)
	for d, denied := range denials {
		t.Run("no "+d.verb+" of "+d.of, func(t *testing.T) {
			taken := usable(t, cp, take(t, cp, denied))
			if d.verb != "update" { // what is there is not made, and what nobody could release is waited for
				leases := cp.Client.CoordinationV1().Leases(namespace)
				require.NoError(t, leases.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
			}
			after := len(cp.AuditEvents(t))
			c := start(t)
			var made []permission
			require.Eventually(t, func() bool {
				made = refused(requests(t, cp, after))
				return !slices.ContainsFunc(taken, func(p permission) bool {
					return !slices.Contains(made, permission{verb: p.verb, group: p.group, resource: p.resource}) || !c.misses(p)
				})
			}, patience, tick, "taken: %v\nrefused: %v", taken, &made)
		})
	}
}

// misses tells whether the collector says that it lacks a permission: in its log, or in metrics of its own.
func (c *collector) misses(p permission) bool {
	if p.resource == "leases" {
		return !c.leads()
	}
	return sum(scrape(c.own), "otelcol_receiver_k8s_fleet_watch_errors", fmt.Sprintf("resource=%q", p.resource)) > 0 ||
		strings.Contains(strings.ReplaceAll(c.Output(), `\`, ""), "cannot "+p.String())
}

// take takes permissions from all roles of the collector until the test ends, and returns them.
func take(t *testing.T, cp *controlplanetest.ControlPlane, denied func(permission) bool) (taken []permission) {
	t.Helper()
	for _, r := range roles(t, cp) {
		var less []rbacv1.PolicyRule
		for _, rule := range r.rules {
			if len(rule.NonResourceURLs) > 0 {
				less = append(less, rule)
			}
		}
		for _, p := range r.permissions() {
			if denied(p) {
				taken = append(taken, p)
				continue
			}
			rule := rbacv1.PolicyRule{Verbs: []string{p.verb}, APIGroups: []string{p.group}, Resources: []string{p.resource}}
			if p.name != "" {
				rule.ResourceNames = []string{p.name}
			}
			less = append(less, rule)
		}
		require.NoError(t, r.update(t.Context(), less))
		t.Cleanup(func() { require.NoError(t, r.update(context.Background(), r.rules)) })
	}
	require.NotEmpty(t, taken)
	for _, p := range taken {
		require.Eventually(t, func() bool { return !allowed(t, cp, p) }, patience, tick)
	}
	return taken
}

// allowed asks the authorizer, which learns of changes by a watch.
func allowed(t *testing.T, cp *controlplanetest.ControlPlane, p permission) bool {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: p.verb, Group: p.group, Resource: p.resource, Name: p.name, Namespace: p.namespace,
		},
	}}
	answer, err := cp.Client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	require.NoError(t, err)
	return answer.Status.Allowed
}
