// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"maps"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/internal/tenant"
)

// TestUsage: whatever a source counts as input, the types of tokens do not
// overlap.
func TestUsage(t *testing.T) {
	const in, out, hit, created = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_creation.input_tokens"
	anthropic := func(usage told) told {
		usage["gen_ai.provider.name"] = "anthropic"
		return usage
	}
	for _, c := range []struct {
		name                     string
		attributes               told
		uncached, cached, output int64
		ignored                  Reason
	}{
		{"input includes the cached", told{in: 1000, hit: 800, out: 50}, 200, 800, 50, 0},
		{"input is beside the cached", anthropic(told{in: 200, hit: 800, out: 50}), 200, 800, 50, 0},
		{"all was cached", told{in: 800, hit: 800, out: 50}, 0, 800, 50, 0},
		{"all was cached, and input is beside it", anthropic(told{in: 0, hit: 800, out: 50}), 0, 800, 50, 0},
		{"nothing was cached", told{in: 1000, hit: 0, out: 50}, 1000, 0, 50, 0},
		{"of a cache nothing is told", told{in: 1000, out: 50}, 1000, untold, 50, 0},
		{"input includes what was written to the cache", told{in: 1000, hit: 300, created: 500}, 700, 300, untold, 0},
		{"what was written is beside input", anthropic(told{in: 200, hit: 300, created: 500}), 700, 300, untold, 0},
		{"what was written is beside input, of hits nothing is told", anthropic(told{in: 200, created: 500}), 700, untold, untold, 0},
		{"more was cached than input says", told{in: 200, hit: 800, out: 50}, 200, 800, 50, CacheOverInput},
		{"zeros stand for nothing", told{in: 0, hit: 0, out: 0}, untold, untold, untold, 0},
		{"input was left out", told{in: 0, out: 50}, untold, untold, 50, 0},
		{"only hits are told", told{hit: 800, out: 50}, untold, 800, 50, 0},
		{"only output is told", told{out: 50}, untold, untold, 50, 0},
		{"no output was made", told{in: 10, out: 0}, 10, untold, 0, 0},
		{"old names", told{"gen_ai.usage.prompt_tokens": 10, "gen_ai.usage.completion_tokens": 5, "gen_ai.usage.cached_tokens": 4}, 6, 4, 5, 0},
		{"new names go first", told{in: 10, "gen_ai.usage.prompt_tokens": 11, out: 5, "gen_ai.usage.completion_tokens": 6}, 10, untold, 5, 0},
		{"doubles and digits", told{in: 10.0, hit: "4", out: "5"}, 6, 4, 5, 0},
		{"an empty text says nothing", told{in: "", "gen_ai.usage.prompt_tokens": 11, out: 5}, 11, untold, 5, 0},
		{"less than nothing", told{in: -1, out: 5}, untold, untold, 5, BadUsage},
		{"a bad one lets another speak", told{in: -1, "gen_ai.usage.prompt_tokens": 11, out: 5}, 11, untold, 5, BadUsage},
		{"half a token", told{in: 10.5, out: 5}, untold, untold, 5, BadUsage},
		{"no number", told{in: "many", out: 5}, untold, untold, 5, BadUsage},
		{"another type", told{in: []any{10}, out: 5}, untold, untold, 5, BadUsage},
		{"more than anyone can send", told{in: int64(1) << 53, out: 5}, untold, untold, 5, BadUsage},
		{"not a number", told{in: math.NaN(), out: math.Inf(1), hit: 1}, untold, 1, untold, BadUsage},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := NewRequests(plain())
			all, _ := requestsIn(q, spansOf(t, spanShape{kind: ptrace.SpanKindServer, attributes: withModel(c.attributes)}))
			require.Len(t, all, 1)
			assert.Equal(t, expected(tenant.Unknown, "m", c.uncached, c.cached, c.output, untold), all[0])
			for _, r := range []Reason{BadUsage, CacheOverInput} {
				assert.Equal(t, r == c.ignored, q.Tally().Ignored(r) == 1, r)
			}
		})
	}
}

func withModel(attributes told) told {
	attributes["gen_ai.request.model"] = "m"
	return attributes
}

