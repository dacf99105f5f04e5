// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
)

const root = "../../.."

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func TestDocsAreWhatTheirSourcesSay(t *testing.T) {
	all, err := collect(root)
	require.NoError(t, err)
	const remedy = "%s is out of date: run `make generate`"
	for file, want := range map[string]string{"docs/metrics.md": page(all), "docs/names/next.txt": listOf(all).String()} {
		assert.Equal(t, want, read(t, filepath.Join(root, file)), remedy, file)
	}
}

// mdatagen documents the metrics that components define; the headings of its
// pages are held against the reference.
func TestNothingThatComponentsDefineIsMissing(t *testing.T) {
	all, err := collect(root)
	require.NoError(t, err)
	told := map[string]string{}
	for i := range all {
		told[all[i].name] = strings.ToLower(string(all[i].stability))
	}
	pages, err := filepath.Glob(filepath.Join(root, "*", "*", "documentation.md"))
	require.NoError(t, err)
	heading := regexp.MustCompile(`(?m)^### (\S+)\n(?:.*\n){5}\|.* (\w+) \|$`)
	found := 0
	for _, p := range pages {
		for _, m := range heading.FindAllStringSubmatch(read(t, p), -1) {
			found++
			assert.Equal(t, strings.ToLower(m[2]), told[m[1]], "stability of %s, of %s", m[1], p)
		}
	}
	assert.Equal(t, len(all)-len(emit.Metrics), found, "pages of mdatagen and metadata.yaml tell of as many")
}

func TestEveryMetricIsToldOnceAndHowFirm(t *testing.T) {
	all, err := collect(root)
	require.NoError(t, err)
	assert.Len(t, listOf(all), len(all), "two metrics have one name in Prometheus")
	for i := range all {
		assert.True(t, all[i].stability.Known(), "%s: %q is no stability", all[i].name, all[i].stability)
	}
}

func TestRowsStandUnderTheirComponent(t *testing.T) {
	one, err := derived(&emit.Metric{
		Name: "llmfleet.a", Kind: fleet.Gauge, Unit: "s", Description: "One.", Of: emit.Replica, Attributes: []string{"x", "y"}, Enabled: true, Component: "first", Stability: emit.Stable,
	})
	require.NoError(t, err)
	two, err := derived(&emit.Metric{
		Name: "llmfleet.b_ratio", Kind: fleet.Gauge, Unit: "1", Description: "Two.", Of: emit.Fleet, Component: "second", Stability: emit.Development,
	})
	require.NoError(t, err)
	three, err := derived(&emit.Metric{
		Name: "llmfleet.c", Kind: fleet.Counter, Unit: "{request}", Description: "Three.", Of: emit.Fleet, Component: "first", Stability: emit.Beta,
	})
	require.NoError(t, err)
	_, tables, _ := strings.Cut(strings.TrimPrefix(page([]metric{one, two, three}), head), "\n## ")
	tables, _, _ = strings.Cut(tables, itselfHead)
	const columns = "\n\n| metric | in Prometheus | type | unit | of | more labels | by default | stability | meaning |\n|---|---|---|---|---|---|---|---|---|\n"
	assert.Equal(t, "first"+columns+
		"| `llmfleet.a` | `llmfleet_a_seconds` | gauge | `s` | replica | `x`, `y` | on | stable | One. |\n"+
		"| `llmfleet.c` | `llmfleet_c_total` | counter | `{request}` | fleet |  | off | beta | Three. |\n"+
		"\n## second"+columns+
		"| `llmfleet.b_ratio` | `llmfleet_b_ratio` | gauge | `1` | fleet |  | off | development | Two. |\n", tables)
}

// A component's own file is read as mdatagen reads it: names of attributes are
// overridden, and what llmfleet tells of itself has the collector's prefix.
func TestMetadataIsRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "metadata.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`type: thing
attributes:
  overflow: {name_override: otel.metric.overflow}
  state: {type: string}
metrics:
  llmfleet.thing.starts: {attributes: [state, overflow], description: One., enabled: true, stability: beta, sum: {monotonic: true}, unit: "{start}"}
  llmfleet.thing.age: {description: Two., enabled: false, stability: alpha, gauge: {value_type: double}, unit: s}
telemetry:
  metrics:
    receiver_thing_lost: {description: Three., enabled: true, stability: stable, sum: {monotonic: true}, unit: "{record}"}
`), 0o600))
	got, err := defined(file)
	require.NoError(t, err)
	assert.Equal(t, []metric{
		{"thing", "llmfleet.thing.age", "llmfleet_thing_age_seconds", "gauge", "s", "platform", []string{}, false, emit.Alpha, "Two."},
		{"thing", "llmfleet.thing.starts", "llmfleet_thing_starts_total", "counter", "{start}", "platform", []string{"state", "otel_metric_overflow"}, true, emit.Beta, "One."},
		{"thing", "otelcol_receiver_thing_lost", "otelcol_receiver_thing_lost", "counter", "{record}", "itself", []string{}, true, emit.Stable, "Three."},
	}, got)
}

func TestFoldersThatAreNoRepository(t *testing.T) {
	require.ErrorContains(t, write(t.TempDir()), "metadata.yaml")
	require.Error(t, printChanges(&bytes.Buffer{}, t.TempDir()))
}
