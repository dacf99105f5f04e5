// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// An engine counts in buckets of the finest schema in use, over so many octaves to each side of one second. A range that
// needs no more than 1,024 buckets is kept as it is.
const (
	finest  = 6
	octaves = 7
	perFine = 1 << finest // buckets to an octave
)

// The zero buckets that a client may have: none, Prometheus' own, and wider ones when it ran out of buckets. All are
// bounds of every schema in use.
var zeroThresholds = []float64{0, math.Ldexp(1, -128), math.Ldexp(1, -6), math.Ldexp(1, -4)}

// exponentialEngine has exponential buckets, which grow wider as it lives.
type exponentialEngine struct {
	grows             bool
	median, rate, sum float64
	fine              [2 * octaves * perFine]uint64 // observations by bucket of the finest schema
	schema            int
	zero              int // which of the zero thresholds
	restarted         bool
}

func (g *generator) exponentialEngine(median, rate float64) engine {
	e := &exponentialEngine{grows: g.growth, median: median, rate: rate}
	e.begin(g)
	return e
}

// begin chooses the buckets of a process. A model's replicas need not agree on them.
func (e *exponentialEngine) begin(g *generator) {
	e.schema, e.zero = 3, 1
	if e.grows {
		e.schema, e.zero = finest-g.IntN(4), g.IntN(2)
	}
}

func (e *exponentialEngine) serve(g *generator, during time.Duration) {
	if e.grows && g.IntN(40) == 0 {
		e.schema = max(-1, e.schema-1-g.IntN(2))
	}
	if e.grows && g.IntN(100) == 0 {
		e.zero = min(e.zero+1, len(zeroThresholds)-1)
	}
	for range g.poisson(e.rate * during.Seconds()) {
		latency := e.median * math.Exp(sigma*g.NormFloat64())
		i := int(math.Ceil(perFine*(math.Log2(latency)+octaves))) - 1
		e.fine[max(0, min(i, len(e.fine)-1))]++
		e.sum += latency
	}
}

func (e *exponentialEngine) restart(g *generator, during time.Duration) {
	*e = exponentialEngine{grows: e.grows, median: e.median, rate: e.rate, restarted: true}
	e.begin(g)
	e.serve(g, during)
}

func (e *exponentialEngine) show(s *scrape) {
	x := &exponentialPage{schema: e.schema, zeroThreshold: zeroThresholds[e.zero], restarted: e.restarted}
	e.restarted = false
	width := int(math.Ldexp(1, finest-e.schema)) // of a bucket, in those of the finest schema
	for i, n := range &e.fine {
		upper := i - octaves*perFine + 1
		if math.Exp2(float64(upper)/perFine) <= x.zeroThreshold {
			x.zeroCount += n
			continue
		}
		index := int(math.Floor(float64(upper-1) / float64(width)))
		if len(x.counts) == 0 {
			x.first = index
		}
		for len(x.counts) <= index-x.first {
			x.counts = append(x.counts, 0)
		}
		x.counts[index-x.first] += n
	}
	s.exponential, s.sum = x, e.sum
}

// exponentialPage is an exponential histogram as a page shows it.
type exponentialPage struct {
	schema        int
	zeroThreshold float64
	zeroCount     uint64
	first         int // index of the lowest bucket, as OpenTelemetry counts; Prometheus' is one higher
	counts        []uint64
	restarted     bool // since the page before
}

func (x *exponentialPage) count() uint64 { return x.zeroCount + total(x.counts) }

// String prints the counts that are not zero, by OpenTelemetry's index.
func (x *exponentialPage) String() string {
	if x == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "schema %d zero %g: %d", x.schema, x.zeroThreshold, x.zeroCount)
	for i, n := range x.counts {
		if n > 0 {
			fmt.Fprintf(&b, " %d:%d", x.first+i, n)
		}
	}
	return b.String()
}

