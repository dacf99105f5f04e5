// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// The race detector makes pools forget, so that they allocate.
//go:build !race

package fleetidentityprocessor

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// steadyPage has signals of two ranks, a marked one, info series, a router's
// copy, and metrics that are no signal.
const steadyPage = `
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{model_name="m",engine="0",le="0.1"} 1
vllm:time_to_first_token_seconds_bucket{model_name="m",engine="0",le="+Inf"} 6
vllm:time_to_first_token_seconds_count{model_name="m",engine="0"} 6
vllm:time_to_first_token_seconds_bucket{model_name="m",engine="1",le="0.1"} 1
vllm:time_to_first_token_seconds_bucket{model_name="m",engine="1",le="+Inf"} 6
vllm:time_to_first_token_seconds_count{model_name="m",engine="1"} 6
# TYPE vllm:time_to_first_token_seconds_created gauge
vllm:time_to_first_token_seconds_created{model_name="m",engine="0"} 1.7537953e+09
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{model_name="m",engine="0"} 3
vllm:num_requests_waiting{model_name="m",engine="1"} 3
vllm:num_requests_waiting{server="http://a:8000"} 3
# TYPE vllm:request_success_total counter
vllm:request_success_total{model_name="m",engine="0",finished_reason="stop"} 8
vllm:request_success_total{model_name="m",engine="0",finished_reason="length"} 8
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{engine="0",block_size="16"} 1
vllm:cache_config_info{engine="1",block_size="16"} 1
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{Hostname="n1",UUID="GPU-1",modelName="NVIDIA H100",exported_pod="else",exported_namespace="prod"} 12
# TYPE request_success_total counter
request_success_total{path="/cart"} 7
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.7537953e+09
`

// TestSteadyPageAllocatesItsAttributes compares what a page of known series
// allocates with what it takes to put the same attributes in the same places.
func TestSteadyPageAllocatesItsAttributes(t *testing.T) {
	var after pmetric.Metrics
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		after = md
		return nil
	})
	require.NoError(t, err)
	p, err := NewFactory().CreateMetrics(t.Context(), processortest.NewNopSettings(NewFactory().Type()), createDefaultConfig(), next)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, p.Shutdown(context.Background())) }()

	page := scenariotest.Targets{}.Scrape(&scenariotest.Page{
		Target: map[string]string{"pod": "a", "uid": "u1", "k8s.pod.labels.llm-d.ai/role": "decode"},
		Lines:  scenariotest.Lines(t, steadyPage, 1)[0],
	}, time.Now())
	copied := func() pmetric.Metrics {
		md := pmetric.NewMetrics()
		page.CopyTo(md)
		return md
	}
	for range 2 { // the second time, all is known
		require.NoError(t, p.ConsumeMetrics(t.Context(), copied()))
	}
	stamps := addedTo(page, after)
	require.Len(t, stamps, 1+3*2, "the resource, and two series of three signals")

	bare := testing.AllocsPerRun(200, func() {
		for at, attributes := range placesIn(copied()) {
			if added := stamps[at]; len(added) > 0 {
				attributes.EnsureCapacity(attributes.Len() + len(added))
				for _, a := range added {
					attributes.PutStr(a.key, a.value)
				}
			}
		}
	})
	stamped := testing.AllocsPerRun(200, func() {
		if err := p.ConsumeMetrics(context.Background(), copied()); err != nil {
			panic(err)
		}
	})
	// Listing the places takes a few allocations that the processor does not need.
	listing := testing.AllocsPerRun(200, func() { placesIn(page) })
	assert.InDelta(t, bare-listing, stamped, 0)
}

type addition struct{ key, value string }

// placesIn are all attributes of a page: of its resource and of each point.
func placesIn(md pmetric.Metrics) []pcommon.Map {
	rm := md.ResourceMetrics().At(0)
	places := []pcommon.Map{rm.Resource().Attributes()}
	for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
		places = append(places, attributesOf(m)...)
	}
	return places
}

// addedTo are the attributes that a page has got, by place.
func addedTo(before, after pmetric.Metrics) map[int][]addition {
	added, was := map[int][]addition{}, placesIn(before)
	for at, attributes := range placesIn(after) {
		for k, v := range attributes.All() {
			if _, ok := was[at].Get(k); !ok {
				added[at] = append(added[at], addition{k, v.Str()})
			}
		}
	}
	return added
}
