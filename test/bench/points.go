// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// pointsOf makes of a page in text format what the prometheus receiver makes
// of it: one metric a family, all in one resource, and `up`.
func pointsOf(page []byte) (pmetric.Metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		return pmetric.Metrics{}, err
	}
	md := pmetric.NewMetrics()
	metrics := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	for _, family := range families {
		appendFamily(metrics.AppendEmpty(), family)
	}
	up := metrics.AppendEmpty()
	up.SetName("up")
	up.SetEmptyGauge().DataPoints().AppendEmpty().SetDoubleValue(1)
	return md, nil
}

func appendFamily(metric pmetric.Metric, family *dto.MetricFamily) {
	metric.SetName(family.GetName())
	metric.SetDescription(family.GetHelp())
	switch family.GetType() {
	case dto.MetricType_HISTOGRAM:
		histogram := metric.SetEmptyHistogram()
		histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		for _, m := range family.GetMetric() {
			appendHistogram(histogram.DataPoints().AppendEmpty(), m)
		}
	case dto.MetricType_SUMMARY:
		summary := metric.SetEmptySummary()
		for _, m := range family.GetMetric() {
			point := summary.DataPoints().AppendEmpty()
			point.SetCount(m.GetSummary().GetSampleCount())
			point.SetSum(m.GetSummary().GetSampleSum())
			setLabels(point.Attributes(), m)
		}
	case dto.MetricType_COUNTER:
		sum := metric.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		for _, m := range family.GetMetric() {
			appendNumber(sum.DataPoints(), m, m.GetCounter().GetValue())
		}
	default:
		gauge := metric.SetEmptyGauge()
		for _, m := range family.GetMetric() {
			appendNumber(gauge.DataPoints(), m, m.GetGauge().GetValue()+m.GetUntyped().GetValue())
		}
	}
}

func appendHistogram(point pmetric.HistogramDataPoint, m *dto.Metric) {
	h := m.GetHistogram()
	point.SetCount(h.GetSampleCount())
	point.SetSum(h.GetSampleSum())
	below := uint64(0)
	for _, bucket := range h.GetBucket() {
		if bound := bucket.GetUpperBound(); bound <= maxBound {
			point.ExplicitBounds().Append(bound)
		}
		point.BucketCounts().Append(bucket.GetCumulativeCount() - below)
		below = bucket.GetCumulativeCount()
	}
	setLabels(point.Attributes(), m)
}

// maxBound tells finite bounds from +Inf, which explicit bounds leave out.
const maxBound = 1e300

func appendNumber(points pmetric.NumberDataPointSlice, m *dto.Metric, value float64) {
	point := points.AppendEmpty()
	point.SetDoubleValue(value)
	setLabels(point.Attributes(), m)
}

func setLabels(attributes pcommon.Map, m *dto.Metric) {
	for _, label := range m.GetLabel() {
		attributes.PutStr(label.GetName(), label.GetValue())
	}
}

// address makes the page that of one replica at one time: the resource of its
// pod, target labels on every point, one timestamp.
func address(md pmetric.Metrics, replica int, at time.Time) {
	pod := fmt.Sprintf("vllm-%d", replica)
	resource := md.ResourceMetrics().At(0).Resource().Attributes()
	resource.PutStr("service.name", "engines")
	resource.PutStr("service.instance.id", pod+":8000")
	resource.PutStr("server.address", pod)
	resource.PutStr("server.port", "8000")
	resource.PutStr("url.scheme", "http")
	resource.PutStr("k8s.namespace.name", "bench")
	resource.PutStr("k8s.pod.name", pod)
	resource.PutStr("k8s.pod.uid", fmt.Sprintf("00000000-0000-4000-8000-%012d", replica))
	timestamp := pcommon.NewTimestampFromTime(at)
	target := func(attributes pcommon.Map) {
		attributes.PutStr("namespace", "bench")
		attributes.PutStr("pod", pod)
	}
	for _, metric := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		switch metric.Type() {
		case pmetric.MetricTypeHistogram:
			for _, point := range metric.Histogram().DataPoints().All() {
				point.SetTimestamp(timestamp)
				target(point.Attributes())
			}
		case pmetric.MetricTypeSummary:
			for _, point := range metric.Summary().DataPoints().All() {
				point.SetTimestamp(timestamp)
				target(point.Attributes())
			}
		case pmetric.MetricTypeSum:
			addressNumbers(metric.Sum().DataPoints(), timestamp, target)
		case pmetric.MetricTypeGauge:
			addressNumbers(metric.Gauge().DataPoints(), timestamp, target)
		}
	}
}

func addressNumbers(points pmetric.NumberDataPointSlice, timestamp pcommon.Timestamp, target func(pcommon.Map)) {
	for _, point := range points.All() {
		point.SetTimestamp(timestamp)
		target(point.Attributes())
	}
}

// keep leaves only the named metrics on the page.
func keep(md pmetric.Metrics, names ...string) {
	md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().RemoveIf(func(m pmetric.Metric) bool {
		return !slices.Contains(names, m.Name())
	})
}
