// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheGatewaysPageCountsTokensByTenant(t *testing.T) {
	sim := simulate(t, watchedFleet+"gateway_page: true\n")
	targets := sim.Targets()
	require.Len(t, targets, 4, "three replicas and the gateway")
	gateway := targets[3]
	assert.Equal(t, "ai-gateway", gateway.Name())
	assert.Equal(t, map[string]string{"namespace": "fleetsim", "pod": "ai-gateway"}, gateway.Labels())
	assert.Empty(t, gateway.Engines())

	sim.AdvanceTo(5 * time.Minute)
	page, status := gateway.AppendPage(nil)
	assert.Equal(t, 200, status)
	var told, counted struct{ prompt, cached, output, requests float64 }
	families := parsePage(t, string(page))
	require.Len(t, families, 1)
	tenants := map[string]bool{}
	for _, m := range families["gen_ai_client_token_usage"].GetMetric() {
		labels := labelsOf(m)
		assert.Equal(t, "m", labels["gen_ai_request_model"])
		tenants[labels["tenant_id"]] = true
		h := m.GetHistogram()
		assert.Len(t, h.GetBucket(), 15, "14 bounds and all")
		assert.Equal(t, h.GetSampleCount(), h.GetBucket()[13].GetCumulativeCount(), "none is above 67,108,864")
		switch labels["gen_ai_token_type"] {
		case "input":
			told.prompt += h.GetSampleSum()
			told.requests += float64(h.GetSampleCount())
		case "cached_input":
			told.cached += h.GetSampleSum()
		case "output":
			told.output += h.GetSampleSum()
		}
	}
	for _, e := range sim.Engines() {
		s := e.Snapshot()
		counted.prompt += s.PromptTokens
		counted.cached += s.PrefixHits
		counted.output += s.GeneratedTokens
		counted.requests += s.Finished
	}
	assert.Equal(t, counted, told)
	assert.Len(t, tenants, 21)
	assert.Contains(t, tenants, "acme")
}

func TestTheGatewaysPageIsFoundLikeTheOthers(t *testing.T) {
	server := serve(t, simulate(t, watchedFleet+"gateway_page: true\n"), time.Minute)
	urls := server.URLs()
	assert.Contains(t, get(t, urls[3]).body, `gen_ai_client_token_usage_bucket{gen_ai_operation_name="chat",`)
	assert.Contains(t, get(t, server.TargetsURL()).body, `"pod": "ai-gateway"`)
}
