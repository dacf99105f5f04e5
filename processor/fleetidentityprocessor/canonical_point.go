// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetidentityprocessor

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/internal/window"
)

// canonicalPoint is one canonical point in the making: of a histogram, of an
// exponential one, or a number.
type canonicalPoint struct {
	definition *emit.Metric
	series     canonicalSeries
	start      pcommon.Timestamp
	choice     fleet.ID // of the ranks that all tell the same, the one that is read
	summands   int      // without any, the point says that it has no value
	added      []addend

	number      float64
	histogram   pmetric.HistogramDataPoint
	exponential exponentialSum
}

// exponentialSum is an exponential histogram in the making. A sum that is not known
// of all summands is not known.
type exponentialSum struct {
	buckets window.Exponential
	counts  []uint64
	sum     float64
	summed  bool
}

// addend is a series that is in the point.
type addend struct {
	name   string
	labels fleet.ID
}

func newCanonicalPoint(definition *emit.Metric, series *canonicalSeries, point *intake.Point) *canonicalPoint {
	return &canonicalPoint{definition: definition, series: *series, start: point.Start}
}

// add adds the value of one more series; false if its buckets are others. What
// repeats the rank that is read is not added again.
func (c *canonicalPoint) add(reading *intake.Reading, point *intake.Point) bool {
	if c.summands == 0 {
		c.choice = point.Choice
	}
	of := addend{reading.Name, point.Series}
	if point.Choice != c.choice || slices.Contains(c.added, of) {
		return true // of a pair of Prometheus servers, both may tell of one series
	}
	switch {
	case c.definition.Kind != fleet.Histogram:
		c.addNumber(point.Number)
	case c.series.form.exponential:
		c.addExponential(point)
	case c.summands == 0:
		c.firstHistogram(point.Histogram, reading.Entry.Scale)
	case !c.addHistogram(point.Histogram, reading.Entry.Scale):
		return false
	}
	c.summands++
	c.added = append(c.added, of)
	return true
}

// isSum tells whether a number can be a sum of times.
func isSum(sum float64) bool { return sum >= 0 && !math.IsInf(sum, 1) } // NaN is none

// addNumber adds a number. A share is the mean over ranks.
func (c *canonicalPoint) addNumber(value float64) {
	if c.definition.Unit == "1" {
		c.number += (value - c.number) / float64(c.summands+1)
	} else {
		c.number += value
	}
}

// addExponential adds an exponential histogram, on the buckets that both have.
func (c *canonicalPoint) addExponential(point *intake.Point) {
	own, sum := &c.exponential, point.Exponential.Sum()
	known := point.Exponential.HasSum() && isSum(sum)
	if c.summands == 0 {
		*own = exponentialSum{point.Buckets, point.Counts, sum, known}
		return
	}
	common := own.buckets.Common(point.Buckets)
	counts := make([]uint64, common.Width())
	common.Add(counts, own.buckets, own.counts)
	common.Add(counts, point.Buckets, point.Counts)
	*own = exponentialSum{common, counts, own.sum + sum, own.summed && known}
}

// firstHistogram takes a histogram over, in seconds.
func (c *canonicalPoint) firstHistogram(from *pmetric.HistogramDataPoint, scale float64) {
	c.histogram = pmetric.NewHistogramDataPoint()
	from.BucketCounts().CopyTo(c.histogram.BucketCounts())
	c.histogram.ExplicitBounds().EnsureCapacity(from.ExplicitBounds().Len())
	for i := range from.ExplicitBounds().Len() {
		c.histogram.ExplicitBounds().Append(from.ExplicitBounds().At(i) * scale)
	}
	c.histogram.SetCount(from.Count())
	if from.HasSum() && isSum(from.Sum()) {
		c.histogram.SetSum(from.Sum() * scale)
	}
}

// addHistogram adds another one; false if its bounds are others.
func (c *canonicalPoint) addHistogram(from *pmetric.HistogramDataPoint, scale float64) bool {
	to := c.histogram
	if from.BucketCounts().Len() != to.BucketCounts().Len() || from.ExplicitBounds().Len() != to.ExplicitBounds().Len() {
		return false
	}
	for i := range from.ExplicitBounds().Len() {
		if from.ExplicitBounds().At(i)*scale != to.ExplicitBounds().At(i) {
			return false
		}
	}
	for i := range from.BucketCounts().Len() {
		to.BucketCounts().SetAt(i, to.BucketCounts().At(i)+from.BucketCounts().At(i))
	}
	to.SetCount(to.Count() + from.Count())
	if to.HasSum() && from.HasSum() && isSum(from.Sum()) {
		to.SetSum(to.Sum() + from.Sum()*scale)
	} else {
		to.RemoveSum()
	}
	return true
}

// describe writes whose series it is.
func (c *canonicalPoint) describe(attributes pcommon.Map) {
	put := func(name, value string) {
		if value != "" {
			attributes.PutStr(name, value)
		}
	}
	facts, where := *c.series.resident.Facts(), c.series.resident.Where()
	facts[fleet.ModelName] = c.series.model
	attributes.EnsureCapacity(len(facts) + 6)
	put(keyCluster, where.Cluster)
	put(keyNamespace, where.Namespace)
	put(keyPod, where.Pod)
	for f, value := range facts {
		put(fleet.Fact(f).String(), value)
	}
	put(emit.AttributeReplica, c.series.resident.ID)
	for _, name := range c.definition.Attributes {
		put(name, c.series.reason)
	}
	put(keyRank, c.series.rank)
}
