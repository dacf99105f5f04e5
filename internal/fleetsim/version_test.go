// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// releases maps a version to the revision of vLLM that has its page, as the
// history of vLLM's names calls it.
var releases = map[Version]string{
	Current: "2026-08-17", VLLMv011: "2025-10-02", VLLMv09: "v0.9.2", VLLMv06: "v0.6.6", VLLMRay: "2026-08-17", VLLMRust: "2026-08-17",
}

func vllmOf(version Version) string {
	return strings.Replace(oneVLLM, "engine: vllm", "engine: vllm, version: "+string(version), 1)
}

// vllmPage is the page of replica 1 in one version, families named as vLLM
// names them.
func vllmPage(t *testing.T, version Version, at time.Duration) map[string]*dto.MetricFamily {
	t.Helper()
	page := pageAt(t, simulate(t, vllmOf(version)), 1, at)
	if version == VLLMRust {
		// The parser at hand reads the older format, where TYPE lines have the
		// names of samples.
		page = regexp.MustCompile(`(?m)^# (HELP|TYPE) (\S+)(.* counter)$`).ReplaceAllString(page, "# $1 ${2}_total$3")
	}
	families := map[string]*dto.MetricFamily{}
	for name, f := range parsePage(t, page) {
		families[strings.Replace(name, "ray_vllm_", "vllm:", 1)] = f
	}
	return families
}

// declared reads which names one revision of vLLM declares, without _total, and
// the signals they are.
func declared(t *testing.T, revision string) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../dialect/testdata/vllm.tsv")
	require.NoError(t, err)
	var revisions []string
	names := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if list, found := strings.CutPrefix(line, "# versions: "); found {
			revisions = strings.Fields(list)
		}
		columns := strings.Split(strings.TrimSpace(line), "\t")
		if strings.HasPrefix(line, "#") || len(columns) != 3 {
			continue
		}
		at := slices.Index(revisions, revision)
		for span := range strings.FieldsSeq(columns[1]) {
			from, to, several := strings.Cut(span, "..")
			if !several {
				to = from
			}
			if slices.Index(revisions, from) <= at && at <= slices.Index(revisions, to) {
				names[strings.TrimSuffix(columns[0], "_total")] = columns[2]
			}
		}
	}
	require.NotEmpty(t, names, revision)
	return names
}

func TestAVersionHasTheNamesOfItsRelease(t *testing.T) {
	for version, revision := range releases {
		names, signals := declared(t, revision), map[string]bool{}
		for name := range vllmPage(t, version, 30*time.Second) {
			name = strings.TrimSuffix(name, "_total")
			if !strings.HasPrefix(name, "vllm:") || strings.HasSuffix(name, "_created") {
				continue
			}
			assert.Contains(t, names, name, version)
			signals[names[name]] = true
		}
		for name, signal := range names {
			seldom := signal == "-" || strings.Contains(name, "nixl") || strings.Contains(name, "offload") || signal == "errors"
			// On the page behind a flag: old names in the release that hides them.
			hidden := version == VLLMv011 && strings.HasPrefix(name, "vllm:gpu_")
			// Ray drops what was never counted.
			unused := version == VLLMRay && signal == "preemptions"
			assert.True(t, signals[signal] || seldom || hidden || unused, "%s lacks %s, which is %s", version, signal, name)
		}
	}
}

// renamed lists old names, each with the one that says the same on the current
// page.
var renamed = []struct{ old, now string }{
	{"vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc"},
	{"vllm:gpu_prefix_cache_queries_total", "vllm:prefix_cache_queries_total"},
	{"vllm:gpu_prefix_cache_hits_total", "vllm:prefix_cache_hits_total"},
	{"vllm:time_per_output_token_seconds", "vllm:inter_token_latency_seconds"},
	{"vllm:time_in_queue_requests", "vllm:request_queue_time_seconds"},
}

func TestEveryVersionTellsTheSameNumbers(t *testing.T) {
	const at = 45 * time.Second
	current := vllmPage(t, Current, at)
	for version := range releases {
		compared := 0
		for name, family := range vllmPage(t, version, at) {
			now := name
			for _, r := range renamed {
				if r.old == name {
					now = r.now
				}
			}
			want, found := current[now]
			if !found || !strings.HasPrefix(name, "vllm:") {
				continue
			}
			compared++
			for _, got := range family.GetMetric() {
				sameMetric(t, string(version)+" "+name, theSame(t, want, got), got)
			}
		}
		assert.Greater(t, compared, 15, version)
	}
}

// theSame finds the series of a family that tells the same by the labels that
// versions share.
func theSame(t *testing.T, family *dto.MetricFamily, m *dto.Metric) *dto.Metric {
	t.Helper()
	labels := labelsOf(m)
	for _, other := range family.GetMetric() {
		same := true
		for _, own := range []string{"reason", "source", "finished_reason", "sleep_state"} {
			same = same && labelsOf(other)[own] == labels[own]
		}
		if same {
			return other
		}
	}
	require.Failf(t, "no such series", "%s %v", family.GetName(), labels)
	return nil
}

func sameMetric(t *testing.T, what string, want, got *dto.Metric) {
	t.Helper()
	number := func(m *dto.Metric) float64 { return m.GetGauge().GetValue() + m.GetCounter().GetValue() }
	assert.Equal(t, number(want), number(got), what)
	if got.GetHistogram() == nil {
		return
	}
	assert.Equal(t, want.GetHistogram().GetSampleCount(), got.GetHistogram().GetSampleCount(), what)
	assert.Equal(t, want.GetHistogram().GetSampleSum(), got.GetHistogram().GetSampleSum(), what)
	counts, shared := map[float64]uint64{}, 0
	for _, b := range want.GetHistogram().GetBucket() {
		counts[b.GetUpperBound()] = b.GetCumulativeCount()
	}
	for _, b := range got.GetHistogram().GetBucket() {
		if below, found := counts[b.GetUpperBound()]; found {
			shared++
			assert.Equal(t, below, b.GetCumulativeCount(), "%s at %v", what, b.GetUpperBound())
		}
	}
	assert.GreaterOrEqual(t, shared, 5, what)
}

