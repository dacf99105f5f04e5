// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
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
	"go.yaml.in/yaml/v3"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// derived is a page as the collector's prometheus exporter writes it.
const derived = `# TYPE llmfleet_replica_latency_seconds gauge
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
# TYPE llmfleet_replica_latency_low_ratio gauge
llmfleet_replica_latency_low_ratio{model_name="chat",pod="qwen-1",quantile="0.95",signal="ttft"} 1.6
# TYPE llmfleet_replica_latency_high_ratio gauge
llmfleet_replica_latency_high_ratio{model_name="chat",pod="qwen-1",quantile="0.95",signal="ttft"} 2.1
# TYPE llmfleet_replica_observations gauge
llmfleet_replica_observations{model_name="chat",pod="qwen-1",signal="ttft"} 190
# TYPE llmfleet_replica_requests gauge
llmfleet_replica_requests{model_name="chat",pod="qwen-1",state="running"} 12.5
llmfleet_replica_requests{model_name="chat",pod="qwen-1",state="waiting"} 0.25
llmfleet_replica_requests{model_name="chat",pod="qwen-2",state="waiting"} 0
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

func TestReportSaysWhoIsSlowAndShowsAllInOneTable(t *testing.T) {
	report := reportOf(t, small, derived)
	assert.True(t, strings.HasPrefix(report, strings.TrimPrefix(`
qwen-1 is slow: TTFT p95 120 ms, its peers 60 ms: 2.00 times as long (at least 1.60), on 190 requests in 20 s. Injected: 1.8 times.

REPLICA  ENGINE        MODEL  TTFT P95  RATIO          [LOW, HIGH]   ITL P95 RATIO  OBSERVATIONS  WAITING/RUNNING
llama-0  sglang        code   300 ms    1.10           [-, -]        -              -             -/-

qwen-1   vllm          chat   120 ms    2.00           [1.60, 2.10]  1.79           190           0.2/12.5
qwen-0   vllm          chat   54 ms     0.90           [-, -]        -              -             -/-
qwen-2   vllm          chat   -         still warming  [-, -]        -              -             0.0/-

trt-0    tensorrt_llm  chat   40 ms     1.00           [-, -]        -              -             -/-

