// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/binarytest"
	"github.com/llmfleet/llmfleet/test/kube/controlplanetest"
)

// gatewayAddress is the gateway's pod's: nobody else's on this machine.
const gatewayAddress = "127.77.0.1"

// quickValues hasten what takes its time, and say where the gateway's pod is.
func quickValues(address string) string {
	return `
podAnnotations: {` + controlplanetest.PodIPAnnotation + `: ` + address + `}
inputs: {scrape: {interval: 1s}}
presets:
  outlier: {config: {interval: 2s, window: 6s, lateness: 2s}}
  kubernetes: {config: {collection_interval: 1s}}
`
}

// installations of the chart differ in what they ask the API server.
var installations = map[string]struct {
	values string
	tells  []string // metrics: something of each is told
	facts  bool
	kinds  []string // of the roles that it gets
}{
	"engines": {
		tells: []string{"llmfleet_fleet_replicas"},
		kinds: []string{"ClusterRole"},
	},
	"everything": {
		values: `{presets: {coldstart: {enabled: true}, capacity: {enabled: true}, gpu: {enabled: true}, epp: {enabled: true}}}`,
		tells:  []string{"llmfleet_fleet_replicas", "llmfleet_gpu_state"},
		facts:  true,
		kinds:  []string{"ClusterRole"},
	},
	"engines of one namespace": {
		values: `{namespaces: [chat], presets: {engines: {nodeLabels: false}}}`,
		tells:  []string{"llmfleet_fleet_replicas"},
		kinds:  []string{"Role"},
	},
	"a shard of one namespace": {
		values: `{namespaces: [chat], replicas: 2, shardScrape: {enabled: true}, presets: {capacity: {enabled: true}}}`,
		tells:  []string{"llmfleet_gpu_state"}, // the models may be those of the other shard
		kinds:  []string{"ClusterRole", "Role", "Role"},
	},
	"traces alone": { // no node and no pod is asked for
		values: `{inputs: {scrape: {enabled: false}, otlp: {enabled: true}}}`,
	},
}

// The chart's gateway finds and tells what it should in the image's file system, with the roles that the chart gives it;
// it uses all of them, asks for nothing else, and says what it cannot do without one of their verbs.
func testRoles(t *testing.T, cp *controlplanetest.ControlPlane) {
	t.Helper()
	n, k := newNewcomer(t, cp), newKubelet(t, cp, listFirst)
	t.Cleanup(func() { n.does(t, "kubectl --namespace llmfleet delete persistentvolumeclaims --all") })
	for name, installation := range installations {
		t.Run(name, func(t *testing.T) {
			before := len(cp.AuditEvents(t))
			n.does(t, "helm install llmfleet deploy/helm/llmfleet --namespace llmfleet --create-namespace --wait --timeout 1m"+
				" --values "+binarytest.WriteFile(t, "quick.yaml", quickValues(gatewayAddress))+
				" --values "+binarytest.WriteFile(t, "values.yaml", installation.values))
			t.Cleanup(func() { n.does(t, "helm uninstall llmfleet --namespace llmfleet --wait --timeout 1m") })
			var kinds []string
			for _, r := range roles(t, cp) {
				kinds = append(kinds, r.kind())
			}
			assert.Equal(t, installation.kinds, kinds)

			run := func(t *testing.T) *collector {
				t.Helper()
				return k.gateway(t)
			}
			t.Run("each permission is used", func(t *testing.T) {
				c := run(t)
				require.EventuallyWithT(t, func(col *assert.CollectT) {
					for _, metric := range installation.tells {
						assert.Positive(col, sum(scrape(c.metrics), metric, ""), metric)
					}
					assert.Equal(col, installation.facts, sum(scrape(c.own), "otelcol_receiver_k8s_fleet_facts", "") > 0)
				}, patience, tick)
				if installation.kinds == nil {
					assert.Empty(t, requests(t, cp, before))
					return
				}
				awaitLeast(t, cp, before)
				assert.NotContains(t, c.Output(), "forbidden")
			})
			if installation.kinds != nil {
				checkEachVerb(t, cp, run)
			}
		})
	}
}

// gateway runs the first gateway of the release.
func (k *kubelet) gateway(t *testing.T) *collector {
	t.Helper()
	c := &collector{
		Process: k.start(t, gatewayPod(t, k.cp)),
		own:     gatewayAddress + ":8888",
		metrics: gatewayAddress + ":9464",
	}
	c.awaitAnswer(t)
	return c
}