// native is the page as Prometheus stores it.
func (x *exponentialPage) native(sum float64) *histogram.Histogram {
	h := &histogram.Histogram{
		Schema: int32(x.schema), ZeroThreshold: x.zeroThreshold, ZeroCount: x.zeroCount, Count: x.count(), Sum: sum,
		PositiveSpans:   []histogram.Span{{Offset: int32(x.first) + 1, Length: uint32(len(x.counts))}},
		PositiveBuckets: deltas(x.counts),
	}
	return h.Compact(0)
}

// deltas are counts as a native histogram has them: each but the first as its difference to the one before.
func deltas(counts []uint64) []int64 {
	var (
		differences []int64
		before      int64
	)
	for _, n := range counts {
		differences = append(differences, int64(n)-before)
		before = int64(n)
	}
	return differences
}

// fill writes the page as the prometheus receiver hands it on.
func (x *exponentialPage) fill(p pmetric.ExponentialHistogramDataPoint) {
	p.SetScale(int32(x.schema))
	p.SetZeroThreshold(x.zeroThreshold)
	p.SetZeroCount(x.zeroCount)
	p.SetCount(x.count())
	p.Positive().SetOffset(int32(x.first))
	p.Positive().BucketCounts().FromRaw(x.counts)
}

// resolution is how fine buckets are: of two, the coarser is the lower schema and the larger zero bucket.
type resolution struct {
	schema        int
	zeroThreshold float64
}

// anyResolution is finer than all.
var anyResolution = resolution{math.MaxInt, 0}

func (x *exponentialPage) resolution() resolution { return resolution{x.schema, x.zeroThreshold} }

func (r resolution) coarser(o resolution) resolution {
	return resolution{min(r.schema, o.schema), max(r.zeroThreshold, o.zeroThreshold)}
}

// sameResolution tells whether both count what a pod gained in the window that ends at end in equal buckets. Both take the
// coarsest. But Prometheus takes the page before the window for one of them although nothing is gained by it, when a
// process with finer buckets follows; and so it does with pages between which nothing happened. And fleet_outlier reads
// pages for a few seconds after the end, whose buckets may be coarser, before it judges.
func (p *pod) sameResolution(end time.Time) bool {
	prometheus, here := anyResolution, anyResolution
	var (
		before *scrape
		life   = anyResolution // of one process
		gained bool            // by it, in the window
	)
	pass := func() {
		if gained {
			here = here.coarser(life)
		}
		life, gained = anyResolution, false
	}
	for i := range p.scrapes {
		s := &p.scrapes[i]
		if s.outcome != scraped || s.at.Add(s.delay).After(end.Add(lateness)) {
			continue
		}
		if before != nil {
			then, now := before.exponential, s.exponential
			anew := now.restarted
			if now.schema > then.schema || now.zeroThreshold < then.zeroThreshold {
				pass()
				anew = true
			}
			if s.at.After(end.Add(-window)) && !s.at.After(end) {
				if !before.at.After(end.Add(-window)) && before.at.After(end.Add(-2*window)) {
					prometheus = prometheus.coarser(then.resolution())
				}
				if anew && now.count() > 0 || !anew && now.count() != then.count() {
					gained = true
				}
			}
		}
		if s.at.After(end.Add(-window)) && !s.at.After(end) {
			prometheus = prometheus.coarser(s.exponential.resolution())
		}
		life = life.coarser(s.exponential.resolution())
		before = s
	}
	pass()
	return here == anyResolution || here == prometheus
}

// sameResolution tells it for all pods of a model.
func (h *history) sameResolution(model string, end time.Time) bool {
	for i := range h.pods {
		if h.pods[i].model == model && !h.pods[i].sameResolution(end) {
			return false
		}
	}
	return true
}

// placeExponential tells whether all mass is in the zero bucket, for which Prometheus takes it to be on both sides of zero
// then: 0.95 of it lie below 0.9 of its bound.
func placeExponential(v float64) place {
	for _, zero := range zeroThresholds {
		if equal(v, 0.9*zero) {
			return lowestBucket
		}
	}
	return within
}
