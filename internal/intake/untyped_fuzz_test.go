// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/dialect"
)

// FuzzUntyped reads series of histograms that no server wrote, nine bytes each:
// which series of which replica, and its value. What is made of them is a histogram.
func FuzzUntyped(f *testing.F) {
	sample := func(series byte, value float64) []byte {
		return binary.LittleEndian.AppendUint64([]byte{series}, math.Float64bits(value))
	}
	var page []byte
	for series, value := range []float64{2, 4, 5, 5, 1.5} { // 0.1, 1, +Inf, count, sum
		page = append(page, sample(byte(series), value)...)
	}
	f.Add(page, "0.1", "1.0", "+Inf")
	f.Add(page[:18], "", "-Inf", "0x1p-2")
	f.Add(append(sample(3, math.NaN()), sample(2, -1)...), "1e400", "NaN", "1_000")
	f.Fuzz(func(t *testing.T, series []byte, le0, le1, le2 string) {
		r, bounds := newReader(), []string{le0, le1, le2}
		md, first := pageOf("10.0.0.1:8000", "")
		first.SetName("vllm:cache_config_info")
		fed := federation{md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics(), map[string]pmetric.Metric{}}
		for len(series) >= 9 {
			which, bits := series[0], binary.LittleEndian.Uint64(series[1:9])
			labels := pcommon.NewMap()
			labels.PutStr("model_name", "m")
			labels.PutStr("engine", fmt.Sprint(which>>6))
			at := pcommon.Timestamp(noon.Add(time.Duration(1+which>>5&1) * time.Second))
			flags := pmetric.DefaultDataPointFlags.WithNoRecordedValue(which>>4&1 == 1)
			switch part := which & 7; {
			case part < 3:
				labels.PutStr("le", bounds[part])
				fed.sample("vllm:time_to_first_token_seconds_bucket", labels, at, flags, math.Float64frombits(bits))
			case part == 3:
				fed.sample("vllm:time_to_first_token_seconds_count", labels, at, flags, math.Float64frombits(bits))
			default:
				fed.sample("vllm:time_to_first_token_seconds_sum", labels, at, flags, math.Float64frombits(bits))
			}
			series = series[9:]
		}
		r.Read(md)

		var page Page
		newClerk().Metrics(md.ResourceMetrics().At(0), &page)
		for _, reading := range page.Readings(nil, dialect.Engine) {
			for _, p := range reading.Metric.Histogram().DataPoints().All() {
				if p.Flags().NoRecordedValue() {
					continue
				}
				assert.Equal(t, p.ExplicitBounds().Len()+1, p.BucketCounts().Len())
				assert.Equal(t, p.Count(), sumOf(p.BucketCounts()))
				for i := 1; i < p.ExplicitBounds().Len(); i++ {
					assert.Less(t, p.ExplicitBounds().At(i-1), p.ExplicitBounds().At(i))
				}
			}
		}
	})
}

// BenchmarkRead reads one page of an engine again and again.
func BenchmarkRead(b *testing.B) {
	page := timed((&counting{}).page(), 0, false)
	for name, md := range map[string]pmetric.Metrics{"typed": page, "untyped": federate(page)} {
		b.Run(name, func(b *testing.B) {
			r := newReader()
			b.ReportAllocs()
			for b.Loop() {
				r.Read(md)
			}
		})
	}
}
