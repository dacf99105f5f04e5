// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// ofTenants are the signals that are asked for, in their order.
var ofTenants = []fleet.Signal{fleet.PromptTokens, fleet.PrefixHits, fleet.GenerationTokens, fleet.Throttled}

func newTenantReader(places int, labels map[string][]string) *Reader {
	registry := fleet.NewRegistry(fleet.Options{
		Grids: []window.Grid{window.NewGrid(interval, time.Minute, 5*time.Second)}, MaxReplicas: places,
	})
	registry.Open(noon + 1)
	return NewReader(Options{
		Dialects: dialect.Builtin(), Signals: ofTenants, GroupBy: []string{"model_name", "engine_name"}, Tenants: true, TenantLabels: labels,
	}, registry)
}

// account is one series of a counter: its labels, and what it gains in the pane.
type account struct {
	metric string
	labels map[string]string
	gains  float64
}

// play lets counters run from 100 on, and returns what each tenant gained, by
// "source tenant signal".
func play(r *Reader, counters ...account) map[string]uint64 {
	for i, at := range []time.Duration{time.Second, 10 * time.Second} {
		md := pmetric.NewMetrics()
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("service.instance.id", "gateway:1064")
		metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
		for _, c := range counters {
			m := metrics.AppendEmpty()
			m.SetName(c.metric)
			sum := m.SetEmptySum()
			sum.SetIsMonotonic(true)
			sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			p := stamp(sum.DataPoints().AppendEmpty(), at)
			for k, v := range c.labels {
				p.Attributes().PutStr(k, v)
			}
			p.SetDoubleValue(100 + float64(i)*c.gains)
		}
		r.Read(md)
	}
	got := map[string]uint64{}
	r.registry.Close(noon.Add(interval), fleet.Ask{Signals: ofTenants}, func(f *fleet.Frame) {
		for i := range f.Members {
			m := &f.Members[i]
			for s, signal := range ofTenants {
				if n := m.Told[s].Observations(); n > 0 {
					got[fmt.Sprintf("%s %s %s", m.Identity.Engine, m.Identity.Replica, signal)] = n
				}
			}
		}
	})
	return got
}

