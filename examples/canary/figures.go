// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/llmfleet/llmfleet/examples/internal/demo"
)

// comparison is what the collector has derived of a canary and its baseline. What
// was not exported is NaN.
type comparison struct {
	model    string
	of       arms[string] // the variants
	verdict  string       // overall; empty before there is one
	reasons  []string
	replicas arms[float64]
	lasted   float64 // seconds
	measures []*measure
}

// arms are what there is of both sides.
type arms[T any] struct{ canary, baseline T }

// measure is one that the arms are compared in.
type measure struct {
	name         string
	verdict      string
	watched      bool
	drives       bool
	scores       bool    // it is one of quality
	fail, pass   float64 // evidence
	observations arms[float64]
	statistics   map[string]*statistic
}

// statistic is one number of both arms, with what bounds their ratio at all times.
type statistic struct {
	values           arms[float64]
	unit             unit
	ratio, low, high float64
}

// unit writes a value.
type unit func(v float64) string

// families are the metrics of values, without _value and the suffix of their unit.
var families = map[string]unit{
	"llmfleet_canary_latency_%svalue_seconds": milliseconds,
	"llmfleet_canary_share_%svalue_ratio":     percent,
	"llmfleet_canary_length_%svalue":          func(v float64) string { return demo.Number("%.0f tokens", v) },
	"llmfleet_canary_rate_%svalue_per_second": func(v float64) string { return demo.Number("%.0f tokens/s", v) },
	"llmfleet_canary_quality_%svalue":         func(v float64) string { return demo.Number("%.2f", v) },
}

const (
	overall = "overall"
	scores  = "llmfleet_canary_quality_value"
)

// readComparison finds it on the page of derived metrics.
func readComparison(page demo.Page) comparison {
	none := math.NaN()
	c := comparison{replicas: arms[float64]{none, none}, lasted: none}
	each := func(family string, read func(m *measure, labels map[string]string, value float64)) {
		page.Gauges(family, nil, func(labels map[string]string, value float64) { read(c.measure(labels["measure"]), labels, value) })
	}
	each("llmfleet_canary_verdict", func(m *measure, labels map[string]string, value float64) {
		if value == 1 {
			m.verdict = labels["verdict"]
			c.model, c.of = labels["model_name"], arms[string]{labels["canary"], labels["baseline"]}
		}
	})
	each("llmfleet_canary_reason", func(m *measure, labels map[string]string, value float64) {
		if value == 1 && m.name == overall {
			c.reasons = append(c.reasons, labels["reason"])
		}
	})
	each("llmfleet_canary_driver", func(m *measure, _ map[string]string, value float64) { m.watched, m.drives = true, value == 1 })
	each("llmfleet_canary_evidence", func(m *measure, labels map[string]string, value float64) {
		*map[string]*float64{"fail": &m.fail, "pass": &m.pass}[labels["verdict"]] = value
	})
	each("llmfleet_canary_observations", func(m *measure, labels map[string]string, value float64) { *m.observations.of(labels["arm"]) = value })
	each(scores, func(m *measure, _ map[string]string, _ float64) { m.scores = true })
	for family, unit := range families {
		each(fmt.Sprintf(family, ""), func(m *measure, labels map[string]string, value float64) {
			s := m.statistic(labels["statistic"])
			s.values.canary, s.unit = value, unit
		})
		each(fmt.Sprintf(family, "baseline_"), func(m *measure, labels map[string]string, value float64) {
			s := m.statistic(labels["statistic"])
			s.values.baseline, s.unit = value, unit
		})
	}
	each("llmfleet_canary_ratio", func(m *measure, labels map[string]string, value float64) {
		m.statistic(labels["statistic"]).ratio = value
	})
	each("llmfleet_canary_low_ratio", func(m *measure, labels map[string]string, value float64) {
		m.statistic(labels["statistic"]).low = value
	})
	each("llmfleet_canary_high_ratio", func(m *measure, labels map[string]string, value float64) {
		m.statistic(labels["statistic"]).high = value
	})
	page.Gauges("llmfleet_canary_replicas", nil, func(labels map[string]string, value float64) {
		if labels["arm"] != "other" { // those are compared with nobody
			*c.replicas.of(labels["arm"]) = value
		}
	})
	page.Gauges("llmfleet_canary_duration_seconds", nil, func(_ map[string]string, value float64) { c.lasted = value })
	c.settle()
	return c
}

