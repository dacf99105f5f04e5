// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmfleet/llmfleet/test/kube/controlplanetest"
)

// user is how the API server's log names the collector.
const user = "system:serviceaccount:" + namespace + ":llmfleet"

// listFirst has the collector list what it watches, as it does where an API server cannot stream lists.
func listFirst(t *testing.T) {
	t.Helper()
	t.Setenv("KUBE_FEATURE_WatchListClient", "false")
}

// The collector asks for all that its roles grant and that the API server has, and for nothing else.
func TestRolesAreTheLeastThatTheReceiverNeeds(t *testing.T) {
	cp := controlplanetest.Start(t)
	kubeconfig := account(t, cp)
	served := servedResources(t, cp)
	granted := map[string]bool{}
	for _, object := range readRoles(t) {
		for request := range grants(object) {
			if served[strings.Fields(request)[1]] {
				granted[request] = true
			}
		}
	}
	require.NotEmpty(t, granted)
	listFirst(t)
	startCollector(t, kubeconfig, "")
	var asked map[string]bool
	assert.Eventually(t, func() bool {
		asked = requests(t, cp)
		return maps.Equal(granted, asked)
	}, patience, tick)
	assert.Equal(t, granted, asked)
}

// watchErrors counts lists and watches that failed, by resource.
const watchErrors = "otelcol_receiver_k8s_fleet_watch_errors"

// Without one of its verbs the receiver tells what it cannot do.
func TestAMissingVerbIsTold(t *testing.T) {
	listFirst(t)
	cp := controlplanetest.Start(t)
	c := startCollector(t, account(t, cp), "")
	require.Eventually(t, func() bool { return strings.Contains(scrape(c.own), `resource="events"`) }, patience, tick)
	assert.Zero(t, sum(scrape(c.own), watchErrors, ""), "errors with every verb")
	c.Stop(t)
	missing := map[string]string{"pods": "list", "events": "watch", "nodes": "list", "deployments": "watch", "deviceclasses": "list"}
	for resource, verb := range missing {
		t.Run(verb+" "+resource, func(t *testing.T) {
			without(t, cp, verb, resource)
			c := startCollector(t, c.kubeconfig, "")
			assert.Eventually(t, func() bool {
				return sum(scrape(c.own), watchErrors, `resource="`+resource+`"`) > 0
			}, patience, tick, "no error is counted")
		})
	}
}

// without takes a verb on a resource from the collector's role until the test ends.
func without(t *testing.T, cp *controlplanetest.ControlPlane, verb, resource string) {
	t.Helper()
	api := cp.Client.RbacV1().ClusterRoles()
	role, err := api.Get(t.Context(), "llmfleet-k8s-fleet", metav1.GetOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		now, err := api.Get(context.Background(), role.Name, metav1.GetOptions{})
		require.NoError(t, err)
		now.Rules = role.Rules
		_, err = api.Update(context.Background(), now, metav1.UpdateOptions{})
		require.NoError(t, err)
	})
	less := role.DeepCopy()
	for i, rule := range role.Rules {
		if at := slices.Index(rule.Resources, resource); at >= 0 {
			less.Rules[i].Resources = slices.Delete(less.Rules[i].Resources, at, at+1)
			less.Rules = append(less.Rules, rbacv1.PolicyRule{
				APIGroups: rule.APIGroups, Resources: []string{resource},
				Verbs: slices.DeleteFunc(slices.Clone(rule.Verbs), func(v string) bool { return v == verb }),
			})
		}
	}
	// A rule may be left without resources, which the API server refuses.
	less.Rules = slices.DeleteFunc(less.Rules, func(r rbacv1.PolicyRule) bool { return len(r.Resources) == 0 })
	_, err = api.Update(t.Context(), less, metav1.UpdateOptions{})
	require.NoError(t, err)

	// The authorizer learns of it by a watch.
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Resource: resource, Group: less.Rules[len(less.Rules)-1].APIGroups[0],
		},
	}}
	require.Eventually(t, func() bool {
		answer, err := cp.Client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		return err == nil && !answer.Status.Allowed
	}, patience, tick)
}

// grants are the requests that a role allows, as "verb resource.group".
func grants(role any) map[string]bool {
	var rules []rbacv1.PolicyRule
	switch r := role.(type) {
	case *rbacv1.ClusterRole:
		rules = r.Rules
	case *rbacv1.Role:
		rules = r.Rules
	}
	all := map[string]bool{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all[verb+" "+resource+"."+group] = true
				}
			}
		}
	}
	return all
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

// requests are those that the collector made for objects, as "verb resource.group".
func requests(t *testing.T, cp *controlplanetest.ControlPlane) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, event := range cp.AuditEvents(t) {
		if event.User.Username == user && event.ObjectRef != nil {
			all[event.Verb+" "+event.ObjectRef.Resource+"."+event.ObjectRef.APIGroup] = true
		}
	}
	return all
}
