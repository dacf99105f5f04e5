// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/otlptranslator"
	"go.yaml.in/yaml/v3"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
)

// metric is what is told of one, wherever it is defined.
type metric struct {
	component   string
	name        string
	prometheus  string // the name there
	kind        string // gauge, counter or histogram
	unit        string
	of          string // whose labels its points carry
	labels      []string
	enabled     bool // by default
	stability   emit.Stability
	description string
}

// itself is the scope of metrics by which llmfleet tells of itself.
const itself = "itself"

// collect gathers all metrics: those of the table, then those that components
// define in their metadata.yaml, each file in the order of names.
func collect(root string) ([]metric, error) {
	all := make([]metric, 0, len(emit.Metrics))
	for i := range emit.Metrics {
		m, err := derived(&emit.Metrics[i])
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	files, err := filepath.Glob(filepath.Join(root, "*", "*", "metadata.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no component under %q has a metadata.yaml", root)
	}
	for _, file := range files {
		more, err := defined(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, more...)
	}
	return all, nil
}

// kinds are how the translator calls the kinds.
var kinds = [fleet.KindCount]otlptranslator.MetricType{
	fleet.Histogram: otlptranslator.MetricTypeHistogram,
	fleet.Gauge:     otlptranslator.MetricTypeGauge,
	fleet.Counter:   otlptranslator.MetricTypeMonotonicCounter,
}

// translated is a metric's name under Prometheus' default translation.
func translated(name, unit string, kind fleet.Kind) (string, error) {
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	return namer.Build(otlptranslator.Metric{Name: name, Unit: unit, Type: kinds[kind]})
}

func derived(m *emit.Metric) (metric, error) {
	name, err := translated(m.Name, m.Unit, m.Kind)
	if err != nil {
		return metric{}, err
	}
	return metric{
		m.Component, m.Name, name, m.Kind.String(), m.Unit, m.Of.String(), m.Attributes, m.Enabled, m.Stability, m.Description,
	}, nil
}

// metadata is what a component's metadata.yaml says of its metrics.
type metadata struct {
	Type       string
	Attributes map[string]struct {
		NameOverride string `yaml:"name_override"`
	}
	Metrics   map[string]instrument // that it emits
	Telemetry struct {
		Metrics map[string]instrument // of itself
	}
}

type instrument struct {
	Attributes  []string
	Description string
	Enabled     bool
	Stability   emit.Stability
	Unit        string
	Histogram   *struct{}
	Sum         *struct{ Monotonic bool }
}

func (i *instrument) kind() fleet.Kind {
	switch {
	case i.Histogram != nil:
		return fleet.Histogram
	case i.Sum != nil && i.Sum.Monotonic:
		return fleet.Counter
	default:
		return fleet.Gauge
	}
}

func defined(file string) ([]metric, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var data metadata
	if err := yaml.Unmarshal(text, &data); err != nil {
		return nil, err
	}
	var all []metric
	for name, i := range data.Metrics {
		inPrometheus, err := translated(name, i.Unit, i.kind())
		if err != nil {
			return nil, err
		}
		all = append(all, data.metric(name, inPrometheus, emit.Platform.String(), &i))
	}
	for name, i := range data.Telemetry.Metrics {
		name = "otelcol_" + name
		all = append(all, data.metric(name, name, itself, &i))
	}
	slices.SortFunc(all, func(a, b metric) int { return cmp.Compare(a.name, b.name) })
	return all, nil
}

// metric is an instrument as its component calls it.
func (d *metadata) metric(name, inPrometheus, of string, i *instrument) metric {
	labels := make([]string, len(i.Attributes))
	for n, a := range i.Attributes {
		labels[n] = strings.ReplaceAll(cmp.Or(d.Attributes[a].NameOverride, a), ".", "_")
	}
	return metric{d.Type, name, inPrometheus, i.kind().String(), i.Unit, of, labels, i.Enabled, i.Stability, i.Description}
}
