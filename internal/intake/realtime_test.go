// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// TestRealtime: whether a replica tells of tokens as they are made. Totals of
// whole requests do not, whether a dialect says so or their histogram does.
func TestRealtime(t *testing.T) {
	for name, c := range map[string]struct {
		page string
		want bool
	}{
		"vLLM counts each token": {`
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{model_name="m"} 8
`, true},
		"a gap ends with its token": {`
# TYPE vllm:inter_token_latency_seconds histogram
vllm:inter_token_latency_seconds_bucket{model_name="m",le="+Inf"} 7
vllm:inter_token_latency_seconds_sum{model_name="m"} 1
vllm:inter_token_latency_seconds_count{model_name="m"} 7
`, true},
		"a first token is not the next": {`
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{model_name="m",le="+Inf"} 7
vllm:time_to_first_token_seconds_sum{model_name="m"} 1
vllm:time_to_first_token_seconds_count{model_name="m"} 7
`, false},
		"SGLang counts requests that ended": {`
# TYPE sglang:generation_tokens_total counter
sglang:generation_tokens_total{model_name="m"} 8
`, false},
		"and, since v0.5.7, each step": {`
# TYPE sglang:generation_tokens_total counter
sglang:generation_tokens_total{model_name="m"} 8
# TYPE sglang:realtime_tokens_total counter
sglang:realtime_tokens_total{model_name="m",mode="decode"} 9
`, true},
		"TensorRT-LLM counts requests that ended": {`
# TYPE trtllm_generation_tokens_total counter
trtllm_generation_tokens_total{model_name="m"} 8
`, false},
		"and so does a histogram of their lengths": {`
# TYPE tgi_request_generated_tokens histogram
tgi_request_generated_tokens_bucket{model_name="m",le="+Inf"} 2
tgi_request_generated_tokens_sum{model_name="m"} 8
tgi_request_generated_tokens_count{model_name="m"} 2
`, false},
	} {
		t.Run(name, func(t *testing.T) {
			signals := []fleet.Signal{fleet.TTFT, fleet.ITL, fleet.GenerationTokens}
			registry := fleet.NewRegistry(fleet.Options{Grids: []window.Grid{window.NewGrid(interval, time.Minute, 5*time.Second)}, MaxReplicas: 10})
			registry.Open(noon + 1)
			reader := NewReader(Options{Dialects: dialect.Builtin(), Signals: signals, GroupBy: []string{keyModelName}}, registry)
			reader.Read(scraped(t, c.page, time.Second))
			judged := 0
			registry.Close(noon.Add(interval), fleet.Ask{Signals: signals}, func(f *fleet.Frame) {
				for i := range f.Members {
					judged++
					assert.Equal(t, c.want, f.Members[i].Realtime)
				}
			})
			require.Equal(t, 1, judged)
		})
	}
}
