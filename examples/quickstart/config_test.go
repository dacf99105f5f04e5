// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/llmfleet/llmfleet/examples/internal/demo"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// The files of the demo must agree: what is simulated is what is scraped.
func TestConfigMatchesTheFleet(t *testing.T) {
	scenario, err := fleetsim.Load("fleet.yaml")
	require.NoError(t, err)
	sim, err := fleetsim.New(scenario, time.Now())
	require.NoError(t, err)
	var want []string
	for i, target := range sim.Targets() {
		want = append(want, fmt.Sprintf("%s:%d%s %s", demo.Host, firstPort+i, target.Path(), target.Name()))
	}

	var config struct {
		Processors struct {
			Outlier struct {
				Window time.Duration
				Alarm  struct{ Warmup time.Duration }
			} `yaml:"fleet_outlier"`
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
		Exporters struct {
			Prometheus struct{ Endpoint string }
			File       struct{ Path string }
		}
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
	assert.Equal(t, warmup, config.Processors.Outlier.Alarm.Warmup)
	assert.Equal(t, eventsPath, config.Exporters.File.Path)
	assert.Equal(t, fmt.Sprintf("%s:%d", demo.Host, resultPort), config.Exporters.Prometheus.Endpoint)
	assert.Contains(t, string(text), fmt.Sprintf("{host: %s, port: %d}", demo.Host, telemetryPort))
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
