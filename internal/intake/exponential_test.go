// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

const ttftName = "vllm:time_to_first_token_seconds"

// exponentialPage makes one exponential point of a replica's TTFT.
func exponentialPage(at time.Duration) (pmetric.Metrics, pmetric.ExponentialHistogram, pmetric.ExponentialHistogramDataPoint) {
	md, m := pageOf("i", ttftName)
	h := m.SetEmptyExponentialHistogram()
	h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	return md, h, stamp(h.DataPoints().AppendEmpty(), at)
}

// observed is what the reader's only replica observed of TTFT in the window
// after noon, with which buckets.
func observed(t *testing.T, r *Reader) (buckets window.Exponential, counts []uint64) {
	t.Helper()
	r.registry.Close(noon.Add(interval), fleet.Ask{Signals: []fleet.Signal{fleet.TTFT}}, func(f *fleet.Frame) {
		d := f.Members[0].Told[0]
		counts = d.Counts
		if d.Layout != nil {
			buckets, _ = d.Layout.Exponential()
		}
	})
	return buckets, counts
}

// TestExponentialPointIsRead: buckets of scale 0, 3 observations in (1/2, 1],
// 5 in (2, 4], one of zero, one that is no number and one that is infinite.
func TestExponentialPointIsRead(t *testing.T) {
	r := newReader()
	for i, times := range []uint64{0, 1} {
		md, _, p := exponentialPage(time.Duration(10*i+1) * time.Second)
		p.SetZeroThreshold(0.001)
		p.SetZeroCount(times)
		p.Positive().SetOffset(-3)
		counts := make([]uint64, 1028)
		counts[2], counts[4], counts[1027] = 3*times, 5*times, times
		p.Positive().BucketCounts().FromRaw(counts)
		p.SetCount(11 * times)
		p.SetSum(17 * float64(times))
		r.Read(md)
	}
	buckets, counts := observed(t, r)
	assert.Equal(t, window.Exponential{Scale: 0, First: -16, Buckets: 32, ZeroThreshold: 0.001, Unit: 1}, buckets)
	want := make([]uint64, 34)
	want[0], want[1+15], want[1+17], want[33] = 1, 3, 5, 2
	assert.Equal(t, want, counts)
}

func TestExponentialDifferencesAreRead(t *testing.T) {
	r := newReader()
	for i := range 3 {
		md, h, p := exponentialPage(time.Duration(10*i+1) * time.Second)
		h.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		p.SetScale(int32(3 - i))
		p.Positive().BucketCounts().FromRaw([]uint64{4})
		p.SetCount(4)
		r.Read(md)
	}
	buckets, counts := observed(t, r)
	assert.Equal(t, 1, buckets.Scale)
	assert.Equal(t, uint64(12), counts[1])
}

func TestExponentialPointWithoutValueIsNone(t *testing.T) {
	r := newReader()
	md, _, p := exponentialPage(time.Second)
	p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	r.Read(md)
	assert.Equal(t, uint64(1), r.Tally().Ignored(Unrecorded))
}

// TestPartsOfExponentialHistogramAreCounters: a dialect may take the sum or the
// count of a histogram for a total, whatever buckets it has.
func TestPartsOfExponentialHistogramAreCounters(t *testing.T) {
	dialects, err := dialect.Parse("e.yaml", []byte(`
engine: e
prefix: e
signals:
  prefix_hits: {type: histogram, part: sum, names: [cached]}
  preemptions: {type: histogram, part: count, names: [cached]}
`))
	require.NoError(t, err)
	r := newReader()
	signals := []fleet.Signal{fleet.PrefixHits, fleet.Preemptions}
	r = NewReader(Options{Dialects: dialects, Signals: signals, GroupBy: []string{"model_name"}}, r.registry)
	for i := range uint64(3) {
		md, m := pageOf("i", "e:cached")
		h := m.SetEmptyExponentialHistogram()
		h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		p := stamp(h.DataPoints().AppendEmpty(), time.Duration(10*i+1)*time.Second)
		p.SetSum(float64(1000 * i))
		p.SetCount(7 * i)
		r.Read(md)
	}
	r.registry.Close(noon.Add(interval), fleet.Ask{Signals: signals}, func(f *fleet.Frame) {
		assert.Equal(t, uint64(2000), f.Members[0].Told[0].Observations())
		assert.Equal(t, uint64(14), f.Members[0].Told[1].Observations())
	})
}

