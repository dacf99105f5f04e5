// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"math"
	"slices"

	"github.com/llmfleet/llmfleet/internal/stats"
)

// DefaultBounds are the upper bounds, in seconds, that the GenAI semantic
// conventions advise for gen_ai.server.time_to_first_token.
var DefaultBounds = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}

// Tally is what requests add up to. Tallies of the same buckets add up too.
type Tally struct {
	Tokens   [TokenTypeCount]uint64
	Requests [OutcomeCount]uint64
	// Known is the requests of outcome OK that told how many tokens of the type
	// they took.
	Known [TokenTypeCount]uint64
	TTFT  Durations
}

// Durations is a histogram of times in seconds; what is not told, not finite or
// negative is not in it.
type Durations struct {
	Count uint64
	Sum   float64
	// Counts has one count a bucket, not cumulative. With explicit bounds there
	// is one more than bounds. With exponential buckets it is as stats.Exponential
	// wants it: the zero bucket's count, the buckets', and a last one that stays
	// 0, for observations that are not a number.
	Counts []uint64
	// Exponential is where the buckets are; nil if they have explicit bounds.
	Exponential *stats.Exponential
}

// exponential buckets are 9 % wide and range from 1 ms to 17 min, in as many as
// OpenTelemetry's SDKs keep by default. Their place is fixed: histograms whose
// buckets never widen add up as they are.
var exponential = stats.Exponential{
	Scale:         exponentialScale,
	First:         -exponentialOctaves << exponentialScale,
	ZeroThreshold: 1.0 / (1 << exponentialOctaves),
}

const (
	exponentialScale   = 3
	exponentialOctaves = 10 // below 1 s, and as many above
	exponentialBuckets = 2 * exponentialOctaves << exponentialScale
)

// buckets is how a Tally keeps times: by ascending upper bounds, or if there are
// none exponentially.
type buckets []float64

func (b buckets) newTally() Tally {
	if len(b) > 0 {
		return Tally{TTFT: Durations{Counts: make([]uint64, len(b)+1)}}
	}
	return Tally{TTFT: Durations{Counts: make([]uint64, exponentialBuckets+2), Exponential: &exponential}}
}

// find is the place in Counts of a time.
func (b buckets) find(seconds float64) int {
	if len(b) > 0 {
		place, _ := slices.BinarySearch(b, seconds)
		return place
	}
	if seconds <= exponential.ZeroThreshold {
		return 0
	}
	index := math.Ceil(math.Ldexp(math.Log2(seconds), exponentialScale)) - float64(exponential.First)
	return int(min(index, exponentialBuckets))
}

// count adds a request to t, which was made by b.
func (b buckets) count(t *Tally, r *Request) {
	for i, n := range r.Tokens {
		t.Tokens[i] += n
	}
	t.Requests[r.Outcome]++
	if r.Outcome == OK {
		for i, known := range r.Known {
			if known {
				t.Known[i]++
			}
		}
	}
	if r.TTFT >= 0 && !math.IsInf(r.TTFT, 1) { // NaN fails the first
		t.TTFT.Count++
		t.TTFT.Sum += r.TTFT
		t.TTFT.Counts[b.find(r.TTFT)]++
	}
}

// add adds what o counted.
func (t *Tally) add(o *Tally) {
	for i, n := range o.Tokens {
		t.Tokens[i] += n
	}
	for i, n := range o.Requests {
		t.Requests[i] += n
	}
	for i, n := range o.Known {
		t.Known[i] += n
	}
	t.TTFT.Count += o.TTFT.Count
	t.TTFT.Sum += o.TTFT.Sum
	for i, n := range o.TTFT.Counts {
		t.TTFT.Counts[i] += n
	}
}

// reset makes t anew, in its memory.
func (t *Tally) reset() {
	kept := t.TTFT
	clear(kept.Counts)
	*t = Tally{TTFT: Durations{Counts: kept.Counts, Exponential: kept.Exponential}}
}