func TestTheV0EnginesPage(t *testing.T) {
	families := vllmPage(t, VLLMv06, 30*time.Second)
	for name, bounds := range map[string][]float64{
		"vllm:time_to_first_token_seconds":   {.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10},
		"vllm:time_per_output_token_seconds": {.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5},
		"vllm:e2e_request_latency_seconds":   {.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60},
		"vllm:request_prompt_tokens":         wantTokens,
	} {
		assert.Equal(t, bounds, boundsOf(theHistogram(t, families, name)), name)
		assert.Equal(t, map[string]string{"model_name": "qwen3-8b"}, labelsOf(families[name].GetMetric()[0]), name)
	}
	for name := range families {
		assert.NotRegexp(t, "_created$|^process_|^python_", name, "several processes share the page")
	}
	assert.Equal(t, -1.0, value(t, families, "vllm:cpu_prefix_cache_hit_rate"), "not measured")
	assert.InDelta(t, 0.25, value(t, families, "vllm:gpu_prefix_cache_hit_rate"), 0.05)
	assert.Equal(t, float64(start.Unix()+30), value(t, families, "vllm:lora_requests_info"), "a time of day")

	idle := vllmPage(t, VLLMv06, time.Millisecond)
	assert.NotContains(t, idle, "vllm:time_to_first_token_seconds", "a histogram appears with its first observation")
	assert.Contains(t, idle, "vllm:prompt_tokens_total")
}

func TestOldAndNewNamesStandSideBySide(t *testing.T) {
	both := map[Version][]string{
		VLLMv06:  {"vllm:time_in_queue_requests"},
		VLLMv09:  {"vllm:gpu_cache_usage_perc", "vllm:gpu_prefix_cache_queries_total", "vllm:gpu_prefix_cache_hits_total"},
		VLLMv011: {"vllm:time_per_output_token_seconds"},
		Current:  {},
	}
	for version, want := range both {
		families, old := vllmPage(t, version, 10*time.Second), []string{}
		for _, r := range renamed {
			if families[r.old] != nil && families[r.now] != nil {
				old = append(old, r.old)
			}
		}
		assert.ElementsMatch(t, want, old, version)
	}
	assert.Equal(t, map[string]string{"engine": "0", "model_name": "qwen3-8b"},
		labelsOf(vllmPage(t, VLLMv09, time.Second)["vllm:gpu_cache_usage_perc"].GetMetric()[0]))
}

func TestTheRustFrontendSpeaksOpenMetrics(t *testing.T) {
	sim := simulate(t, vllmOf(VLLMRust))
	page := pageAt(t, sim, 0, 30*time.Second)
	assert.Equal(t, "application/openmetrics-text; version=1.0.0; charset=utf-8", sim.Targets()[0].ContentType())
	assert.Equal(t, "text/plain; version=0.0.4; charset=utf-8", simulate(t, oneVLLM).Targets()[0].ContentType())
	assert.True(t, strings.HasSuffix(page, "\n# EOF\n"))
	assert.Regexp(t, `(?m)^# TYPE vllm:prompt_tokens counter\nvllm:prompt_tokens_total\{engine="0",model_name="qwen3-8b"\} \d+$`, page)
	assert.Regexp(t, `(?m)^vllm:num_requests_running\{.*\} \d+$`, page)
	assert.Regexp(t, `(?m)^vllm:time_to_first_token_seconds_bucket\{engine="0",le="0.001",model_name="qwen3-8b"\} 0$`, page)
	for _, missing := range []string{"vllm:iteration_tokens_total", "_created", "python_info", "process_", "vllm:cache_config_info"} {
		assert.NotContains(t, page, missing)
	}
	tokens := boundsOf(theHistogram(t, vllmPage(t, VLLMRust, time.Second), "vllm:request_prompt_tokens"))
	assert.Equal(t, []float64{50_000, 100_000, 131_072}, tokens[len(tokens)-3:], "for every model")
}

func TestReplicasMaySpellDifferently(t *testing.T) {
	sim := simulate(t, strings.Replace(oneVLLM, "engine: vllm", "engine: vllm, versions: [v0.6, rust]", 1))
	for replica, want := range []Version{VLLMv06, VLLMRust, VLLMv06} {
		assert.Equal(t, pageAt(t, simulate(t, vllmOf(want)), replica, time.Minute), pageAt(t, sim, replica, time.Minute))
	}
}

func TestNewBoundsReachBothNames(t *testing.T) {
	const fault = "faults: [{kind: new_bounds, replicas: [1], series: 'vllm:time_per_output_token_seconds', bounds: [0.01, 0.1], from: 10s}]\n"
	families := parsePage(t, pageAt(t, simulate(t, vllmOf(VLLMv011)+fault), 1, 30*time.Second))
	for _, name := range []string{"vllm:time_per_output_token_seconds", "vllm:inter_token_latency_seconds"} {
		assert.Equal(t, []float64{.01, .1}, boundsOf(theHistogram(t, families, name)), name)
	}
	assert.Equal(t, wantITL, boundsOf(theHistogram(t, families, "vllm:request_time_per_output_token_seconds")))
}