func (a *arms[T]) of(arm string) *T {
	if arm == "canary" {
		return &a.canary
	}
	return &a.baseline
}

// measure finds one by its name.
func (c *comparison) measure(name string) *measure {
	for _, m := range c.measures {
		if m.name == name {
			return m
		}
	}
	none := math.NaN()
	m := &measure{name: name, fail: none, pass: none, observations: arms[float64]{none, none}, statistics: map[string]*statistic{}}
	c.measures = append(c.measures, m)
	return m
}

func (m *measure) statistic(name string) *statistic {
	if m.statistics[name] == nil {
		none := math.NaN()
		m.statistics[name] = &statistic{arms[float64]{none, none}, percent, none, none, none}
	}
	return m.statistics[name]
}

// settle takes the overall verdict from among the measures, and puts those that
// are watched first, the driver before all.
func (c *comparison) settle() {
	c.verdict = c.measure(overall).verdict
	c.measures = slices.DeleteFunc(c.measures, func(m *measure) bool { return m.name == overall })
	rank := func(m *measure) int {
		switch {
		case m.drives:
			return 0
		case m.watched:
			return 1
		}
		return 2
	}
	slices.SortFunc(c.measures, func(a, b *measure) int {
		if by := rank(a) - rank(b); by != 0 {
			return by
		}
		return strings.Compare(a.name, b.name)
	})
	slices.Sort(c.reasons)
}

func (c *comparison) begun() bool { return c.verdict != "" }

// progress is complete when the verdict is a pass or a fail, and that was told.
func (c *comparison) progress(told int) demo.Progress {
	switch {
	case told > 0 && c.decided():
		return demo.Complete
	case c.begun():
		return demo.Begun
	}
	return demo.Nothing
}

func (c *comparison) decided() bool { return c.verdict == "fail" || c.verdict == "pass" }

// driver is the measure that drives the verdict; nil if there is none.
func (c *comparison) driver() *measure {
	if len(c.measures) > 0 && c.measures[0].drives {
		return c.measures[0]
	}
	return nil
}

// line is what can be seen so far, in rough numbers.
func (c *comparison) line() string {
	line := fmt.Sprintf("%v replicas of %s beside %v of %s: %s", c.replicas.canary, c.of.canary, c.replicas.baseline, c.of.baseline, c.verdict)
	if len(c.reasons) > 0 {
		line += " (" + strings.Join(c.reasons, ", ") + ")"
	}
	var against []string
	for _, m := range c.measures {
		if rough := math.Floor(4*m.fail) / 4; m.watched && rough > 0 && !c.decided() {
			against = append(against, fmt.Sprintf("%s %.2f", m.name, rough))
		}
	}
	if len(against) > 0 {
		line += "; evidence of a fail: " + strings.Join(against, ", ")
	}
	return line
}

// names of the statistics of a measure: the one that is shown in the table first.
func (m *measure) names() []string {
	names := slices.Sorted(maps.Keys(m.statistics))
	first := slices.Index(names, map[string]string{"finish_reasons": "length"}[m.name])
	if first > 0 {
		names[0], names[first] = names[first], names[0]
	}
	return names
}

// percent rounds to a tenth, and adds zero to have no -0.
func percent(v float64) string { return demo.Number("%.1f %%", math.Round(1000*v)/10+0) }

func milliseconds(seconds float64) string { return demo.Number("%.0f ms", 1000*seconds) }
