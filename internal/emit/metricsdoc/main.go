// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Command metricsdoc writes the reference of every metric that llmfleet
// derives, docs/metrics.md, from the table in package emit.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/otlptranslator"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
)

func main() {
	out := flag.String("o", "docs/metrics.md", "file to write")
	flag.Parse()
	if err := write(*out); err != nil {
		fmt.Fprintln(os.Stderr, "metricsdoc:", err)
		os.Exit(1)
	}
}

func write(path string) error {
	page, err := render(emit.Metrics)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(page), 0o644) //nolint:gosec // documentation is for everyone to read
}

//go:embed head.md
var head string

// render is the whole page: one table a component, in the order of the metrics.
func render(metrics []emit.Metric) (string, error) {
	var page strings.Builder
	page.WriteString(head)
	var components []string
	for _, m := range metrics {
		if !slices.Contains(components, m.Component) {
			components = append(components, m.Component)
		}
	}
	for _, c := range components {
		fmt.Fprintf(&page, "\n## %s\n\n", c)
		page.WriteString("| metric | in Prometheus | type | unit | of | more labels | by default | stability | meaning |\n")
		page.WriteString("|---|---|---|---|---|---|---|---|---|\n")
		for i := range metrics {
			if metrics[i].Component != c {
				continue
			}
			row, err := row(&metrics[i])
			if err != nil {
				return "", err
			}
			page.WriteString(row)
		}
	}
	return page.String(), nil
}

// types are how the translator calls the kinds.
var types = [fleet.KindCount]otlptranslator.MetricType{
	fleet.Histogram: otlptranslator.MetricTypeHistogram,
	fleet.Gauge:     otlptranslator.MetricTypeGauge,
	fleet.Counter:   otlptranslator.MetricTypeMonotonicCounter,
}

func row(m *emit.Metric) (string, error) {
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	name, err := namer.Build(otlptranslator.Metric{Name: m.Name, Unit: m.Unit, Type: types[m.Kind]})
	if err != nil {
		return "", err
	}
	labels := make([]string, len(m.Attributes))
	for i, a := range m.Attributes {
		labels[i] = "`" + a + "`"
	}
	state := "off"
	if m.Enabled {
		state = "on"
	}
	return fmt.Sprintf("| %#q | %#q | %s | %#q | %s | %s | %s | %s | %s |\n",
		m.Name, name, m.Kind, m.Unit, m.Of, strings.Join(labels, ", "), state, m.Stability, m.Description), nil
}
