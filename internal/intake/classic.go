// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/window"
)

// classic are the samples of one classic histogram at one time, in the order of
// their parts, and of the bounds.
type classic []row

// together is how many of some rows, from the first, are of one histogram and time.
func (c classic) together() int {
	for i := range c {
		if c[i].series != c[0].series || c[i].at != c[0].at {
			return i
		}
	}
	return len(c)
}

// point appends what they are together; otherwise it says why they are nothing.
func (c classic) point(into pmetric.HistogramDataPointSlice) Reason {
	buckets := 0
	for buckets < len(c) && c[buckets].part == isBucket {
		buckets++
	}
	rest := c[buckets:]
	if len(rest) == 0 || rest[len(rest)-1].part != isCount {
		return Incomplete
	}
	count := rest[len(rest)-1]
	switch {
	case count.ended:
		point := into.AppendEmpty()
		point.SetTimestamp(count.at)
		point.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		count.attributes.CopyTo(point.Attributes())
		return 0
	case len(rest) < 2 || buckets == 0 || !math.IsInf(c[buckets-1].bound, 1):
		return Incomplete
	case len(rest) > 2 || !c[:buckets].ascend() || c[buckets-1].value != count.value:
		return Reason(window.BadBuckets)
	}
	point := into.AppendEmpty()
	point.SetTimestamp(count.at)
	point.SetCount(uint64(count.value))
	point.SetSum(rest[0].value)
	count.attributes.CopyTo(point.Attributes())
	bounds, counts := point.ExplicitBounds(), point.BucketCounts()
	bounds.EnsureCapacity(buckets - 1)
	counts.EnsureCapacity(buckets)
	before := uint64(0)
	for _, b := range c[:buckets] {
		if !math.IsInf(b.bound, 1) {
			bounds.Append(b.bound)
		}
		counts.Append(uint64(b.value) - before)
		before = uint64(b.value)
	}
	return 0
}

// mostCounted is more than any engine counts, and the largest number up to which
// floating point has every whole one.
const mostCounted = 1 << 53

// ascend tells whether buckets follow each other, by bounds that differ, and each
// counts what all before it do, and maybe more.
func (c classic) ascend() bool {
	for i, b := range c {
		if b.ended || !(b.value >= 0 && b.value <= mostCounted) || b.value != math.Trunc(b.value) || math.IsNaN(b.bound) {
			return false
		}
		if i > 0 && (b.bound <= c[i-1].bound || b.value < c[i-1].value) {
			return false
		}
	}
	return true
}
