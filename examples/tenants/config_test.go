// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
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
		want = append(want, fmt.Sprintf("%s:%d %s", demo.Host, firstPort+i, target.Name()))
	}

	var config struct {
		Receivers struct {
			OTLP struct {
				Protocols struct{ HTTP struct{ Endpoint string } }
			}
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
		Processors struct {
			Share struct{ Pane, Lateness time.Duration } `yaml:"tenant_share"`
		}
		Exporters map[string]struct{ Endpoint, Path string }
	}
	text, err := os.ReadFile("config.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &config))
	require.Len(t, config.Receivers.Prometheus.Config.ScrapeConfigs, 1)
	var got []string
	for _, static := range config.Receivers.Prometheus.Config.ScrapeConfigs[0].StaticConfigs {
		got = append(got, static.Targets[0]+" "+static.Labels["pod"])
	}
	assert.Equal(t, want, got)
	assert.Equal(t, pane, config.Processors.Share.Pane)
	assert.Equal(t, lateness, config.Processors.Share.Lateness)
	assert.Equal(t, fmt.Sprintf("%s:%d", demo.Host, spansPort), config.Receivers.OTLP.Protocols.HTTP.Endpoint)
	assert.Equal(t, fmt.Sprintf("%s:%d", demo.Host, resultPort), config.Exporters["prometheus"].Endpoint)
	assert.Equal(t, eventsPath, config.Exporters["file/events"].Path)
	assert.Equal(t, usagePath, config.Exporters["file/usage"].Path)
	assert.Contains(t, string(text), fmt.Sprintf("{host: %s, port: %d}", demo.Host, telemetryPort))
}
