// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/examples/internal/demo"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// derived is a page as the collector's prometheus exporter writes it.
const derived = `# TYPE llmfleet_replica_outlier gauge
llmfleet_replica_outlier{model_name="chat",pod="qwen-0",replica="demo/qwen-0"} 0
llmfleet_replica_outlier{model_name="chat",pod="qwen-1",replica="demo/qwen-1"} 1
llmfleet_replica_outlier{model_name="code",pod="llama-0",replica="demo/llama-0"} 0
# TYPE llmfleet_replica_outlier_evidence gauge
llmfleet_replica_outlier_evidence{model_name="chat",pod="qwen-0",replica="demo/qwen-0"} 0.126
llmfleet_replica_outlier_evidence{model_name="chat",pod="qwen-1",replica="demo/qwen-1"} 1.08
llmfleet_replica_outlier_evidence{model_name="chat",pod="qwen-2",replica="demo/qwen-2"} 0
# TYPE llmfleet_replica_outlier_cause gauge
llmfleet_replica_outlier_cause{cause="load",model_name="chat",pod="qwen-1",replica="demo/qwen-1"} 0
llmfleet_replica_outlier_cause{cause="hardware",model_name="chat",pod="qwen-1",replica="demo/qwen-1"} 1
# TYPE llmfleet_replica_stuck gauge
llmfleet_replica_stuck{model_name="chat",pod="qwen-1",replica="demo/qwen-1"} 0
llmfleet_replica_stuck{model_name="code",pod="llama-0",replica="demo/llama-0"} 1
# TYPE llmfleet_replica_latency_seconds gauge
llmfleet_replica_latency_seconds{model_name="chat",pod="qwen-0",quantile="0.95",replica="demo/qwen-0",signal="ttft"} 0.054
llmfleet_replica_latency_seconds{model_name="chat",pod="qwen-1",quantile="0.5",replica="demo/qwen-1",signal="ttft"} 0.05
llmfleet_replica_latency_seconds{model_name="chat",pod="qwen-1",quantile="0.95",replica="demo/qwen-1",signal="ttft"} 0.12
llmfleet_replica_latency_seconds{model_name="code",pod="llama-0",quantile="0.95",replica="demo/llama-0",signal="ttft"} 0.3
llmfleet_replica_latency_seconds{model_name="chat",pod="trt-0",quantile="0.95",replica="demo/trt-0",signal="ttft"} 0.04
# TYPE llmfleet_replica_latency_ratio gauge
llmfleet_replica_latency_ratio{model_name="chat",pod="trt-0",quantile="0.95",signal="ttft"} 1
llmfleet_replica_latency_ratio{model_name="chat",pod="qwen-0",quantile="0.95",signal="ttft"} 0.9
llmfleet_replica_latency_ratio{model_name="chat",pod="qwen-1",quantile="0.95",signal="ttft"} 2
llmfleet_replica_latency_ratio{model_name="chat",pod="qwen-1",quantile="0.95",signal="itl"} 1.79
llmfleet_replica_latency_ratio{model_name="code",pod="llama-0",quantile="0.95",signal="ttft"} 1.1
# TYPE llmfleet_fleet_replicas gauge
llmfleet_fleet_replicas{engine_name="vllm",model_name="chat",state="judged"} 2
llmfleet_fleet_replicas{engine_name="vllm",model_name="chat",state="warming"} 1
llmfleet_fleet_replicas{engine_name="vllm",model_name="chat",state="unreachable"} 0
llmfleet_fleet_replicas{engine_name="sglang",model_name="code",state="judged"} 1
`

// small is the scenario that derived tells of.
const small = `
fleets:
  - {name: llama, engine: sglang, model_name: code, arrivals: {rate: 1}}
  - {name: qwen, engine: vllm, model_name: chat, replicas: 3, arrivals: {rate: 1}}
  - {name: trt, engine: tensorrt_llm, model_name: chat, arrivals: {rate: 1}}
faults:
  - {kind: slow, fleet: qwen, replicas: [1], factor: 1.8}
`

func figuresOf(t *testing.T, text string) figures {
	t.Helper()
	page, err := demo.ReadPage(strings.NewReader(text))
	require.NoError(t, err)
	return readFigures(page)
}

// reportOf prints what a page says about a scenario that has run for a minute.
func reportOf(t *testing.T, scenario, page string) string {
	t.Helper()
	s, err := fleetsim.Parse([]byte(scenario))
	require.NoError(t, err)
	sim, err := fleetsim.New(s, time.Now())
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, printReport(&out, arrange(&s, sim.Engines(), figuresOf(t, page), time.Minute)))
	return out.String()
}

func TestReportSaysWhoIsFlaggedAndShowsAllInOneTable(t *testing.T) {
	report := reportOf(t, small, derived)
	assert.True(t, strings.HasPrefix(report, strings.TrimPrefix(`
A false alarm: llama-0. Nothing was injected there.
Found as injected: qwen-1, slow (factor 1.8).

REPLICA  ENGINE        MODEL  VERDICT  EVIDENCE  CAUSE     TTFT P95  RATIO  ITL RATIO
llama-0  sglang        code   STUCK    -         -         300 ms    1.10   -

qwen-1   vllm          chat   OUTLIER  1.08      hardware  120 ms    2.00   1.79
qwen-0   vllm          chat   ok       0.13      -         54 ms     0.90   -
qwen-2   vllm          chat   warming  0.00      -         -         -      -

trt-0    tensorrt_llm  chat   -        -         -         40 ms     1.00   -

VERDICT `, "\n")), report)
}