// TestNoUsageOfAFailure: a request that failed may well have taken nothing.
func TestNoUsageOfAFailure(t *testing.T) {
	all, _ := requestsIn(NewRequests(plain()), spansOf(t, spanShape{
		status: ptrace.StatusCodeError, attributes: withModel(told{"gen_ai.usage.input_tokens": 0, "gen_ai.usage.output_tokens": 0}),
	}))
	assert.Equal(t, []tenant.Request{failing(expected(tenant.Unknown, "m", 0, untold, 0, untold), tenant.Failed)}, all)
}

// TestIncludesCachedBySource: a scope goes before a service, that before a
// provider, and settings before what is known.
func TestIncludesCachedBySource(t *testing.T) {
	read := func(settings map[string]bool, scope, service, provider string) uint64 {
		o := plain()
		o.IncludesCached = settings
		all, _ := requestsIn(NewRequests(o), spansOf(t, spanShape{scope: scope, resource: told{"service.name": service}, attributes: told{
			"gen_ai.system": provider, "gen_ai.usage.input_tokens": 1000, "gen_ai.usage.cache_read.input_tokens": 800,
		}}))
		require.Len(t, all, 1)
		return all[0].Total()
	}
	const including, excluding = 1000, 1800
	assert.EqualValues(t, including, read(nil, "", "", ""))
	assert.EqualValues(t, including, read(nil, "", "", "openai"))
	assert.EqualValues(t, excluding, read(nil, "", "", "anthropic"))
	assert.EqualValues(t, excluding, read(nil, "", "", "aws.bedrock"))
	assert.EqualValues(t, excluding, read(nil, "", "", "Anthropic"))
	assert.EqualValues(t, excluding, read(nil, "", "", "AWS.Bedrock"))
	assert.EqualValues(t, including, read(nil, "LiteLLM", "", "anthropic"))
	assert.EqualValues(t, excluding, read(map[string]bool{"My-Gateway": false}, "", "my-gateway", ""))
	assert.EqualValues(t, including, read(nil, "litellm", "", "anthropic"))
	assert.EqualValues(t, including, read(nil, "", "litellm", "anthropic"))
	assert.EqualValues(t, including, read(map[string]bool{"anthropic": true}, "", "", "anthropic"))
	assert.EqualValues(t, excluding, read(map[string]bool{"openai": false}, "", "", "openai"))
	assert.EqualValues(t, including, read(map[string]bool{"edge": true}, "", "edge", "anthropic"))
	assert.EqualValues(t, excluding, read(map[string]bool{"edge": true, "acme/sdk": false}, "acme/sdk", "edge", ""))
}

func TestTimeToFirstToken(t *testing.T) {
	for _, c := range []struct {
		attributes told
		ttft       float64
		bad        bool
	}{
		{told{"gen_ai.latency.time_to_first_token": 0.25, "gen_ai.response.time_to_first_chunk": 0.5}, 0.25, false},
		{told{"gen_ai.server.time_to_first_token": 2}, 2, false},
		{told{"gen_ai.response.time_to_first_chunk": "0.5"}, 0.5, false},
		{told{"gen_ai.response.time_to_first_chunk": 1e6}, 1e6, false},
		{told{"gen_ai.response.time_to_first_chunk": 0}, untold, false}, // not measured
		{told{"gen_ai.response.time_to_first_chunk": -0.1}, untold, true},
		{told{"gen_ai.response.time_to_first_chunk": 1e6 + 1}, untold, true},
		{told{"gen_ai.response.time_to_first_chunk": math.NaN()}, untold, true},
		{told{"gen_ai.response.time_to_first_chunk": "soon"}, untold, true},
	} {
		q := NewRequests(plain())
		all, _ := requestsIn(q, spansOf(t, spanShape{kind: ptrace.SpanKindClient, attributes: withModel(c.attributes)}))
		require.Len(t, all, 1)
		assert.InDelta(t, c.ttft, all[0].TTFT, 0, c.attributes)
		assert.Equal(t, c.bad, q.Tally().Ignored(BadUsage) == 1, c.attributes)
	}
}

