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
	told    []fleet.Signal // what a frame tells: the latencies, and what else is judged
	grids   []window.Grid
	options []outlier.Options
	matches []map[string]string
}

func newPlan(c *Config) plan {
	p := plan{}
	for _, name := range c.Signals {
		signal, _ := fleet.ParseSignal(name)
		p.signals = append(p.signals, signal)
	}
	base := outlier.Options{
		Signals:         p.signals,
		Quantiles:       c.Quantiles,
		Baseline:        baselines[c.CompareTo],
		MinObservations: uint64(c.MinObservations), //nolint:gosec // not negative
		MinReplicas:     c.MinReplicas,
		Bounds:          c.enabled(emit.ReplicaLatencyLowRatio) || c.enabled(emit.ReplicaLatencyHighRatio),
		Cache:           c.enabled(emit.ReplicaPrefixHitRatio) || c.enabled(emit.FleetPrefixHitRatio),
	}
	p.told = p.signals
	if base.Cache {
		p.told = slices.Concat(p.signals, outlier.CacheSignals)
	}
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

func (p *plan) add(c *Config, length time.Duration, options outlier.Options) {
	p.grids = append(p.grids, window.NewGrid(c.Interval, length, c.Lateness))
	p.options = append(p.options, options)
}

func (c *Config) enabled(metric string) bool {
	return slices.ContainsFunc(emit.Metrics, func(m emit.Metric) bool {
		return m.Name == metric && c.Metrics.Enabled(&m)
	})
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
