// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package scrapetest makes of the text that a target exposes what the
// prometheus receiver makes of it, so that tests can feed pages to whatever
// reads metrics.
package scrapetest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Target is what a scrape says of whom it scraped.
type Target struct {
	Instance string // host:port
	At       time.Time
}

// Metrics are the metrics of one page, text or OpenMetrics, in the order of
// their names.
func Metrics(page string, of Target) (pmetric.Metrics, error) {
	families, err := parse(page)
	if err != nil {
		return pmetric.Metrics{}, err
	}
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", of.Instance)
	w := writer{metrics: rm.ScopeMetrics().AppendEmpty().Metrics(), at: pcommon.NewTimestampFromTime(of.At)}
	for _, f := range families {
		w.family(f)
	}
	return md, nil
}

// parse reads the families of a page. OpenMetrics declares a counter without
// the _total of its samples, so that a reader of the older text finds a family
// without samples and samples without a family: here they come together. A page
// glued together of several may declare a family twice.
func parse(page string) ([]*dto.MetricFamily, error) {
	var text strings.Builder
	declared := make(map[string]string)
	for line := range strings.Lines(page) {
		if fields := headOf(line); len(fields) > 2 && (fields[1] == "HELP" || fields[1] == "TYPE") {
			if key := fields[1] + fields[2]; declared[key] != "" {
				continue
			}
			declared[fields[1]+fields[2]] = fields[len(fields)-1]
		}
		text.WriteString(line)
	}
	text.WriteByte('\n')
	parser := expfmt.NewTextParser(model.UTF8Validation)
	byName, err := parser.TextToMetricFamilies(strings.NewReader(text.String()))
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	var families []*dto.MetricFamily
	for name, f := range byName {
		if base, ok := strings.CutSuffix(name, "_total"); ok && f.GetType() == dto.MetricType_UNTYPED && declared["TYPE"+base] == "counter" {
			counted(f)
		}
		if len(f.GetMetric()) > 0 {
			families = append(families, f)
		}
	}
	slices.SortFunc(families, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return families, nil
}

// headOf are the words of a line that describes a family; of samples there are
// many, and none are wanted.
func headOf(line string) []string {
	if !strings.HasPrefix(line, "#") {
		return nil
	}
	return strings.Fields(line)
}

// counted makes a counter of a family that was read as untyped. It keeps the
// name of its samples, as with the receiver.
func counted(f *dto.MetricFamily) {
	f.Type = dto.MetricType_COUNTER.Enum()
	for _, m := range f.GetMetric() {
		m.Counter, m.Untyped = &dto.Counter{Value: m.GetUntyped().Value}, nil
	}
}

type writer struct {
	metrics pmetric.MetricSlice
	at      pcommon.Timestamp
}

func (w *writer) family(f *dto.MetricFamily) {
	metric := w.metrics.AppendEmpty()
	metric.SetName(f.GetName())
	metric.SetDescription(f.GetHelp())
	switch f.GetType() {
	case dto.MetricType_HISTOGRAM:
		histogram := metric.SetEmptyHistogram()
		histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		for _, m := range f.GetMetric() {
			w.histogram(histogram.DataPoints().AppendEmpty(), m)
		}
	case dto.MetricType_SUMMARY:
		summary := metric.SetEmptySummary()
		for _, m := range f.GetMetric() {
			point := summary.DataPoints().AppendEmpty()
			point.SetTimestamp(w.at)
			point.SetCount(m.GetSummary().GetSampleCount())
			point.SetSum(m.GetSummary().GetSampleSum())
			label(point.Attributes(), m)
		}
	case dto.MetricType_COUNTER:
		sum := metric.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		for _, m := range f.GetMetric() {
			w.number(sum.DataPoints().AppendEmpty(), m, m.GetCounter().GetValue())
		}
	default:
		gauge := metric.SetEmptyGauge()
		for _, m := range f.GetMetric() {
			w.number(gauge.DataPoints().AppendEmpty(), m, m.GetGauge().GetValue()+m.GetUntyped().GetValue()) // one of them is nil
		}
	}
}

func (w *writer) number(point pmetric.NumberDataPoint, m *dto.Metric, value float64) {
	point.SetTimestamp(w.at)
	point.SetDoubleValue(value)
	label(point.Attributes(), m)
}

// histogram turns cumulative buckets into one count a bucket; the last one has
// no upper bound.
func (w *writer) histogram(point pmetric.HistogramDataPoint, m *dto.Metric) {
	h := m.GetHistogram()
	point.SetTimestamp(w.at)
	point.SetCount(h.GetSampleCount())
	point.SetSum(h.GetSampleSum())
	label(point.Attributes(), m)
	var below uint64
	for _, b := range h.GetBucket() {
		if math.IsInf(b.GetUpperBound(), 1) {
			continue
		}
		point.ExplicitBounds().Append(b.GetUpperBound())
		point.BucketCounts().Append(b.GetCumulativeCount() - below)
		below = b.GetCumulativeCount()
	}
	point.BucketCounts().Append(h.GetSampleCount() - below)
}

func label(attributes pcommon.Map, m *dto.Metric) {
	for _, pair := range m.GetLabel() {
		if pair.GetValue() != "" { // to Prometheus, an empty label is none
			attributes.PutStr(pair.GetName(), pair.GetValue())
		}
	}
}
