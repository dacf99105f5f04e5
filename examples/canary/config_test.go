// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/llmfleet/llmfleet/examples/internal/demo"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// The files of the demo must agree with its program, and what is simulated with
// what is scraped.
func TestConfigMatchesTheProgram(t *testing.T) {
	var config struct {
		Receivers struct {
			Prometheus struct {
				Config struct {
					ScrapeConfigs []struct {
						HTTP []struct{ URL string } `yaml:"http_sd_configs"`
					} `yaml:"scrape_configs"`
				}
			}
		}
		Processors struct {
			Canary struct{ Pane time.Duration } `yaml:"canary_delta"`
		}
		Exporters map[string]struct{ Endpoint, Path string }
	}
	text, err := os.ReadFile("config.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &config))
	require.Len(t, config.Receivers.Prometheus.Config.ScrapeConfigs, 1)
	found := config.Receivers.Prometheus.Config.ScrapeConfigs[0].HTTP
	require.Len(t, found, 1)
	assert.Equal(t, fmt.Sprintf("http://%s:%d/targets", demo.Host, firstPort), found[0].URL)
	assert.Equal(t, pane, config.Processors.Canary.Pane)
	assert.Equal(t, fmt.Sprintf("%s:%d", demo.Host, resultPort), config.Exporters["prometheus"].Endpoint)
	assert.Equal(t, eventsPath, config.Exporters["file/events"].Path)
	assert.Contains(t, string(text), fmt.Sprintf("{host: %s, port: %d}", demo.Host, telemetryPort))
}

// evaluation.yaml is config.yaml, and what scores need beside it.
func TestEvaluationAddsToTheConfig(t *testing.T) {
	read := func(file string) (config map[string]any) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(text, &config))
		return config
	}
	var within func(path string, part, whole any)
	within = func(path string, part, whole any) {
		if all, ok := part.(map[string]any); ok {
			of, _ := whole.(map[string]any)
			for key, value := range all {
				within(path+"."+key, value, of[key])
			}
			return
		}
		if path == ".service.pipelines.metrics.receivers" {
			assert.Subset(t, whole, part)
			return
		}
		assert.Equal(t, part, whole, path)
	}
	within("", read("config.yaml"), read("evaluation.yaml"))
}

// The page at which the others are found is one that a rollout does not take away.
func TestTheFleetIsFoundDuringTheRollout(t *testing.T) {
	scenario, err := fleetsim.Load("fleet.yaml")
	require.NoError(t, err)
	sim, err := fleetsim.New(scenario, time.Now())
	require.NoError(t, err)
	require.Len(t, sim.Targets(), 23, "twenty replicas, and three pods that take the place of others")
	for _, at := range []time.Duration{0, scenario.Faults[0].From} {
		sim.AdvanceTo(at)
		assert.True(t, sim.Targets()[0].Exists(), at)
		existing := slices.DeleteFunc(slices.Clone(sim.Targets()), func(target *fleetsim.Target) bool { return !target.Exists() })
		assert.Len(t, existing, 20, at)
	}
}
