// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

// reportOf prints what a page says about a scenario that has run for a minute.
func reportOf(t *testing.T, scenario, page string) string {
	t.Helper()
	s, err := fleetsim.Parse([]byte(scenario))
	require.NoError(t, err)
	sim, err := fleetsim.New(s, time.Now())
	require.NoError(t, err)
	got, err := readFigures(strings.NewReader(page))
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, printReport(&out, arrange(&s, sim.Engines(), got, time.Minute)))
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

func TestFetchFigures(t *testing.T) {
	page := derived
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if page == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, page)
	}))
	defer server.Close()
	got, err := fetchFigures(t.Context(), server.URL)
	require.NoError(t, err)
	require.Len(t, got.replicas, 5)
	page = ""
	_, err = fetchFigures(t.Context(), server.URL)
	require.ErrorContains(t, err, "503")
}

// withITL names replicas whose engines measure inter-token latency.
func withITL(pods ...string) []replica {
	var replicas []replica
	for _, pod := range pods {
		replicas = append(replicas, replica{pod: pod, itl: true})
	}
	return replicas
}

// answers plays a page that has the given pods judged, one answer a call; the
// last one stays. An onset is told with it if "onset" is among them. A nil answer
// is a collector that is not up yet.
func answers(calls *int, all ...[]string) func() (figures, error) {
	return func() (figures, error) {
		pods := all[min(*calls, len(all)-1)]
		*calls++
		if pods == nil {
			return figures{}, errors.New("not up yet")
		}
		got := figures{replicas: map[string]*figure{}}
		for _, pod := range pods {
			if pod == "onset" {
				got.told = 1
			} else {
				got.replicas[pod] = &figure{ratio: 1, itlRatio: 1}
			}
		}
		return got, nil
	}
}

func TestWaitsUntilAllAreJudgedAndAnOnsetWasTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		got, err := awaitVerdicts(t.Context(), nil, withITL("a", "b"),
			answers(&calls, nil, []string{}, []string{"a", "onset"}, []string{"a", "b"}, []string{"a", "b"}, []string{"a", "b", "onset"}))
		require.NoError(t, err)
		assert.Equal(t, 7, calls, "the complete page is read once more")
		assert.NotNil(t, got.replicas["b"])
	})
}

func TestAReplicaIsJudgedWhenAllThatItsEngineMeasuresIs(t *testing.T) {
	none := math.NaN()
	got := figures{replicas: map[string]*figure{
		"none": newFigure(), "ttft": {ratio: 1, itlRatio: none}, "both": {ratio: 1, itlRatio: 1}, "warming": {outlier: none, ratio: 1, itlRatio: 1},
	}}
	for pod, want := range map[string][2]bool{"missing": {}, "none": {}, "warming": {}, "ttft": {false, true}, "both": {true, true}} {
		assert.Equal(t, want, [2]bool{replica{pod, true}.judgedIn(got), replica{pod, false}.judgedIn(got)}, pod)
	}
	scenario, err := fleetsim.Parse([]byte(small))
	require.NoError(t, err)
	sim, err := fleetsim.New(scenario, time.Now())
	require.NoError(t, err)
	for _, e := range sim.Engines() {
		assert.Equal(t, e.Name() != "trt-0", measuresITL(&scenario, e), e.Name())
	}
}

func TestWaitsNoLongerThanItMakesSense(t *testing.T) {
	calls := 0
	synctest.Test(t, func(t *testing.T) {
		_, err := awaitVerdicts(t.Context(), nil, withITL("a"), answers(&calls, []string{}))
		require.ErrorContains(t, err, "no latency ratio after 2m0s")
	})
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		got, err := awaitVerdicts(t.Context(), nil, withITL("a"), answers(&calls, []string{"a"}))
		require.NoError(t, err)
		assert.Len(t, got.replicas, 1, "what there is")
		assert.Equal(t, pollEvery+suspense, time.Since(start))
	})
	ended := make(chan struct{})
	close(ended)
	got, err := awaitVerdicts(t.Context(), ended, withITL("a"), answers(&calls, []string{}))
	require.NoError(t, err)
	assert.Nil(t, got.replicas)
}

func TestTheSuspectIsWhoThereIsMostEvidenceOf(t *testing.T) {
	got := figures{replicas: map[string]*figure{"a": newFigure(), "b": {evidence: 0.4}, "c": {evidence: 0.2}}}
	pod, evidence := got.suspect()
	assert.Equal(t, "b", pod)
	assert.InDelta(t, 0.4, evidence, 0)
	pod, _ = (&figures{replicas: map[string]*figure{"a": {}}}).suspect()
	assert.Empty(t, pod)
}

// script writes an executable that stands in for the collector.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "collector")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o700))
	return path
}

func TestAnEarlyEndOfTheCollectorShowsItsLog(t *testing.T) {
	c, err := startCollector(script(t, "echo cannot read $2 >&2; exit 3"), "my.yaml")
	require.NoError(t, err)
	<-c.ended
	err = c.stop()
	require.ErrorContains(t, err, "exit status 3")
	require.ErrorContains(t, err, "cannot read my.yaml")

	_, err = startCollector(filepath.Join(t.TempDir(), "none"), "my.yaml")
	require.ErrorContains(t, err, "make build")
}

func TestStopEndsTheCollector(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	c, err := startCollector(script(t, "trap 'exit 0' TERM; touch "+ready+"; while :; do sleep 0.05; done"), "")
	require.NoError(t, err)
	require.Eventually(t, func() bool { _, err := os.Stat(ready); return err == nil }, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, c.stop())
	assert.True(t, c.command.ProcessState.Exited())
}

func TestLogTailIsBounded(t *testing.T) {
	var log tail
	for i := range 5000 {
		fmt.Fprintf(&log, "line %d\n", i)
	}
	assert.LessOrEqual(t, len(log.String()), tailBytes)
	assert.True(t, strings.HasSuffix(log.String(), "line 4999"))
}

func TestBusyPortsAreNamedInOneLine(t *testing.T) {
	var ports []int
	for range 2 {
		busy, err := net.Listen("tcp", host+":0")
		require.NoError(t, err)
		t.Cleanup(func() { busy.Close() })
		ports = append(ports, busy.Addr().(*net.TCPAddr).Port)
	}
	err := checkPorts(append(ports, 0))
	require.ErrorContains(t, err, "ports "+ranges(ports)+" of 127.0.0.1 are busy: is another `make run` or fleetsim running?")
	assert.NotContains(t, err.Error(), "\n")
	require.ErrorContains(t, checkPorts(ports[:1]), fmt.Sprintf("port %d of 127.0.0.1 is busy", ports[0]))
	require.NoError(t, checkPorts([]int{0}))
	require.ErrorContains(t, checkPorts([]int{70000}), "open port 70000")
}

func TestNeighbouringPortsAreOneRange(t *testing.T) {
	assert.Equal(t, "9464, 18100-18102, 18888", ranges([]int{18888, 18100, 9464, 18102, 18101}))
	assert.Equal(t, []int{9464, 18888, 18100, 18101}, usedPorts(2))
}