RATIO `, "\n")), report)
	assert.Contains(t, report, "holds with 95 % confidence")
	assert.Contains(t, report, "first tokens timed in the window of 20 s\n")
}

func TestReportIsHonestWhenNobodyIsClearlySlow(t *testing.T) {
	report := reportOf(t, small, strings.ReplaceAll(derived, "} 1.6\n", "} 0.99\n"))
	assert.True(t, strings.HasPrefix(report, "No replica is clearly slower than its peers: no LOW is above 1.\n"+
		"Injected, and not seen in these figures: qwen-1, 1.8 times.\n\n"), report)
}

func TestReportSaysWhenSlownessWasNotInjected(t *testing.T) {
	scenario, _, _ := strings.Cut(small, "faults:")
	assert.Contains(t, reportOf(t, scenario, derived), "on 190 requests in 20 s. Nothing was injected here: this is load or chance.\n")
}

func TestFaultsAreToldWhileTheyShowInTheWindow(t *testing.T) {
	for faults, want := range map[string]string{
		"{fleet: qwen, kind: slow, factor: 3, from: 59s}":                         "Injected: 3 times.",
		"{fleet: qwen, kind: slow, factor: 3, from: 60s}":                         "Nothing was injected",
		"{fleet: qwen, kind: slow, factor: 3, to: 41s}":                           "Injected: 3 times.",
		"{fleet: qwen, kind: slow, factor: 3, to: 40s}":                           "Nothing was injected",
		"{fleet: qwen, kind: slow, factor: 3, replicas: [0]}":                     "Nothing was injected",
		"{fleet: llama, kind: slow, factor: 3}":                                   "Nothing was injected",
		"{fleet: qwen, kind: hung, replicas: [1, 0]}":                             "Injected: hung.",
		"{fleet: qwen, kind: gap, to: 50s}, {fleet: qwen, kind: slow, factor: 3}": "Injected: gap, 3 times.",
	} {
		scenario, _, _ := strings.Cut(small, "faults:")
		assert.Contains(t, reportOf(t, scenario+"faults: ["+faults+"]", derived), want, faults)
	}
}

func TestWhyAReplicaHasNoRatio(t *testing.T) {
	assert.Equal(t, "still warming or unreachable", reason(true, []string{"warming", "unreachable"}))
	assert.Equal(t, "withheld", reason(true, nil))
	assert.Equal(t, "not heard from", reason(false, nil))
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

// answers plays a page that has the given pods rated, one answer a call; the
// last one stays. A nil answer is a collector that is not up yet.
func answers(calls *int, all ...[]string) func() (figures, error) {
	return func() (figures, error) {
		pods := all[min(*calls, len(all)-1)]
		*calls++
		if pods == nil {
			return figures{}, errors.New("not up yet")
		}
		got := figures{replicas: map[string]*figure{}}
		for _, pod := range pods {
			got.replicas[pod] = &figure{ratio: 1, itlRatio: 1}
		}
		return got, nil
	}
}

func TestWaitsUntilEachReplicaHasItsRatios(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		got, err := awaitFigures(t.Context(), nil, withITL("a", "b"),
			answers(&calls, nil, []string{}, []string{"a"}, []string{"a"}, []string{"a", "c"}, []string{"a", "b"}))
		require.NoError(t, err)
		assert.Equal(t, 7, calls, "the complete page is read once more")
		assert.NotNil(t, got.replicas["b"])
	})
}

func TestAReplicaIsRatedWhenAllThatItsEngineMeasuresIs(t *testing.T) {
	got := figures{replicas: map[string]*figure{"none": newFigure(), "ttft": {ratio: 1, itlRatio: math.NaN()}, "both": {ratio: 1, itlRatio: 1}}}
	for pod, want := range map[string][2]bool{"missing": {}, "none": {}, "ttft": {false, true}, "both": {true, true}} {
		assert.Equal(t, want, [2]bool{replica{pod, true}.ratedIn(got), replica{pod, false}.ratedIn(got)}, pod)
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
		_, err := awaitFigures(t.Context(), nil, withITL("a"), answers(&calls, []string{}))
		require.ErrorContains(t, err, "no latency ratio after 2m0s")
	})
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		got, err := awaitFigures(t.Context(), nil, withITL("a", "b"), answers(&calls, []string{"a"}))
		require.NoError(t, err)
		assert.Len(t, got.replicas, 1, "what there is")
		assert.Equal(t, pollEvery+stragglers, time.Since(start))
	})
	ended := make(chan struct{})
	close(ended)
	got, err := awaitFigures(t.Context(), ended, withITL("a"), answers(&calls, []string{}))
	require.NoError(t, err)
	assert.Nil(t, got.replicas)
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

// The files of the demo must agree: what is simulated is what is scraped.
func TestConfigMatchesTheFleet(t *testing.T) {
	scenario, err := fleetsim.Load("fleet.yaml")
	require.NoError(t, err)
	sim, err := fleetsim.New(scenario, time.Now())
	require.NoError(t, err)
	var want []string
	for i, target := range sim.Targets() {
		want = append(want, fmt.Sprintf("%s:%d%s %s", host, firstPort+i, target.Path(), target.Name()))
	}

	var config struct {
		Processors struct {
			Outlier struct{ Window time.Duration } `yaml:"fleet_outlier"`
		}
		Receivers struct {
			Prometheus struct {
				Config struct {
					ScrapeConfigs []struct {
						MetricsPath   string `yaml:"metrics_path"`
						StaticConfigs []struct {
							Targets []string
							Labels  map[string]string
						} `yaml:"static_configs"`
					} `yaml:"scrape_configs"`
				}
			}
		}
		Exporters struct{ Prometheus struct{ Endpoint string } }
	}
	text, err := os.ReadFile("config.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &config))
	var got []string
	for _, job := range config.Receivers.Prometheus.Config.ScrapeConfigs {
		path := cmp.Or(job.MetricsPath, "/metrics")
		for _, static := range job.StaticConfigs {
			got = append(got, static.Targets[0]+path+" "+static.Labels["pod"])
			if path != "/metrics" {
				assert.Equal(t, scenario.Fleets[2].ModelName, static.Labels["model_name"], "which trtllm-serve does not tell")
			}
		}
	}
	assert.Equal(t, want, got)
	assert.Equal(t, window, config.Processors.Outlier.Window)
	assert.Equal(t, fmt.Sprintf("%s:%d", host, resultPort), config.Exporters.Prometheus.Endpoint)
	assert.Contains(t, string(text), fmt.Sprintf("{host: %s, port: %d}", host, telemetryPort))
}

// The demo promises a p95 ratio after its first window of 20 s: that takes 60
// observations, and a slow replica that is slow.
func TestFleetIsBusyEnough(t *testing.T) {
	scenario, err := fleetsim.Load("fleet.yaml")
	require.NoError(t, err)
	sim, err := fleetsim.New(scenario, time.Now())
	require.NoError(t, err)
	sim.AdvanceTo(10 * time.Second)
	var before []fleetsim.Snapshot
	for _, e := range sim.Engines() {
		before = append(before, e.Snapshot())
	}
	sim.AdvanceTo(30 * time.Second)
	mean := map[string]float64{}
	for i, e := range sim.Engines() {
		after := e.Snapshot()
		n := after.TTFT.Count - before[i].TTFT.Count
		assert.Greater(t, n, uint64(75), e.Name())
		mean[e.Name()] = (after.TTFT.Sum - before[i].TTFT.Sum) / float64(n)
		assert.Less(t, after.TTFT.Counts[0], after.TTFT.Count/2, "%s: not all in the lowest bucket", e.Name())
	}
	assert.Greater(t, mean["qwen-3"], 1.6*mean["qwen-0"])
	assert.Less(t, mean["qwen-5"], 1.2*mean["qwen-0"])
}
