// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
	"cmp"
	"slices"
	"time"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/judge/outlier"
	"github.com/llmfleet/llmfleet/internal/window"
)

// plan is the configuration compiled: how fleets are followed and judged. Entry
// 0 of grids and options is for fleets without an override, entry i for those
// of override i-1.
type plan struct {
	signals []fleet.Signal // latencies
	usual   fleet.Ask      // what frames tell: the latencies, and what else is judged
	full    fleet.Ask      // the same, and what causes are told from
	grids   []window.Grid
	options []outlier.Options
	matches []map[string]string
}

func newPlan(c *Config) plan {
	p := plan{signals: parsed(c.Signals)}
	base := outlier.Options{
		Signals:         p.signals,
		Quantiles:       c.Quantiles,
		Baseline:        baselines[c.CompareTo],
		MinObservations: uint64(c.MinObservations), //nolint:gosec // not negative
		MinReplicas:     c.MinReplicas,
		Bounds:          c.enabled(emit.ReplicaLatencyLowRatio) || c.enabled(emit.ReplicaLatencyHighRatio),
	}
	p.usual, p.full = c.ask(p.signals, nil), c.ask(p.signals, outlier.CauseSignals)
	base.Work = c.judgesWork()
	p.add(c, c.Window, base)
	for _, o := range c.Overrides {
		options := base
		options.Baseline = baselines[cmp.Or(o.CompareTo, c.CompareTo)]
		options.MinObservations = uint64(cmp.Or(o.MinObservations, c.MinObservations)) //nolint:gosec // not negative
		options.MinReplicas = cmp.Or(o.MinReplicas, c.MinReplicas)
		length := c.Window
		if o.Window != nil {
			length = *o.Window
		}
		p.add(c, length, options)
		p.matches = append(p.matches, o.Match)
	}
	return p
}

// ask is what the frames have to tell for all that is judged, and more.
func (c *Config) ask(latencies, more []fleet.Signal) fleet.Ask {
	ask := fleet.Ask{Signals: slices.Clone(latencies)}
	also := func(signals ...fleet.Signal) {
		for _, s := range signals {
			if !slices.Contains(ask.Signals, s) {
				ask.Signals = append(ask.Signals, s)
			}
		}
	}
	if c.Alarm != nil {
		also(parsed(c.Alarm.Signals)...)
		also(fleet.Errors, fleet.Finished)
		ask.Recent, ask.Pane = len(ask.Signals), c.pane
		also(fleet.ITL)
		also(more...)
	}
	for i := range outlier.Works {
		if c.judges(i) {
			also(outlier.Works[i].Asks()...)
		}
	}
	if c.enabled(emit.ReplicaStuck) {
		also(fleet.GenerationTokens, fleet.ITL)
	}
	return ask
}

// judges tells whether one of outlier.Works is told of anyone.
func (c *Config) judges(work int) bool {
	m := workMetrics[outlier.Works[work].Signal]
	return c.enabled(m.replica) || c.enabled(m.fleet) || c.enabled(emit.ReplicaWorkRatio)
}

func (c *Config) judgesWork() bool {
	for i := range outlier.Works {
		if c.judges(i) {
			return true
		}
	}
	return false
}

func parsed(names []string) (signals []fleet.Signal) {
	for _, name := range names {
		signal, _ := fleet.ParseSignal(name)
		signals = append(signals, signal)
	}
	return signals
}

func (p *plan) add(c *Config, length time.Duration, options outlier.Options) {
	options.Window = length
	p.grids = append(p.grids, window.NewGrid(c.Interval, length, c.Lateness))
	p.options = append(p.options, options)
}

func (c *Config) enabled(metric string) bool {
	return c.Metrics.On(metric)
}

// of is the entry for a fleet with these keys.
func (p *plan) of(keys []fleet.Label) int {
	return 1 + slices.IndexFunc(p.matches, func(match map[string]string) bool {
		agreed := 0
		for _, key := range keys {
			if value, ok := match[key.Name]; ok && value == key.Value {
				agreed++
			}
		}
		return agreed == len(match)
	})
}
