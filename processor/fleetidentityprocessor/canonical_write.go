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
			c.exponential.write(p)
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

// write writes the histogram to a point, from its lowest to its highest bucket
// with an observation.
func (e *exponentialSum) write(p pmetric.ExponentialHistogramDataPoint) {
	last := len(e.counts) - 1 // observations in no bucket
	first, buckets := e.buckets.First, e.counts[1:last]
	for len(buckets) > 0 && buckets[0] == 0 {
		first, buckets = first+1, buckets[1:]
	}
	for len(buckets) > 0 && buckets[len(buckets)-1] == 0 {
		buckets = buckets[:len(buckets)-1]
	}
	p.SetScale(int32(e.buckets.Scale)) //nolint:gosec // -10 to 20
	p.SetZeroThreshold(e.buckets.ZeroThreshold)
	p.SetZeroCount(e.counts[0])
	p.Positive().SetOffset(int32(first)) //nolint:gosec // of what was sent so
	p.Positive().BucketCounts().FromRaw(buckets)
	var count uint64
	for _, c := range e.counts {
		count += c
	}
	p.SetCount(count)
	if e.summed {
		p.SetSum(e.sum)
	}
}
