// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package emit

import (
	_ "embed"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/otlptranslator"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

//go:embed testdata/prometheus_names.txt
var pinned string

// strategies are the translations of names, in the order of the pinned
// columns.
var strategies = []otlptranslator.TranslationStrategyOption{
	otlptranslator.UnderscoreEscapingWithSuffixes,
	otlptranslator.UnderscoreEscapingWithoutSuffixes,
	otlptranslator.NoUTF8EscapingWithSuffixes,
	otlptranslator.NoTranslation,
}

// types are how the translator calls the kinds.
var types = map[fleet.Kind]otlptranslator.MetricType{
	fleet.Histogram: otlptranslator.MetricTypeHistogram,
	fleet.Gauge:     otlptranslator.MetricTypeGauge,
	fleet.Counter:   otlptranslator.MetricTypeMonotonicCounter,
}

// namespaces are what a metric of a scope may tell about.
var namespaces = map[Scope][]string{
	Fleet: {"fleet", "tenants", "coldstart"}, Replica: {"replica", "engine", "identity"}, Node: {"node"}, Platform: {"component"},
	Tenant: {"tenant"}, Tier: {"tier"}, Canary: {"canary"},
}

// translated is a metric's name in Prometheus, by strategy.
func translated(t *testing.T, m *Metric) []string {
	t.Helper()
	names := make([]string, len(strategies))
	for i, s := range strategies {
		namer := otlptranslator.NewMetricNamer("", s)
		name, err := namer.Build(otlptranslator.Metric{Name: m.Name, Unit: m.Unit, Type: types[m.Kind]})
		require.NoError(t, err)
		names[i] = name
	}
	return names
}

func TestPrometheusNames(t *testing.T) {
	want := map[string][]string{}
	for line := range strings.Lines(pinned) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		columns := strings.Split(line, " | ")
		require.Len(t, columns, 1+len(strategies), line)
		want[columns[0]] = columns[1:]
	}
	got := map[string][]string{}
	for i := range Metrics {
		got[Metrics[i].Name] = translated(t, &Metrics[i])
	}
	assert.Equal(t, want, got, "these names are public: add what is new to testdata/prometheus_names.txt, and change nothing")
}

func TestNoNameDoublesASuffix(t *testing.T) {
	for i := range Metrics {
		for _, name := range translated(t, &Metrics[i]) {
			words := strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '.' })
			for _, suffix := range []string{"seconds", "ratio", "total", "observations", "requests", "replicas"} {
				last := slices.Index(words, suffix)
				counted := last == len(words)-2 && words[last+1] == "total" // Prometheus' word for a counter
				assert.True(t, last < 0 || last == len(words)-1 || counted, "%s: %s is not its end", name, suffix)
			}
		}
	}
}

func TestTableFollowsTheRulesOfNames(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range Metrics {
		assert.False(t, seen[m.Name], "%s stands twice", m.Name)
		seen[m.Name] = true
		assert.Contains(t, namespaces[m.Of], strings.Split(m.Name, ".")[1], "%s says whose it is", m.Name)
		isRatio := strings.HasSuffix(m.Name, "_ratio") || strings.HasSuffix(m.Name, ".ratio")
		assert.Equal(t, isRatio, m.Unit == "1", "%s: unit 1 and ratio at the end go together", m.Name)
		assert.Regexp(t, `^(1|s|By|\{[a-z]+\}(/s)?)$`, m.Unit, m.Name)
		assert.Regexp(t, `^[A-Z].*\.$`, m.Description, m.Name)
		assert.NotEmpty(t, m.Component, m.Name)
		assert.True(t, m.Stability.Known(), "%s: %q is no stability", m.Name, m.Stability)
		for _, a := range m.Attributes {
			label := otlptranslator.LabelNamer{}
			name, err := label.Build(a)
			require.NoError(t, err)
			assert.Equal(t, a, name, "%s: an attribute is the same in Prometheus", m.Name)
			assert.NotContains(t, []string{"instance", "job"}, a, "%s: these are the scraper's", m.Name)
		}
	}
}
