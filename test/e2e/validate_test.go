// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/llmfleet/llmfleet/test/binarytest"
)

// validate asks the collector whether it would run with a configuration, and returns what it answers.
func validate(t *testing.T, path string) (string, error) {
	t.Helper()
	answer, err := exec.Command(binarytest.Collector(t), "validate", "--config="+path).CombinedOutput()
	return string(answer), err
}

const outlierConfig = `
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:0"}}}}
processors:
  fleet_outlier: { {{- . -}} }
exporters: {nop: null}
service:
  pipelines:
    metrics: {receivers: [otlp], processors: [fleet_outlier], exporters: [nop]}
`

// TestValidateRefuses: a mistake is refused before anything starts, and the answer names the key and what to write.
func TestValidateRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, body, key, remedy string }{
		{"unknown key", `windw: 5m`, "windw", "use one of .*window"},
		{"duration without a unit", `window: 300`, "window", "300s"},
		{"no duration", `window: 0s`, "window", `\b\d+(s|m)\b`},
		{"negative duration", `interval: -5s`, "interval", `\b\d+(s|m)\b`},
		{"window between intervals", `interval: 30s, window: 100s`, "window", "multiple"},
		{"quantile above one", `quantiles: [1.5]`, "quantiles", `0.*1`},
		{"unknown signal", `signals: [ttfb]`, "signals", "ttft"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer, err := validate(t, binarytest.WriteFile(t, "config.yaml", render(t, outlierConfig, c.body)))
			assert.Error(t, err, "%s was accepted", c.body)
			assert.Contains(t, answer, c.key)
			assert.Regexp(t, c.remedy, answer)
		})
	}
}

// TestValidateAccepts: what the defaults, the examples and the pages show, runs.
func TestValidateAccepts(t *testing.T) {
	t.Parallel()
	configs := map[string]string{"defaults": binarytest.WriteFile(t, "defaults.yaml", render(t, outlierConfig, ""))}
	examples, err := filepath.Glob("../../examples/*/config.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, examples, "there are no examples")
	for _, path := range examples {
		configs[path] = path
	}
	for _, page := range []string{"README.md", "docs/canary.md", "docs/coldstart.md", "docs/outliers.md", "docs/tenants.md", "connector/coldstartconnector/README.md", "receiver/k8sfleetreceiver/README.md"} {
		for name, config := range shownConfigs(t, page) {
			configs[name] = binarytest.WriteFile(t, "config.yaml", config)
		}
	}
	for name, path := range configs {
		t.Run(name, func(t *testing.T) {
			answer, err := validate(t, path)
			assert.NoError(t, err, answer)
		})
	}
}

// yamlBlock is a fenced YAML block of a Markdown text.
var yamlBlock = regexp.MustCompile("(?s)```ya?ml\n(.*?)\n```")

// shownConfigs returns the collector configurations of a page, by where they stand. Parts of one, and blocks of other
// programs, have no service.
func shownConfigs(t *testing.T, page string) map[string]string {
	t.Helper()
	shown, err := os.ReadFile(filepath.Join("..", "..", page))
	require.NoError(t, err)
	configs := map[string]string{}
	for _, block := range yamlBlock.FindAllSubmatchIndex(shown, -1) {
		text := shown[block[2]:block[3]]
		var config struct {
			Service any `yaml:"service"`
		}
		place := fmt.Sprintf("%s line %d", page, 1+bytes.Count(shown[:block[2]], []byte("\n")))
		require.NoError(t, yaml.Unmarshal(text, &config), place)
		if config.Service != nil {
			configs[place] = string(text)
		}
	}
	require.NotEmpty(t, configs, "%s shows no collector configuration", page)
	return configs
}
