// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"math"
	"math/bits"
	"slices"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/stats"
)

// rule names who flags replicas: our alarm, or a rule that people use today.
type rule int

const (
	ours rule = iota
	// plainRatio: p95 above 1.5 times that of all others.
	plainRatio
	// heldRatio: the same on 100 observations and more, in 5 panes in a row
	// (Prometheus's for: 5m).
	heldRatio
	// medianDeviation: p95 more than 5 robust standard deviations above the
	// median of the fleet's, in 3 of 5 panes (Grafana's and Datadog's MAD
	// detectors).
	medianDeviation
	// meanDeviation: p95 more than 1.9 standard deviations above the mean of the
	// fleet's, of 5 replicas and more (Envoy's outlier detection, which applies
	// it to success rates).
	meanDeviation
	ruleCount
)

var ruleNames = [ruleCount]string{
	ours: "alarm", plainRatio: "ratio_1.5", heldRatio: "ratio_1.5_for_5m", medianDeviation: "mad_z5_3of5", meanDeviation: "mean_1.9sd",
}

const (
	watchedQuantile   = 0.95
	ratioLimit        = 1.5
	heldPanes         = 5
	heldObservations  = 100
	madLimit          = 5
	madPanes          = 3 // of 5
	standardDeviation = 1.4826
	meanLimit         = 1.9
	meanReplicas      = 5
	// quietPanes end an episode of a rule that has no end of its own: so many
	// panes in which it is not met.
	quietPanes = 10
)

// peers judge fleets by the rules that people use today.
type peers struct {
	latencies int // signals that are latencies, the first of a frame
	fleets    [][]streak
	p95       []float64
	deviation []float64
	pool, own []float64
}

// streak is what the rules remember of one latency of one replica.
type streak struct {
	held  int             // panes in a row in which the ratio was too high
	far   uint8           // whether p95 deviated, a bit a pane, the newest lowest
	met   [ruleCount]bool // in this pane
	on    [ruleCount]bool // in an episode
	quiet [ruleCount]int  // panes since the rule was met
}

func newPeers(fleets, replicas, latencies int) *peers {
	p := &peers{latencies: latencies, fleets: make([][]streak, fleets)}
	for i := range p.fleets {
		p.fleets[i] = make([]streak, replicas*latencies)
	}
	return p
}

// judge sets, by rule and replica, who is flagged: a replica is if one of its
// latencies is. What our alarm says is left as it is.
func (p *peers) judge(of int, f *fleet.Frame, flagged *[ruleCount][]bool) {
	for r := plainRatio; r < ruleCount; r++ {
		clear(flagged[r])
	}
	for s := range p.latencies {
		p.measure(f, s)
		p.apply(f, s, p.fleets[of][s*len(f.Members):])
		for m := range f.Members {
			streak := &p.fleets[of][s*len(f.Members)+m]
			streak.end()
			for r := plainRatio; r < ruleCount; r++ {
				flagged[r][m] = flagged[r][m] || streak.on[r]
			}
		}
	}
}

// measure fills in p95 of one latency by replica; NaN where there is none.
func (p *peers) measure(f *fleet.Frame, s int) {
	bounds := f.Members[0].Told[s].Layout.Bounds()
	p.p95 = p.p95[:0]
	p.pool = append(p.pool[:0], make([]float64, len(bounds)+1)...)
	for m := range f.Members {
		p.own = cumulate(p.own, f.Members[m].Told[s].Counts)
		p.p95 = append(p.p95, quantile(bounds, p.own))
		for b, c := range p.own {
			p.pool[b] += c
		}
	}
}

func cumulate(dst []float64, counts []uint64) []float64 {
	dst = dst[:0]
	var sum float64
	for _, c := range counts {
		sum += float64(c)
		dst = append(dst, sum)
	}
	return dst
}

func quantile(bounds, cumulative []float64) float64 {
	if v, state := stats.Quantile(watchedQuantile, bounds, cumulative); state != stats.Undefined {
		return v
	}
	return math.NaN()
}

// apply tells which rules one latency meets in this pane, by replica.
func (p *peers) apply(f *fleet.Frame, s int, streaks []streak) {
	bounds := f.Members[0].Told[s].Layout.Bounds()
	middle, spread := p.robust()
	mean, deviation, known := p.moments()
	for m := range f.Members {
		streak, p95 := &streaks[m], p.p95[m]
		p.own = cumulate(p.own, f.Members[m].Told[s].Counts)
		n := p.own[len(p.own)-1]
		for b, c := range p.own {
			p.own[b] = p.pool[b] - c
		}
		high := p95 > ratioLimit*quantile(bounds, p.own) // false if one of them is not known
		if high && n >= heldObservations {
			streak.held++
		} else {
			streak.held = 0
		}
		streak.far <<= 1
		if spread > 0 && (p95-middle)/spread > madLimit {
			streak.far |= 1
		}
		streak.met = [ruleCount]bool{
			plainRatio:      high,
			heldRatio:       streak.held >= heldPanes,
			medianDeviation: bits.OnesCount8(streak.far&0b11111) >= madPanes,
			meanDeviation:   known >= meanReplicas && p95 > mean+meanLimit*deviation,
		}
	}
}

// robust is the median of the fleet's p95 and their spread, 1.4826 times the
// median deviation from it.
func (p *peers) robust() (middle, spread float64) {
	p.deviation = slices.DeleteFunc(append(p.deviation[:0], p.p95...), math.IsNaN)
	middle = median(p.deviation)
	for i, v := range p.deviation {
		p.deviation[i] = math.Abs(v - middle)
	}
	return middle, standardDeviation * median(p.deviation)
}

// moments are the mean of the fleet's p95 and their standard deviation.
func (p *peers) moments() (mean, deviation float64, known int) {
	var sum, squares float64
	for _, v := range p.p95 {
		if !math.IsNaN(v) {
			known++
			sum += v
		}
	}
	mean = sum / max(float64(known), 1)
	for _, v := range p.p95 {
		if !math.IsNaN(v) {
			squares += (v - mean) * (v - mean)
		}
	}
	return mean, math.Sqrt(squares / max(float64(known), 1)), known
}

// end closes the pane: a rule that is met begins an episode, one that has not
// been for long ends it.
func (s *streak) end() {
	for r := plainRatio; r < ruleCount; r++ {
		if s.met[r] {
			s.on[r], s.quiet[r] = true, 0
			continue
		}
		if s.quiet[r]++; s.quiet[r] >= quietPanes {
			s.on[r] = false
		}
	}
}

// median sorts values, which may be empty.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	half := len(values) / 2
	if len(values)%2 == 1 {
		return values[half]
	}
	return (values[half-1] + values[half]) / 2
}