// TestHistogramToldTwiceCountsOnce: a scraper that is asked for classic and
// native histograms hands on both, in any order.
func TestHistogramToldTwiceCountsOnce(t *testing.T) {
	r := newReader()
	for i := range 4 {
		at, n := time.Duration(9*i+1)*time.Second, uint64(10*i)
		explicit := func() {
			md, m := pageOf("i", ttftName)
			h := m.SetEmptyHistogram()
			h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			p := stamp(h.DataPoints().AppendEmpty(), at)
			p.ExplicitBounds().FromRaw([]float64{1})
			p.BucketCounts().FromRaw([]uint64{n, 0})
			r.Read(md)
		}
		if i%2 == 0 {
			explicit()
		}
		md, _, p := exponentialPage(at)
		p.Positive().BucketCounts().FromRaw([]uint64{n})
		p.SetCount(n)
		r.Read(md)
		if i%2 == 1 {
			explicit()
		}
	}
	buckets, counts := observed(t, r)
	assert.Equal(t, 1.0, buckets.Unit, "the finer ones count")
	assert.Equal(t, uint64(30), counts[1])
	assert.Equal(t, uint64(3), r.Tally().Ignored(Unspoken), "but for the one that came before all")
}

// TestBucketsThatNoExponentialLatencyHas: such a point is refused as a whole.
func TestBucketsThatNoExponentialLatencyHas(t *testing.T) {
	for name, spoil := range map[string]func(pmetric.ExponentialHistogramDataPoint){
		"scale too fine":         func(p pmetric.ExponentialHistogramDataPoint) { p.SetScale(21) },
		"scale too coarse":       func(p pmetric.ExponentialHistogramDataPoint) { p.SetScale(-11) },
		"negative":               func(p pmetric.ExponentialHistogramDataPoint) { p.Negative().BucketCounts().FromRaw([]uint64{0, 1}) },
		"zero below zero":        func(p pmetric.ExponentialHistogramDataPoint) { p.SetZeroThreshold(-1) },
		"zero no number":         func(p pmetric.ExponentialHistogramDataPoint) { p.SetZeroThreshold(math.NaN()) },
		"zero infinite":          func(p pmetric.ExponentialHistogramDataPoint) { p.SetZeroThreshold(math.Inf(1)) },
		"more than there are":    func(p pmetric.ExponentialHistogramDataPoint) { p.SetCount(2) },
		"more than can be":       func(p pmetric.ExponentialHistogramDataPoint) { p.SetCount(math.MaxUint64) },
		"more zeros than can be": func(p pmetric.ExponentialHistogramDataPoint) { p.SetZeroCount(math.MaxUint64) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newReader()
			md, _, p := exponentialPage(time.Second)
			p.Positive().BucketCounts().FromRaw([]uint64{1, 2})
			p.Negative().BucketCounts().FromRaw([]uint64{0, 0})
			p.SetCount(3)
			spoil(p)
			r.Read(md)
			assert.Equal(t, uint64(1), r.Tally().Ignored(Reason(window.BadBuckets)))
		})
	}
}

// FuzzExponential reads two points that no sender makes. What is taken of them
// adds up, and takes little memory.
func FuzzExponential(f *testing.F) {
	f.Add(int32(3), int32(-20), []byte{1, 0, 2}, 0.0, uint64(1), uint64(5), int32(2), int32(-10), []byte{1, 0, 9})
	f.Add(int32(20), int32(math.MaxInt32), []byte{1}, 1e-300, uint64(0), uint64(1), int32(-10), int32(math.MinInt32), []byte{1})
	f.Add(int32(-10), int32(math.MinInt32), []byte{0, 0, 7}, math.MaxFloat64, uint64(math.MaxUint64), uint64(7), int32(20), int32(-1), []byte{255, 255})
	f.Fuzz(func(t *testing.T, scale, offset int32, counts []byte, zero float64, zeroCount, more uint64, scaleThen, offsetThen int32, countsThen []byte) {
		r := newReader()
		for i, s := range []struct {
			scale, offset int32
			counts        []byte
		}{{scale, offset, counts}, {scaleThen, offsetThen, countsThen}} {
			md, _, p := exponentialPage(time.Duration(10*i+1) * time.Second)
			p.SetScale(s.scale)
			p.SetZeroThreshold(zero)
			p.SetZeroCount(zeroCount)
			p.SetCount(zeroCount + more)
			p.Positive().SetOffset(s.offset)
			for _, c := range s.counts {
				p.Positive().BucketCounts().Append(uint64(c))
				p.SetCount(p.Count() + uint64(c))
			}
			r.Read(md)
		}
		_, got := observed(t, r)
		if len(got) > 2048 {
			t.Fatalf("%d counts", len(got))
		}
		sum := uint64(0)
		for _, c := range got {
			sum += c
		}
		if sum > 2*math.MaxUint32 && sum > zeroCount+more+uint64(255*len(countsThen)) {
			t.Fatalf("%d counted", sum)
		}
	})
}
