// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantusageconnector

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/internal/scenariotest"
	"github.com/llmfleet/llmfleet/internal/settingstest"
)

var jsonBlock = regexp.MustCompile("(?s)```json\n(.*?)```")

func readReadme(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(readme)
}

// TestReadmeBlocks: every configuration of this connector in its README works.
func TestReadmeBlocks(t *testing.T) {
	settingstest.Shown[*Config](t, NewFactory(), "connectors", readReadme(t))
}

// TestReadmeTables: every setting and every metric has a row, and the default
// attributes are those that are read.
func TestReadmeTables(t *testing.T) {
	readme := readReadme(t)
	conf := confmap.New()
	require.NoError(t, conf.Marshal(createDefaultConfig()))
	for _, key := range conf.AllKeys() {
		assert.Contains(t, readme, "\n| `"+strings.ReplaceAll(key, confmap.KeyDelimiter, ".")+"` |")
	}
	for _, m := range emit.Of(componentType) {
		assert.Contains(t, readme, "\n| `"+m.Name+"` |")
	}
	for _, names := range [][]string{intake.DefaultTenantAttributes(), intake.DefaultTierAttributes()} {
		assert.Contains(t, strings.Join(strings.Fields(readme), " "), "`"+strings.Join(names, "`, `")+"`")
	}
	for _, field := range intake.RequestFields() {
		assert.Contains(t, readme, "`"+field+"`")
	}
}

// TestReadmeRecord: the record that the README shows is what is told of acme in
// the first minute of 2000.
func TestReadmeRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := createDefaultConfig().(*Config)
		scenariotest.Configure(t, "tenant: {from: [tenant.id], id: plain}\nttft: {bounds: [0.1, 0.5, 1, 5]}", config)
		s := newStage(t, config)
		s.settings.BuildInfo.Version = "0.1.0"
		s.raise()
		s.logs.(*logsConnector).instance = "gateway-0"
		scenariotest.Wait(s.began.Add(10 * time.Second))
		s.consume(readSpans(t, step{words: []string{"service.name=ai-gateway", "engine_version=0.10.0"}, spans: `
3 SERVER chat gen_ai.request.model=qwen3-8b gen_ai.operation.name=chat tenant.id=acme tier=gold gen_ai.usage.input_tokens=1000 gen_ai.usage.cache_read.input_tokens=800 gen_ai.usage.output_tokens=50 gen_ai.response.time_to_first_chunk=0.25
SERVER chat gen_ai.request.model=llama-70b gen_ai.operation.name=chat tenant.id=acme tier=gold gen_ai.usage.input_tokens=100 gen_ai.usage.output_tokens=20 gen_ai.response.time_to_first_chunk=2
SERVER chat gen_ai.request.model=qwen3-8b gen_ai.operation.name=chat tenant.id=acme tier=gold http.response.status_code=429 status=error`}))
		scenariotest.Wait(s.began.Add(time.Minute))
		s.shutdown()
		require.Len(t, s.records, 1)
		got, err := (&plog.JSONMarshaler{}).MarshalLogs(s.records[0])
		require.NoError(t, err)
		assert.JSONEq(t, jsonBlock.FindStringSubmatch(readReadme(t))[1], string(got))
	})
}
