// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetidentityprocessor

import (
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/processor/fleetidentityprocessor/internal/metadata"
)

// write adds canonical points to a resource in a scope of their own. Those
// without a value come last, each alone in its Metric: the prometheus exporter
// reads no further in a Metric once it met one.
func write(rm pmetric.ResourceMetrics, points []*canonicalPoint) {
	scope := rm.ScopeMetrics().AppendEmpty()
	scope.Scope().SetName(metadata.ScopeName)
	type metricKey struct {
		*emit.Metric
		form
	}
	metrics := make(map[metricKey]pmetric.Metric)
	for _, c := range points {
		if c.summands == 0 {
			continue
		}
		key := metricKey{c.definition, c.series.form}
		m, ok := metrics[key]
		if !ok {
			m = c.metric(scope)
			metrics[key] = m
		}
		c.write(m)
	}
	for _, c := range points {
		if c.summands == 0 {
			c.write(c.metric(scope))
		}
	}
}

// metric makes a metric for the point.
func (c *canonicalPoint) metric(scope pmetric.ScopeMetrics) pmetric.Metric {
	m := scope.Metrics().AppendEmpty()
	m.SetName(c.definition.Name)
	m.SetUnit(c.definition.Unit)
	m.SetDescription(c.definition.Description)
	temporality := pmetric.AggregationTemporalityCumulative
	if c.series.form.delta {
		temporality = pmetric.AggregationTemporalityDelta
	}
	switch {
	case c.series.form.exponential:
		m.SetEmptyExponentialHistogram().SetAggregationTemporality(temporality)
	case c.definition.Kind == fleet.Histogram:
		m.SetEmptyHistogram().SetAggregationTemporality(temporality)
	case c.definition.Kind == fleet.Counter:
		sum := m.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(temporality)
	default:
		m.SetEmptyGauge()
	}
	return m
}

// write adds the point to a metric of its form.
func (c *canonicalPoint) write(m pmetric.Metric) {
	flags := pmetric.DefaultDataPointFlags.WithNoRecordedValue(c.summands == 0)
	switch m.Type() {
	case pmetric.MetricTypeExponentialHistogram:
		p := m.ExponentialHistogram().DataPoints().AppendEmpty()
		if c.summands > 0 {
			c.exponential.MoveTo(p)
			p.Attributes().Clear()
		}
		p.SetFlags(flags)
		p.SetTimestamp(c.series.at)
		p.SetStartTimestamp(c.start)
		c.describe(p.Attributes())
	case pmetric.MetricTypeHistogram:
		p := m.Histogram().DataPoints().AppendEmpty()
		if c.summands > 0 {
			c.histogram.MoveTo(p)
		}
		p.SetFlags(flags)
		p.SetTimestamp(c.series.at)
		p.SetStartTimestamp(c.start)
		c.describe(p.Attributes())
	default:
		points := m.Gauge().DataPoints
		if m.Type() == pmetric.MetricTypeSum {
			points = m.Sum().DataPoints
		}
		p := points().AppendEmpty()
		if c.summands > 0 {
			p.SetDoubleValue(c.number)
		}
		p.SetFlags(flags)
		p.SetTimestamp(c.series.at)
		p.SetStartTimestamp(c.start)
		c.describe(p.Attributes())
	}
}
