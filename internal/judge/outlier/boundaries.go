// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"math"
	"slices"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/stats"
	"github.com/llmfleet/llmfleet/internal/window"
)

// boundaries is at how many latencies the observations of a pane are split.
const boundaries = 6

// exceedances are which share of the fleet's observations shall lie above each
// boundary: most of them tell of what is slow a little, the last of a tail.
var exceedances = [boundaries]float64{0.7, 0.5, 0.25, 0.1, 0.05, 0.02}

// freshPanes is how long replicas' offsets are learned at a boundary before the
// change detector relies on them.
const freshPanes = 3 * blockPanes

// changeTolerance is how many times slower a replica may become than it was.
const changeTolerance = 1.1

// split is what one pane of the whole fleet says of one signal: which share lies
// above each boundary, and may.
type split struct {
	used  int             // boundaries; 0: the pane says nothing
	edges [boundaries]int // a boundary is the upper bound of this bucket
	share [boundaries]float64
	// allowed is the share above for one that is as much slower as the change
	// detector tolerates.
	allowed [boundaries]float64
	change  [boundaries]stats.Null // allowed, as a null
	level   [boundaries]stats.Null // the same for the level detector's tolerance
	// mute are the boundaries at which no count is evidence: all may lie above, or
	// the fleet is not where it was when it was last seen how counts vary.
	mute [boundaries]bool
	// fresh are those at which replicas' offsets are not known yet.
	fresh [boundaries]bool
}

// null derives the nulls of one boundary.
func (s *split) null(i int, share, allowed, level float64) {
	s.share[i], s.allowed[i] = share, allowed
	s.change[i], s.level[i] = stats.NullOf(allowed), stats.NullOf(level)
	s.mute[i] = share <= 0 || allowed >= 1 && level >= 1
}

// ruler is the bounds of a layout, and where the fleet's observations lie.
type ruler struct {
	stats.Survival
	layout *window.Layout
	bounds []float64 // ascending, finite
}

// measure reads the pooled counts.
func (r *ruler) measure(p *fleet.Pool) {
	if r.layout != p.Layout {
		r.layout = p.Layout
		r.bounds = p.Layout.UpperBounds(r.bounds[:0])
	}
	r.Measure(r.bounds, p.Counts)
}

// exceeding is the share of observations above a value, at most 1. Where buckets
// do not tell, the whole bucket is taken to lie above: who is compared with that
// is compared with too much, and never with too little.
func (r *ruler) exceeding(value float64) float64 {
	_, high := r.Exceeding(value)
	return high
}

// split splits the pane at boundaries that were chosen before it.
func (r *ruler) split(s *split, at *[boundaries]boundary, level float64) {
	s.used = 0
	if r.Total() == 0 || len(r.bounds) == 0 || at[0].Value == 0 {
		return
	}
	s.used = boundaries
	for i := range at {
		edge := r.nearest(at[i].Value)
		s.edges[i] = edge
		bound := r.bounds[edge]
		s.null(i, r.Above(edge)/r.Total(), r.exceeding(bound/changeTolerance), r.exceeding(bound/level))
		s.fresh[i] = at[i].Panes < freshPanes
		at[i].Panes++
	}
}

// nearest is the bucket whose upper bound is nearest to a value.
func (r *ruler) nearest(value float64) int {
	i, _ := slices.BinarySearch(r.bounds, value)
	if i == len(r.bounds) || i > 0 && value-r.bounds[i-1] < r.bounds[i]-value {
		i--
	}
	return i
}

// boundary is where observations are split. What is learned at one latency says
// nothing of another, so that a boundary stays while it is of use.
type boundary struct {
	Value float64 // an upper bound of a bucket; 0: none is chosen yet
	Panes int32   // that were split there
	// Usual is the log odds of lying above it of the replica in the middle,
	// decayed; Away is in how many panes in a row they were far from that.
	Usual float64
	Away  int32
}

// pace is what a pane adds to what is usual.
const pace = 0.1

// awayPanes is after how many panes a fleet that is elsewhere is not coming back.
const awayPanes = 5

// follow notes the log odds of the replica in the middle, and tells whether they
// are what is usual. A single slow replica does not move them.
func (b *boundary) follow(odds float64) bool {
	if b.Panes <= 1 {
		b.Usual = odds
	}
	if math.Abs(odds-b.Usual) > math.Log(usualOdds) {
		b.Away++
		return false
	}
	b.Away = 0
	b.Usual += pace * (odds - b.Usual)
	return true
}

const (
	// usualOdds is by how much the odds of lying above a boundary may differ from
	// what is usual there.
	usualOdds = 3
	// usefulOdds is by how much they may differ from what it was chosen for.
	usefulOdds = 9
)

// choose moves the boundaries that are of no use any more to where they are, and
// returns which of them moved, a bit each. It looks at what was observed before
// what they will split. While a replica is suspected, only those move that the
// whole fleet has left: it may be the reason why the others look useless.
func (r *ruler) choose(at *[boundaries]boundary, suspects bool) (moved uint8) {
	if r.Total() == 0 || len(r.bounds) == 0 {
		return 0
	}
	for i, share := range exceedances {
		edge := r.nearest(at[i].Value)
		stays := r.bounds[edge] == at[i].Value && at[i].Away < awayPanes && (suspects || r.useful(edge, share))
		if stays {
			continue
		}
		best := 0
		for j := range r.bounds {
			if r.distance(j, share) < r.distance(best, share) {
				best = j
			}
		}
		if value := r.bounds[best]; value != at[i].Value || at[i].Away >= awayPanes {
			at[i] = boundary{Value: value}
			moved |= 1 << i
		}
	}
	return moved
}

// useful tells whether about the share lies above bound i.
func (r *ruler) useful(i int, share float64) bool {
	return r.distance(i, share) <= math.Log(usefulOdds)
}

// distance is the log of the odds of lying above bound i over those of a share.
func (r *ruler) distance(i int, share float64) float64 {
	return math.Abs(logOdds(r.Above(i), r.Total()) - math.Log(share/(1-share)))
}

// logOdds are those of x of n; none and all are taken to be half of one off.
func logOdds(x, n float64) float64 {
	x = min(max(x, 0.5), n-0.5)
	return math.Log(x / (n - x))
}

// exceedancesOf counts what lies above each boundary.
func (s *split) exceedancesOf(counts []uint64) (above [boundaries]float64, n float64) {
	var stack [stackBuckets]uint64
	below := stack[:0] // up to and with each bucket
	var total uint64
	for _, c := range counts {
		total += c
		below = append(below, total)
	}
	for i := range s.used {
		above[i] = float64(total - below[s.edges[i]])
	}
	return above, float64(total)
}
