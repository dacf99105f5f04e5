// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canarydeltaprocessor

import (
	"maps"
	"slices"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/internal/judge/canary"
	"github.com/llmfleet/llmfleet/internal/window"
)

// input is one thing that is read of the metrics that pass: a reader, and the
// registry that it folds what it finds into.
type input struct {
	name     string
	registry *fleet.Registry
	reader   *intake.Reader
	ask      fleet.Ask
	explain  intake.Explainer
}

// newEngines is what is read of engines.
func newEngines(c *Config, dialects *dialect.Set) *input {
	signals := canary.Signals()
	in := &input{name: "engines", ask: fleet.Ask{Signals: signals, Reasons: true}}
	in.registry = fleet.NewRegistry(c.registry())
	in.reader = intake.NewReader(intake.Options{
		Dialects:      dialects,
		Signals:       signals,
		GroupBy:       c.GroupBy,
		Aliases:       c.ModelAliases,
		VariantLabels: slices.Sorted(maps.Keys(c.Canary.Match)),
		Templates:     true,
	}, in.registry)
	return in
}

// newQuality is what is read of whoever judges answers.
func newQuality(c *Config) *input {
	var measures []intake.Quality
	in := &input{name: "quality"}
	for i, name := range c.qualities() {
		q := c.Quality[name]
		measures = append(measures, intake.Quality{Metric: q.Metric, Type: qualityTypes[q.Type], Attributes: q.Attributes, Signal: fleet.Quality(i)})
		in.ask.Signals = append(in.ask.Signals, fleet.Quality(i))
	}
	options := c.registry()
	options.CopiesByProcess = true // that two judges count alike does not make them one
	in.registry = fleet.NewRegistry(options)
	in.reader = intake.NewReader(intake.Options{
		Quality:       measures,
		GroupBy:       c.GroupBy,
		Aliases:       c.ModelAliases,
		VariantLabels: slices.Sorted(maps.Keys(c.Canary.Match)),
		Templates:     true,
	}, in.registry)
	return in
}

var qualityTypes = map[string]fleet.Kind{typeHistogram: fleet.Histogram, typeGauge: fleet.Gauge}

// registry is that of an input whose window is one pane.
func (c *Config) registry() fleet.Options {
	o := fleet.Options{
		Grids:       []window.Grid{window.NewGrid(c.Pane, c.Pane, c.Lateness)},
		Lateness:    c.Lateness,
		MaxReplicas: c.MaxReplicas,
	}
	if c.DepartedAfter != nil {
		o.DepartedAfter = *c.DepartedAfter
	}
	return o
}

// close hands on what was told in the pane that ends at end, fleet by fleet.
func (in *input) close(end window.Instant, judge func(*fleet.Frame)) {
	in.registry.Close(end, in.ask, func(f *fleet.Frame) {
		in.reader.Tally().Ignore(intake.Copy, f.Copies)
		judge(f)
	})
}

// agree tells whether two sets of keys may be of one fleet: those that both have
// are the same.
func agree(keys, others []fleet.Label) bool {
	for _, key := range keys {
		for _, other := range others {
			if key.Name == other.Name && key.Value != other.Value {
				return false
			}
		}
	}
	return true
}
