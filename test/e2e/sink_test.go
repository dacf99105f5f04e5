// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// send sends spans to a collector that listens for OTLP over HTTP.
func send(t *testing.T, address string, traces ptrace.Traces) {
	t.Helper()
	body, err := ptraceotlp.NewExportRequestFromTraces(traces).MarshalProto()
	require.NoError(t, err)
	response, err := http.Post("http://"+address+"/v1/traces", "application/x-protobuf", bytes.NewReader(body))
	require.NoError(t, err)
	defer response.Body.Close()
	assert.Equal(t, http.StatusOK, response.StatusCode)
}

// file is what a file exporter has written so far: OTLP in JSON, a request a line.
type file struct{ path string }

// lines calls each with every whole line.
func (f file) lines(t *testing.T, each func([]byte)) {
	t.Helper()
	content, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	require.NoError(t, err)
	content = content[:bytes.LastIndexByte(content, '\n')+1]
	for line := range bytes.Lines(content) {
		each(line)
	}
}

// numberOut is a point that came out: of a gauge or a sum its value, of a histogram its count.
type numberOut struct {
	metric               string
	at                   time.Time
	value                float64
	attributes, resource map[string]string
}

// metrics are all points of all metrics; those without a value are left out.
func (f file) metrics(t *testing.T) []numberOut {
	t.Helper()
	var all []numberOut
	f.lines(t, func(line []byte) {
		md, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(line)
		require.NoError(t, err)
		for _, rm := range md.ResourceMetrics().All() {
			resource := textOf(rm.Resource().Attributes())
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					points(m, func(at pcommon.Timestamp, value float64, attributes pcommon.Map) {
						all = append(all, numberOut{m.Name(), at.AsTime(), value, textOf(attributes), resource})
					})
				}
			}
		}
	})
	return all
}

// points calls each with the points of a metric that have a value.
func points(m pmetric.Metric, each func(at pcommon.Timestamp, value float64, attributes pcommon.Map)) {
	numbers := func(points pmetric.NumberDataPointSlice) {
		for _, p := range points.All() {
			if !p.Flags().NoRecordedValue() {
				each(p.Timestamp(), p.DoubleValue(), p.Attributes())
			}
		}
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		numbers(m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		numbers(m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			if !p.Flags().NoRecordedValue() {
				each(p.Timestamp(), float64(p.Count()), p.Attributes())
			}
		}
	default: // neither engines nor this project have others that matter here
	}
}

// numbers are the points of one metric that have some attributes, given as name, value, name, value.
func (f file) numbers(t *testing.T, metric string, attributes ...string) []numberOut {
	t.Helper()
	var found []numberOut
	for _, p := range f.metrics(t) {
		if p.metric == metric && p.has(attributes) {
			found = append(found, p)
		}
	}
	return found
}

func (p *numberOut) has(attributes []string) bool {
	for i := 0; i < len(attributes); i += 2 {
		if p.attributes[attributes[i]] != attributes[i+1] {
			return false
		}
	}
	return true
}

// spanOut is a span that came out.
type spanOut struct {
	name                 string
	attributes, resource map[string]string
}

func (f file) spans(t *testing.T) []spanOut {
	t.Helper()
	var all []spanOut
	f.lines(t, func(line []byte) {
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line)
		require.NoError(t, err)
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					all = append(all, spanOut{span.Name(), textOf(span.Attributes()), textOf(rs.Resource().Attributes())})
				}
			}
		}
	})
	return all
}

// textOf are attributes as text.
func textOf(m pcommon.Map) map[string]string {
	all := make(map[string]string)
	for key, value := range m.All() {
		all[key] = value.AsString()
	}
	return all
}
