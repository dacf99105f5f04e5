// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstartconnector

import (
	"math"
	"slices"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/window"
)

// exponential buckets are 9 % wide and range from 8 ms to more than two hours, in as
// many as OpenTelemetry's SDKs keep by default.
var exponential = window.Exponential{
	Scale:         exponentialScale,
	First:         -exponentialBelow << exponentialScale,
	Buckets:       (exponentialBelow + exponentialAbove) << exponentialScale,
	ZeroThreshold: 1.0 / (1 << exponentialBelow),
	Unit:          1,
}

const (
	exponentialScale = 3
	exponentialBelow = 7  // octaves below 1 s
	exponentialAbove = 13 // octaves above
)

// histogram is durations in seconds, with the newest start of each bucket.
type histogram struct {
	told      emit.Distribution // but for its exemplars
	exemplars []emit.Exemplar   // by bucket; without a time where there is none
}

func (c *DurationConfig) newHistogram() *histogram {
	h := &histogram{told: emit.Distribution{Bounds: c.Bounds, Counts: make([]uint64, len(c.Bounds)+1)}}
	if c.Exponential {
		h.told = emit.Distribution{Exponential: &exponential, Counts: make([]uint64, exponential.Width())}
	}
	h.exemplars = make([]emit.Exemplar, len(h.told.Counts))
	return h
}

// observe counts a duration.
func (h *histogram) observe(e emit.Exemplar) {
	bucket := h.bucket(e.Value)
	h.told.Count++
	h.told.Sum += e.Value
	h.told.Counts[bucket]++
	h.exemplars[bucket] = e
}

// bucket is the place of a duration in the counts.
func (h *histogram) bucket(seconds float64) int {
	if h.told.Exponential == nil {
		place, _ := slices.BinarySearch(h.told.Bounds, seconds)
		return place
	}
	if seconds <= exponential.ZeroThreshold {
		return 0
	}
	place := math.Ceil(math.Ldexp(math.Log2(seconds), exponentialScale)) - float64(exponential.First)
	return int(min(place, float64(exponential.Buckets)))
}

// distribution is the histogram to be written.
func (h *histogram) distribution() *emit.Distribution {
	h.told.Exemplars = h.told.Exemplars[:0]
	for _, e := range h.exemplars {
		if e.At != 0 {
			h.told.Exemplars = append(h.told.Exemplars, e)
		}
	}
	return &h.told
}
