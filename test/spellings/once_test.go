// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package spellings

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/intake"
)

// routerPage is the page of vLLM's production-stack router: what it last saw of each engine of the fleet, in vLLM's words.
func routerPage(time.Duration) []byte {
	var page []byte
	for _, family := range []struct{ name, kind string }{
		{"num_requests_running", "gauge"},
		{"num_requests_waiting", "gauge"},
		{"gpu_prefix_cache_hits_total", "gauge"},
		{"gpu_prefix_cache_queries_total", "gauge"},
	} {
		page = fmt.Appendf(page, "# TYPE vllm:%s %s\n", family.name, family.kind)
		for replica := range 4 {
			page = fmt.Appendf(page, "vllm:%s{server=\"http://chat-%d:8000\"} 77\n", family.name, replica)
		}
	}
	return page
}

// TestRouterCopies: a router that repeats its engines' metrics adds neither replicas nor load.
func TestRouterCopies(t *testing.T) {
	engines := simulate(t, chat(fleetsim.Current), onPod)
	want := outlier(t, everything(), engines)
	got := outlier(t, everything(), engines, pod("router-0").scrape(t, routerPage))
	assert.Empty(t, want.differences(got))
	assert.Positive(t, got.ignored()["router_copy"])
	assert.EqualValues(t, 4, got.told["members"])
}

// secondPort scrapes every replica of the fleet on another port, a little later, as a Dynamo worker shows its engine's page
// on its own port, behind its own families.
func secondPort(t *testing.T, edit func(page []byte) []byte) (first, second []delivery) {
	t.Helper()
	simulation, err := fleetsim.New(chat(fleetsim.Current), epoch.Add(-lead))
	require.NoError(t, err)
	scrape := func(into []delivery, port int, at time.Duration, before string) []delivery {
		simulation.AdvanceTo(lead + at)
		for _, target := range simulation.Targets() {
			page, _ := target.AppendPage([]byte(before))
			s := onPod(target)
			s.instance, s.edit = fmt.Sprintf("%s:%d", target.Name(), port), edit
			into = append(into, delivery{at, s.receive(t, page, plainText, epoch.Add(at))})
		}
		return into
	}
	for at := offset; at < length; at += pace {
		first = scrape(first, 8000, at, "")
		second = scrape(second, 9090, at+2*time.Second, dynamoFamilies)
	}
	return first, second
}

// dynamoFamilies are some of a worker's own.
const dynamoFamilies = `# TYPE dynamo_component_inflight_requests gauge
dynamo_component_inflight_requests{dynamo_component="backend",dynamo_endpoint="generate",dynamo_namespace="dynamo",model="test/chat-8b"} 3
# TYPE dynamo_component_gpu_cache_usage_percent gauge
dynamo_component_gpu_cache_usage_percent{dp_rank="0",dynamo_component="backend",dynamo_namespace="dynamo",model="test/chat-8b"} 0.5
`

// TestPassThrough: one engine on two ports of its pod is counted once, whether its page says when the process started or
// not.
func TestPassThrough(t *testing.T) {
	for name, edit := range map[string]func([]byte) []byte{
		"process start told": nil,
		"process start untold": func(page []byte) []byte {
			lines := bytes.SplitAfter(page, []byte("\n"))
			return bytes.Join(slices.DeleteFunc(lines, func(line []byte) bool {
				return bytes.Contains(line, []byte("process_start_time_seconds"))
			}), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			engines, workers := secondPort(t, edit)
			want := outlier(t, everything(), engines)
			got := outlier(t, everything(), engines, workers)
			assert.Empty(t, want.differences(got))
			assert.Positive(t, got.ignored()["copy"])
			assert.EqualValues(t, 4, got.told["members"])
		})
	}
}

// TestDualEmission: llm-d's endpoint picker says everything by its new names and its old ones. Each signal is read by one
// name, the new one, and a fleet beside it is judged as if it were not there.
func TestDualEmission(t *testing.T) {
	page, err := os.ReadFile("testdata/epp.prom")
	require.NoError(t, err)
	require.Contains(t, string(page), "inference_objective_request_total{")

	picker := pod("epp-0")
	md := picker.receive(t, page, plainText, epoch)
	read := make(map[string][]string) // names, by signal
	total := make(map[string]float64)
	for _, sense := range intake.Explain(intake.Options{Dialects: dialect.Builtin(), GroupBy: []string{"engine_name"}}, md) {
		for _, told := range sense.Told {
			if told.Reason != 0 {
				assert.Equal(t, intake.Unspoken, told.Reason, sense.Metric)
				continue
			}
			signal := told.Entry.Signal.String()
			read[signal] = append(read[signal], sense.Metric)
			total[signal] += told.Value
		}
	}
	// The sums of what the page says by the new names.
	assert.Equal(t, map[string]float64{
		"finished": 120 + 30, "errors": 6, "e2e": 300 + 90, "prompt_tokens": 64_000, "generation_tokens": 9_000,
		"prefix_hits": 40_000, "prefix_queries": 64_000, "running": 7, "route_time": 0.3, "kv_usage": 0.25, "waiting": 2,
	}, total)
	for signal, names := range read {
		for _, name := range names {
			assert.True(t, strings.HasPrefix(name, "llm_d_epp_"), "%s is read from %s", signal, name)
		}
	}

	engines := simulate(t, chat(fleetsim.Current), onPod)
	want := outlier(t, everything(), engines)
	beside := outlier(t, everything(), engines, picker.scrape(t, func(time.Duration) []byte { return page }))
	assert.Empty(t, want.differences(beside))
	assert.EqualValues(t, 4, beside.told["members"])
}
