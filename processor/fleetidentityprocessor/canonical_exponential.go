// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetidentityprocessor

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// maxBuckets is how far apart the buckets of two exponential histograms may lie
// that are added up.
const maxBuckets = 1 << 14

// addExponential adds one exponential histogram to another, at the lower of
// their scales: a bucket of the one is in one bucket of the other, because their
// edges nest (OpenTelemetry's data model, exponential histograms: all scales).
// It is false if they cannot be added up.
func addExponential(to pmetric.ExponentialHistogramDataPoint, from *pmetric.ExponentialHistogramDataPoint) bool {
	scale := min(to.Scale(), from.Scale())
	first, counts := spread(to, from, scale)
	if counts == nil || to.ZeroThreshold() != from.ZeroThreshold() {
		return false
	}
	for _, h := range []pmetric.ExponentialHistogramDataPoint{to, *from} {
		for i, n := range h.Positive().BucketCounts().All() {
			counts[bucketAt(h, i, scale)-first] += n
		}
	}
	to.SetScale(scale)
	to.Positive().SetOffset(first)
	to.Positive().BucketCounts().FromRaw(counts)
	to.SetZeroCount(to.ZeroCount() + from.ZeroCount())
	to.SetCount(to.Count() + from.Count())
	to.RemoveMin()
	to.RemoveMax()
	if to.HasSum() && from.HasSum() && isSum(from.Sum()) {
		to.SetSum(to.Sum() + from.Sum())
	} else {
		to.RemoveSum()
	}
	return true
}

// spread is room for the buckets of both at a scale: from where on, and one
// count each; nil if they lie too far apart.
func spread(a pmetric.ExponentialHistogramDataPoint, b *pmetric.ExponentialHistogramDataPoint, scale int32) (first int32, counts []uint64) {
	lowest, highest := int32(math.MaxInt32), int32(math.MinInt32)
	for _, h := range []pmetric.ExponentialHistogramDataPoint{a, *b} {
		if n := h.Positive().BucketCounts().Len(); n > 0 {
			lowest = min(lowest, bucketAt(h, 0, scale))
			highest = max(highest, bucketAt(h, n-1, scale))
		}
	}
	if lowest > highest { // neither has any
		return 0, []uint64{}
	}
	if int64(highest)-int64(lowest) >= maxBuckets {
		return 0, nil
	}
	return lowest, make([]uint64, int(highest-lowest)+1)
}

// bucketAt is the index, at a lower scale, of the i-th bucket that a histogram
// sends.
func bucketAt(h pmetric.ExponentialHistogramDataPoint, i int, scale int32) int32 {
	index := int64(h.Positive().Offset()) + int64(i)
	return int32(min(max(index>>min(h.Scale()-scale, 62), math.MinInt32), math.MaxInt32))
}