func TestReportIsHonestWhenNobodyIsFlagged(t *testing.T) {
	page := strings.NewReplacer(`replica="demo/qwen-1"} 1`+"\n", `replica="demo/qwen-1"} 0`+"\n", `replica="demo/llama-0"} 1`, `replica="demo/llama-0"} 0`).Replace(derived)
	report := reportOf(t, small, page)
	assert.True(t, strings.HasPrefix(report, "Injected, and not flagged: qwen-1, slow (factor 1.8).\nNo replica is flagged.\n\n"), report)
}

func TestReportSaysWhenAFlagIsFalse(t *testing.T) {
	scenario, _, _ := strings.Cut(small, "faults:")
	assert.Contains(t, reportOf(t, scenario, derived), "A false alarm: qwen-1. Nothing was injected there.\n")
}

// The widest that any fleet of the demo has in each column.
func TestTableFitsATerminal(t *testing.T) {
	f := []fleet{{fleetKey: fleetKey{"llama-3.3-70b", "tensorrt_llm"}, rows: []row{{
		figure:  figure{outlier: 1, evidence: 1, cause: "cold_cache", ttft: 99.999, ratio: 10, itlRatio: 10},
		verdict: "OUTLIER", name: "llama-trt-0",
	}}}}
	var out bytes.Buffer
	require.NoError(t, printTable(&out, f))
	for line := range strings.Lines(out.String()) {
		assert.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 100, line)
	}
}

func TestFaultsAreToldWhileTheyShowInTheWindow(t *testing.T) {
	for faults, want := range map[string]string{
		"{fleet: qwen, kind: slow, factor: 3, from: 59s}":                         "Found as injected: qwen-1, slow (factor 3).",
		"{fleet: qwen, kind: slow, factor: 3, from: 60s}":                         "A false alarm: qwen-1.",
		"{fleet: qwen, kind: slow, factor: 3, to: 41s}":                           "Found as injected: qwen-1, slow (factor 3).",
		"{fleet: qwen, kind: slow, factor: 3, to: 40s}":                           "A false alarm: qwen-1.",
		"{fleet: qwen, kind: slow, factor: 3, replicas: [0]}":                     "A false alarm: qwen-1.",
		"{fleet: llama, kind: slow, factor: 3}":                                   "A false alarm: qwen-1.",
		"{fleet: qwen, kind: hung, replicas: [1, 0]}":                             "Found as injected: qwen-1, hung.",
		"{fleet: qwen, kind: gap, to: 50s}, {fleet: qwen, kind: slow, factor: 3}": "Found as injected: qwen-1, gap, slow (factor 3).",
	} {
		scenario, _, _ := strings.Cut(small, "faults:")
		assert.Contains(t, reportOf(t, scenario+"faults: ["+faults+"]", derived), want, faults)
	}
}

func TestWhyAReplicaHasNoVerdict(t *testing.T) {
	assert.Equal(t, "not heard from", verdict(nil, nil))
	assert.Equal(t, "warming or unreachable", verdict(nil, []string{"warming", "unreachable"}))
	assert.Equal(t, "withheld", verdict(newFigure(), []string{"withheld"}))
	assert.Equal(t, "-", verdict(newFigure(), nil))
}

func TestAReplicaIsJudgedWhenAllThatItsEngineMeasuresIs(t *testing.T) {
	none := math.NaN()
	got := figures{replicas: map[string]*figure{
		"none": newFigure(), "ttft": {ratio: 1, itlRatio: none}, "both": {ratio: 1, itlRatio: 1}, "warming": {outlier: none, ratio: 1, itlRatio: 1},
	}}
	for pod, want := range map[string][2]bool{"missing": {}, "none": {}, "warming": {}, "ttft": {false, true}, "both": {true, true}} {
		assert.Equal(t, want, [2]bool{replica{pod, true}.judgedIn(&got), replica{pod, false}.judgedIn(&got)}, pod)
	}
	scenario, err := fleetsim.Parse([]byte(small))
	require.NoError(t, err)
	sim, err := fleetsim.New(scenario, time.Now())
	require.NoError(t, err)
	for _, e := range sim.Engines() {
		assert.Equal(t, e.Name() != "trt-0", measuresITL(&scenario, e), e.Name())
	}
}

func TestProgressIsCompleteWhenAllAreJudgedAndAnOnsetWasTold(t *testing.T) {
	both := []replica{{"a", true}, {"b", true}}
	one := &figure{ratio: 1, itlRatio: 1}
	for _, c := range []struct {
		judged map[string]*figure
		told   int
		want   demo.Progress
	}{
		{nil, 0, demo.Nothing},
		{nil, 1, demo.Nothing},
		{map[string]*figure{"a": one}, 1, demo.Begun},
		{map[string]*figure{"a": one, "b": one}, 0, demo.Begun},
		{map[string]*figure{"a": one, "b": one}, 1, demo.Complete},
	} {
		got := figures{replicas: c.judged}
		assert.Equal(t, c.want, got.progress(both, c.told))
	}
}

func TestTheSuspectIsWhoThereIsMostEvidenceOf(t *testing.T) {
	got := figures{replicas: map[string]*figure{"a": newFigure(), "b": {evidence: 0.4}, "c": {evidence: 0.2}}}
	pod, evidence := got.suspect()
	assert.Equal(t, "b", pod)
	assert.InDelta(t, 0.4, evidence, 0)
	pod, _ = (&figures{replicas: map[string]*figure{"a": {}}}).suspect()
	assert.Empty(t, pod)
}
