// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package scenariotest

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// pageWriter writes samples as metrics.
type pageWriter struct {
	metrics   pmetric.MetricSlice
	at, start pcommon.Timestamp
	delta     bool
}

// write adds one sample, or the mark that there is none any more.
func (w *pageWriter) write(s *sample, gone bool) {
	flags := pmetric.DefaultDataPointFlags.WithNoRecordedValue(gone)
	if s.kind == "histogram" {
		point := w.metric(s).Histogram().DataPoints().AppendEmpty()
		w.fillHistogram(s, point, gone)
		point.SetFlags(flags)
		point.SetTimestamp(w.at)
		point.SetStartTimestamp(w.start)
		PutLabels(point.Attributes(), s.labels)
		return
	}
	metric := w.metric(s)
	points := metric.Gauge().DataPoints
	if s.kind == "counter" {
		points = metric.Sum().DataPoints
	}
	point := points().AppendEmpty()
	if !gone {
		point.SetDoubleValue(s.value)
	}
	point.SetFlags(flags)
	point.SetTimestamp(w.at)
	PutLabels(point.Attributes(), s.labels)
}

// fillHistogram writes counts; all are zero in a mark.
func (w *pageWriter) fillHistogram(s *sample, point pmetric.HistogramDataPoint, gone bool) {
	below := 0.0
	for _, b := range s.buckets {
		if !math.IsInf(b.bound, 1) {
			point.ExplicitBounds().Append(b.bound)
			point.BucketCounts().Append(wrapped(b.cumulative - below))
			below = b.cumulative
		}
	}
	point.BucketCounts().Append(wrapped(s.count - below))
	if gone {
		point.BucketCounts().FromRaw(make([]uint64, point.BucketCounts().Len()))
		return
	}
	point.SetCount(uint64(s.count))
	if s.hasSum {
		point.SetSum(s.sum)
	}
}

// wrapped is a count as the receiver writes it: of buckets that fall it is 2^64
// less that much.
func wrapped(count float64) uint64 { return uint64(int64(count)) } //nolint:gosec // it is meant to wrap

// metric finds the sample's metric or makes it.
func (w *pageWriter) metric(s *sample) pmetric.Metric {
	for _, m := range w.metrics.All() {
		if m.Name() == s.family {
			return m
		}
	}
	m := w.metrics.AppendEmpty()
	m.SetName(s.family)
	switch s.kind {
	case "histogram":
		h := m.SetEmptyHistogram()
		h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		if w.delta {
			h.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		}
	case "counter":
		sum := m.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	default:
		m.SetEmptyGauge()
	}
	return m
}

var labelPair = regexp.MustCompile(`([^\s,={}"\[\]]+)=(?:"((?:[^"\\]|\\.)*)"|(\[[^\]]*\]))`)

// PutLabels writes labels as they stand on a page: a="x",b="y"; and lists, which
// only attributes of spans have: c=["x","y"].
func PutLabels(into pcommon.Map, labels string) {
	for _, pair := range labelPair.FindAllStringSubmatch(labels, -1) {
		if pair[3] == "" {
			into.PutStr(pair[1], unquote(pair[2]))
			continue
		}
		values := into.PutEmptySlice(pair[1])
		for item := range strings.SplitSeq(strings.Trim(pair[3], "[]"), `","`) {
			values.AppendEmpty().SetStr(unquote(strings.Trim(item, `" `)))
		}
	}
}

func unquote(text string) string {
	if plain, err := strconv.Unquote(`"` + text + `"`); err == nil {
		return plain
	}
	return text
}