func TestOutcome(t *testing.T) {
	const failed = ptrace.StatusCodeError
	for _, c := range []struct {
		name    string
		span    spanShape
		outcome tenant.Outcome
	}{
		{"nothing", spanShape{}, tenant.OK},
		{"ok", spanShape{status: ptrace.StatusCodeOk, attributes: told{"http.response.status_code": 200}}, tenant.OK},
		{"a recovered exception", spanShape{exception: "RateLimitError"}, tenant.OK},
		{"status", spanShape{status: failed, message: "connection reset"}, tenant.Failed},
		{"HTTP status", spanShape{attributes: told{"http.response.status_code": 503}}, tenant.Failed},
		{"old name, as a text", spanShape{attributes: told{"http.status_code": "404"}}, tenant.Failed},
		{"error type", spanShape{attributes: told{"error.type": "timeout"}}, tenant.Failed},
		{"no error type", spanShape{attributes: told{"error.type": ""}}, tenant.OK},
		{"no status", spanShape{attributes: told{"http.response.status_code": "NaN"}}, tenant.OK},
		{"no status either", spanShape{attributes: told{"http.response.status_code": "Infinity"}}, tenant.OK},
		{"nor this", spanShape{attributes: told{"http.response.status_code": math.Inf(1)}}, tenant.OK},
		{"more than a status", spanShape{attributes: told{"http.response.status_code": 1e308}}, tenant.OK},
		{"a part of one", spanShape{attributes: told{"http.response.status_code": 499.5}}, tenant.OK},
		{"less than one", spanShape{attributes: told{"http.response.status_code": -500}}, tenant.OK},
		{"one that is none lets another speak", spanShape{attributes: told{"http.response.status_code": "NaN", "http.status_code": 500}}, tenant.Failed},
		{"one that is none is no reason", spanShape{status: failed, message: "rate limit", attributes: told{"http.response.status_code": 0}}, tenant.Throttled},
		{"429", spanShape{attributes: told{"http.response.status_code": 429}}, tenant.Throttled},
		{"429 as error type", spanShape{attributes: told{"error.type": "429"}}, tenant.Throttled},
		{"the provider's 429", spanShape{status: failed, attributes: told{"litellm.provider.error.code": "429"}}, tenant.Throttled},
		{"a class", spanShape{attributes: told{"error.type": "RateLimitError"}}, tenant.Throttled},
		{"a code", spanShape{attributes: told{"error.type": "rate_limit_exceeded", "http.response.status_code": 400}}, tenant.Throttled},
		{"AWS", spanShape{attributes: told{"error.type": "ThrottlingException"}}, tenant.Throttled},
		{"gRPC", spanShape{attributes: told{"error.type": "RESOURCE_EXHAUSTED"}}, tenant.Throttled},
		{"budget", spanShape{attributes: told{"error.type": "budget_exceeded"}}, tenant.Throttled},
		{"quota", spanShape{attributes: told{"error.type": "insufficient_quota"}}, tenant.Throttled},
		{"an exception", spanShape{status: failed, exception: "RateLimitError", message: "Error code: 429 - {}"}, tenant.Throttled},
		{"another exception", spanShape{status: failed, exception: "BadRequestError", message: "Error code: 400 - no quota for you"}, tenant.Failed},
		{"only a message", spanShape{status: failed, message: "Error code: 429 - slow down"}, tenant.Throttled},
		{"a message that nobody set an error for", spanShape{message: "429"}, tenant.OK},
		{"a number like it", spanShape{status: failed, message: "at most 4290 tokens"}, tenant.Failed},
	} {
		c.span.attributes = withModel(merged(c.span.attributes))
		c.span.kind = ptrace.SpanKindServer
		all, _ := requestsIn(NewRequests(plain()), spansOf(t, c.span))
		require.Len(t, all, 1, c.name)
		assert.Equal(t, c.outcome.String(), all[0].Outcome.String(), c.name)
	}
}

// merged are attributes of several.
func merged(several ...told) told {
	all := told{}
	for _, some := range several {
		maps.Copy(all, some)
	}
	return all
}