func TestWhoseTokensTheyAre(t *testing.T) {
	type labels = map[string]string
	const usage = "llmfleet.tenant.tokens"
	for name, c := range map[string]struct {
		labels   map[string][]string
		counters []account
		want     map[string]uint64
	}{
		"kinds that do not overlap are added up": {nil, []account{
			{usage, labels{"tenant": "a", "token_type": "input_uncached"}, 20}, //nolint:gosec // no credential
			{usage, labels{"tenant": "a", "token_type": "input_cached"}, 80},
			{usage, labels{"tenant": "a", "token_type": "output"}, 7},
			{usage, labels{"tenant": "__other__", "token_type": "output"}, 3},
			{"llmfleet_tenant_requests_total", labels{"tenant": "a", "outcome": "throttled"}, 2},
		}, map[string]uint64{
			"tenant_usage a prompt_tokens": 100, "tenant_usage a prefix_hits": 80, "tenant_usage a generation_tokens": 7,
			"tenant_usage a throttled": 2, "tenant_usage __other__ generation_tokens": 3,
		}},
		"kinds that overlap are not": {nil, []account{
			{"gen_ai_client_inference_tokens_total", labels{"tenant_id": "a", "gen_ai_token_type": "input"}, 100},
			{"gen_ai_client_inference_input_tokens_by_cache_total", labels{"tenant_id": "a", "gen_ai_token_cache": "read"}, 80},
			{"gen_ai_client_inference_tokens_total", labels{"tenant_id": "b", "gen_ai_token_type": "output"}, 9},
		}, map[string]uint64{"genai a prompt_tokens": 100, "genai a prefix_hits": 80, "genai b generation_tokens": 9}},
		"who does not say, and who stands for many": {nil, []account{
			{"litellm_input_tokens_metric_total", labels{"team": "None", "model": "x"}, 5},
			{"litellm_output_tokens_metric_total", labels{"team": "red", "model": "x"}, 6},
			{"litellm_proxy_failed_requests_metric_total", labels{"team": "red", "exception_status": "429"}, 2},
			{"litellm_proxy_failed_requests_metric_total", labels{"team": "red", "exception_status": "500"}, 1},
		}, map[string]uint64{
			"litellm __unknown__ prompt_tokens": 5, "litellm red generation_tokens": 6, "litellm red throttled": 2,
		}},
		"no label at all": {nil, []account{{"litellm_input_tokens_metric_total", nil, 5}}, map[string]uint64{
			"litellm __unknown__ prompt_tokens": 5,
		}},
		"an engine, where its label is known": {map[string][]string{"sglang": {"customer"}}, []account{
			{"sglang:prompt_tokens_total", labels{"customer": "a"}, 5},
			{"sglang:prompt_tokens_total", labels{"customer": "b"}, 6},
			{"vllm:prompt_tokens_total", labels{"customer": "b"}, 7},
		}, map[string]uint64{"sglang a prompt_tokens": 5, "sglang b prompt_tokens": 6}},
		"other labels than the dialect's": {map[string][]string{"litellm": {"end_user"}}, []account{
			{"litellm_input_tokens_metric_total", labels{"team": "red", "end_user": "u1"}, 5},
		}, map[string]uint64{"litellm u1 prompt_tokens": 5}},
		"a label as OpenTelemetry spells it, on a page of Prometheus": {map[string][]string{"genai": {"x.customer"}}, []account{
			{"gen_ai_client_inference_tokens_total", labels{"x_customer": "a", "gen_ai_token_type": "output"}, 9},
		}, map[string]uint64{"genai a generation_tokens": 9}},
		"a client that calls itself many": {nil, []account{
			{"litellm_output_tokens_metric_total", labels{"team": "__other__"}, 5},
			{"litellm_output_tokens_metric_total", labels{"team": "__unknown__"}, 6},
		}, map[string]uint64{"litellm __invalid__ generation_tokens": 11}},
		"a name that is none": {nil, []account{
			{usage, labels{"tenant": "__nobody__", "token_type": "output"}, 5},
			{usage, labels{"tenant": "line\nbreak", "token_type": "output"}, 6},
		}, map[string]uint64{"tenant_usage __invalid__ generation_tokens": 11}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, play(newTenantReader(10, c.labels), c.counters...))
		})
	}
}

// TestMoreTenantsThanPlaces: nothing is lost, it counts under another name.
func TestMoreTenantsThanPlaces(t *testing.T) {
	for n, others := range map[int]uint64{4: 0, 5: 1, 40: 36} {
		r := newTenantReader(4, nil)
		var counters []account
		for i := range n {
			counters = append(counters, account{
				"litellm_output_tokens_metric_total", map[string]string{"team": fmt.Sprint("t", i)}, 1,
			})
		}
		got := play(r, counters...)
		var total uint64
		for _, n := range got {
			total += n
		}
		assert.EqualValues(t, n, total)
		assert.Equal(t, others, got["litellm __other__ generation_tokens"])
		assert.Equal(t, others, r.Tally().Ignored(Crowd), "once a series")
	}
}

// TestNobodyElseReadsWhatIsDerived: a reader of engines passes over it.
func TestNobodyElseReadsWhatIsDerived(t *testing.T) {
	for _, name := range []string{"llmfleet.tenant.tokens", "llmfleet_tenant_tokens_total"} {
		r := newReader()
		md, m := pageOf("i", name)
		stamp(m.SetEmptyGauge().DataPoints().AppendEmpty(), time.Second)
		r.Read(md)
		assert.Equal(t, isElse, r.names.learn(name).meaning)
	}
	assert.Equal(t, isCanonical, newReader().names.learn("llmfleet.engine.ttft").meaning)
}
