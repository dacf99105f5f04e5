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
	"go.yaml.in/yaml/v3"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// derived is a page as the collector's prometheus exporter writes it.
const derived = `# TYPE llmfleet_replica_latency_seconds gauge
llmfleet_replica_latency_seconds{model_name="qwen3-8b",pod="qwen-0",quantile="0.95",replica="demo/qwen-0",signal="ttft"} 0.061
llmfleet_replica_latency_seconds{model_name="qwen3-8b",pod="qwen-3",quantile="0.5",replica="demo/qwen-3",signal="ttft"} 0.05
llmfleet_replica_latency_seconds{model_name="qwen3-8b",pod="qwen-3",quantile="0.95",replica="demo/qwen-3",signal="ttft"} 0.118
llmfleet_replica_latency_seconds{model_name="llama",quantile="0.95",replica="127.0.0.1:1",signal="ttft"} 0.3
# TYPE llmfleet_replica_latency_ratio gauge
llmfleet_replica_latency_ratio{model_name="qwen3-8b",pod="qwen-0",quantile="0.95",signal="ttft"} 0.9
llmfleet_replica_latency_ratio{model_name="qwen3-8b",pod="qwen-3",quantile="0.95",signal="ttft"} 1.85
llmfleet_replica_latency_ratio{model_name="qwen3-8b",pod="qwen-3",quantile="0.95",signal="itl"} 1.79
# TYPE llmfleet_replica_latency_low_ratio gauge
llmfleet_replica_latency_low_ratio{model_name="qwen3-8b",pod="qwen-3",quantile="0.95",signal="ttft"} 1.6
# TYPE llmfleet_replica_latency_high_ratio gauge
llmfleet_replica_latency_high_ratio{model_name="qwen3-8b",pod="qwen-3",quantile="0.95",signal="ttft"} 2.1
# TYPE llmfleet_replica_observations gauge
llmfleet_replica_observations{model_name="qwen3-8b",pod="qwen-3",signal="ttft"} 190
# TYPE llmfleet_replica_requests gauge
llmfleet_replica_requests{model_name="qwen3-8b",pod="qwen-3",state="running"} 12.5
llmfleet_replica_requests{model_name="qwen3-8b",pod="qwen-3",state="waiting"} 0.25
`

func TestTableIsSlowestFirst(t *testing.T) {
	rows, err := readRows(strings.NewReader(derived))
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, printTable(&out, rows))
	assert.Equal(t, strings.TrimPrefix(`
MODEL     REPLICA      TTFT P95  RATIO  [LOW, HIGH]   ITL P95 RATIO  OBSERVATIONS  WAITING/RUNNING
qwen3-8b  qwen-3       118 ms    1.85   [1.60, 2.10]  1.79           190           0.2/12.5
qwen3-8b  qwen-0       61 ms     0.90   [-, -]        -              -             -/-
llama     127.0.0.1:1  300 ms    -      [-, -]        -              -             -/-
`, "\n"), out.String())
}

func TestFetchRows(t *testing.T) {
	page := derived
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if page == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, page)
	}))
	defer server.Close()
	rows, err := fetchRows(t.Context(), server.URL)
	require.NoError(t, err)
	require.Len(t, rows, 3)
	page = ""
	_, err = fetchRows(t.Context(), server.URL)
	require.ErrorContains(t, err, "503")
}

func TestWaitsUntilAllRatiosAreThere(t *testing.T) {
	unrated, rated := row{ratio: math.NaN()}, row{ratio: 1}
	synctest.Test(t, func(t *testing.T) {
		answers := [][]row{nil, {unrated, unrated}, {rated, unrated}, {rated, rated}, {rated, rated}}
		calls := 0
		rows, err := awaitRows(t.Context(), nil, func() ([]row, error) {
			if calls++; calls == 1 {
				return nil, errors.New("not up yet")
			}
			return answers[calls-1], nil
		})
		require.NoError(t, err)
		assert.Equal(t, answers[4], rows)
		assert.Equal(t, 5, calls)
	})
}

func TestWaitsNoLongerThanItMakesSense(t *testing.T) {
	nothing := func() ([]row, error) { return nil, nil }
	synctest.Test(t, func(t *testing.T) {
		_, err := awaitRows(t.Context(), nil, nothing)
		require.ErrorContains(t, err, "no latency ratio after 2m0s")
	})
	ended := make(chan struct{})
	close(ended)
	rows, err := awaitRows(t.Context(), ended, nothing)
	require.NoError(t, err)
	assert.Empty(t, rows)
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

func TestBusyPortsAreAllNamed(t *testing.T) {
	var uses []use
	for _, purpose := range []string{"dinner", "supper"} {
		busy, err := net.Listen("tcp", host+":0")
		require.NoError(t, err)
		t.Cleanup(func() { busy.Close() })
		uses = append(uses, use{busy.Addr().(*net.TCPAddr).Port, purpose})
	}
	err := checkPorts(append(uses, use{0, "breakfast"}))
	for _, u := range uses {
		require.ErrorContains(t, err, fmt.Sprintf("port %d, for %s, is busy", u.port, u.purpose))
	}
	assert.NotContains(t, err.Error(), "breakfast")
}

// The files of the demo must agree: what is simulated is what is scraped.
func TestConfigMatchesTheFleet(t *testing.T) {
	scenario, err := fleetsim.Load("fleet.yaml")
	require.NoError(t, err)
	sim, err := fleetsim.New(scenario, time.Now())
	require.NoError(t, err)
	var want []string
	for i, e := range sim.Engines() {
		want = append(want, fmt.Sprintf("%s:%d %s", host, firstPort+i, e.Name()))
	}

	var config struct {
		Receivers struct {
			Prometheus struct {
				Config struct {
					ScrapeConfigs []struct {
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
	for _, static := range config.Receivers.Prometheus.Config.ScrapeConfigs[0].StaticConfigs {
		got = append(got, static.Targets[0]+" "+static.Labels["pod"])
	}
	assert.Equal(t, want, got)
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
