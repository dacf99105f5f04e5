// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestRoutersKnowEveryGateway: routers send to each gateway by the name that the StatefulSet and its headless Service give
// it, ready or not, at a port that is open there; and route by the model, so that a fleet stays together.
func TestRoutersKnowEveryGateway(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, installed := range installations(t) {
		all := installed.render(t)
		routers := selectedBy(t, map[string]string{"app.kubernetes.io/component": "router"}, all)
		for _, router := range routers {
			seen++
			set := of[appsv1.StatefulSet](t, all, "StatefulSet")[0]
			services := of[corev1.Service](t, all, "Service")
			i := slices.IndexFunc(services, func(s corev1.Service) bool { return s.Name == set.Spec.ServiceName })
			require.GreaterOrEqual(t, i, 0, "there is no Service %s", set.Spec.ServiceName)
			assert.Equal(t, corev1.ClusterIPNone, services[i].Spec.ClusterIP)
			assert.True(t, services[i].Spec.PublishNotReadyAddresses)

			exporter := router.parsed(t).Exporters["load_balancing"]
			assert.Equal(t, "attributes", exporter["routing_key"])
			assert.Contains(t, exporter["routing_attributes"], "model_name")
			var want []any
			for ordinal := range *set.Spec.Replicas {
				want = append(want, fmt.Sprintf("%s-%d.%s.%s.svc:4317", set.Name, ordinal, set.Spec.ServiceName, namespace))
			}
			assert.Equal(t, want, at(exporter, "resolver", "static", "hostnames"))
			assert.Contains(t, opened(t, gateway(t, all)), int32(4317))
			for name := range router.parsed(t).Processors {
				assert.NotEqual(t, "batch", component(name), "a batch mixes models")
			}
		}
	}
	assert.Positive(t, seen)
}

// TestConfigChangesRollPods: pods are replaced when what their collector reads changes, and only then.
func TestConfigChangesRollPods(t *testing.T) {
	t.Parallel()
	scaled := installation{flags: []string{"--values=" + chartFolder + "/examples/scale-out/values.yaml"}}
	before := annotations(t, scaled.render(t))
	require.Len(t, before, 2)
	assert.Equal(t, before, annotations(t, scaled.render(t, "--set=resources.requests.cpu=2")))
	grown := annotations(t, scaled.render(t, "--set=replicas=4"))
	assert.Equal(t, before["llmfleet"], grown["llmfleet"], "gateways do not know of each other")
	assert.NotEqual(t, before["llmfleet-router"], grown["llmfleet-router"])
	louder := annotations(t, scaled.render(t, "--set=logLevel=debug"))
	assert.NotEqual(t, before["llmfleet"], louder["llmfleet"])
}

// annotations returns those of the pods, by workload.
func annotations(t *testing.T, all manifests) map[string]map[string]string {
	t.Helper()
	found := map[string]map[string]string{}
	for _, w := range workloads(t, all) {
		require.NotEmpty(t, w.pod.Annotations)
		found[w.name] = w.pod.Annotations
	}
	return found
}
