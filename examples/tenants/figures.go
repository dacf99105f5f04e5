// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/llmfleet/llmfleet/examples/internal/demo"
)

// figures are what the collector has derived of the fleet. What was not exported
// is NaN.
type figures struct {
	itl, usualITL float64 // seconds
	fairness      float64
	tenants       []*tenant // most uncached input first
}

// tenant is one that is named, or all others together.
type tenant struct {
	name                    string
	uncached, input, output float64 // shares of the fleet's
	usual                   float64 // share of the uncached input
	excess, score           float64
	noisy                   float64 // flag
	noisyFor                float64 // seconds
}

// readFigures finds them on the page of derived metrics.
func readFigures(page demo.Page) figures {
	none := math.NaN()
	f := figures{itl: none, usualITL: none, fairness: none}
	of := map[string]*tenant{}
	collect := func(family, direction string, field func(*tenant) *float64) {
		var want map[string]string
		if direction != "" {
			want = map[string]string{"direction": direction}
		}
		page.Gauges(family, want, func(labels map[string]string, value float64) {
			name := labels["tenant"]
			if of[name] == nil {
				of[name] = &tenant{name, none, none, none, none, none, none, none, none}
				f.tenants = append(f.tenants, of[name])
			}
			*field(of[name]) = value
		})
	}
	collect("llmfleet_tenant_token_share_ratio", "input_uncached", func(t *tenant) *float64 { return &t.uncached })
	collect("llmfleet_tenant_token_share_ratio", "input", func(t *tenant) *float64 { return &t.input })
	collect("llmfleet_tenant_token_share_ratio", "output", func(t *tenant) *float64 { return &t.output })
	collect("llmfleet_tenant_usual_share_ratio", "", func(t *tenant) *float64 { return &t.usual })
	collect("llmfleet_tenant_itl_excess_ratio", "", func(t *tenant) *float64 { return &t.excess })
	collect("llmfleet_tenant_noisy_score", "", func(t *tenant) *float64 { return &t.score })
	collect("llmfleet_tenant_noisy", "", func(t *tenant) *float64 { return &t.noisy })
	collect("llmfleet_tenant_noisy_duration_seconds", "", func(t *tenant) *float64 { return &t.noisyFor })
	page.Gauges("llmfleet_fleet_itl_seconds", nil, func(_ map[string]string, value float64) { f.itl = value })
	page.Gauges("llmfleet_fleet_usual_itl_seconds", nil, func(_ map[string]string, value float64) { f.usualITL = value })
	page.Gauges("llmfleet_fleet_fairness_ratio", nil, func(_ map[string]string, value float64) { f.fairness = value })
	slices.SortFunc(f.tenants, func(a, b *tenant) int {
		return cmp.Or(-cmp.Compare(a.uncached, b.uncached), cmp.Compare(a.name, b.name))
	})
	return f
}

// progress is complete when a tenant is noisy and that was told.
func (f *figures) progress(told int) demo.Progress {
	switch {
	case told > 0 && slices.ContainsFunc(f.tenants, (*tenant).isNoisy):
		return demo.Complete
	case !math.IsNaN(f.usualITL):
		return demo.Begun
	}
	return demo.Nothing
}

func (t *tenant) isNoisy() bool { return t.noisy == 1 }

// since is when a noisy tenant became so, as a page tells it that was read at a
// time: it counts from the end of the newest pane that is judged.
func (t *tenant) since(read time.Time) time.Time {
	return read.Add(-lateness).Truncate(pane).Add(-time.Duration(t.noisyFor * float64(time.Second)))
}

// without is what the inter-token latency would be without what the tenant sends
// beyond its usual share, in seconds. The excess is of some panes, the latency of
// the newest: without it, none is below the usual.
func (f *figures) without(t *tenant) float64 { return max(f.usualITL, f.itl-t.excess*f.usualITL) }

// largest is who sends most of those that are known; nil if nobody is.
func (f *figures) largest() *tenant {
	i := slices.IndexFunc(f.tenants, func(t *tenant) bool { return !strings.HasPrefix(t.name, "__") && !math.IsNaN(t.uncached) })
	if i < 0 || math.IsNaN(f.itl) {
		return nil
	}
	return f.tenants[i]
}

// differs tells whether there is more than noise between what can be seen and what
// could be seen before.
func (f *figures) differs(before *figures) bool {
	const share, itl = 0.1, 0.005 // seconds
	is, was := f.largest(), before.largest()
	return is != nil && (was == nil || is.name != was.name ||
		math.Abs(is.uncached-was.uncached) > share || math.Abs(f.itl-before.itl) > itl)
}

// line is what can be seen so far, in rough numbers.
func (f *figures) line() string {
	return fmt.Sprintf("a token takes about %.0f ms; %s sends the largest part of the uncached input, about %.0f %%",
		5*math.Round(1000*f.itl/5), f.largest().name, 5*math.Round(100*f.largest().uncached/5))
}
