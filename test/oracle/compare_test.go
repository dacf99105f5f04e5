// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"math"
	"time"
)

// tolerance is how far two figures may lie apart, relative to the larger: room for sums in another order.
const tolerance = 1e-9

// equal reports whether two figures are the same within the tolerance.
func equal(a, b float64) bool {
	return math.Abs(a-b) <= tolerance*max(math.Abs(a), math.Abs(b))
}

// tally counts the evaluations of a class, one for each fleet and instant.
type tally struct {
	evaluations, compared, undefined, saturated, lowest int
	unlike                                              int // not compared: the two read buckets of other resolution
	figures                                             int
	differences                                         []difference
}

func (c *tally) String() string {
	return fmt.Sprintf("%d evaluations: %d compared (%.1f %%), %d undefined, %d saturated, %d in the lowest bucket, %d unlike; %d figures, %d differ",
		c.evaluations, c.compared, 100*c.share(), c.undefined, c.saturated, c.lowest, c.unlike, c.figures, len(c.differences))
}

// share is the part of the evaluations in which the spread was compared.
func (c *tally) share() float64 { return float64(c.compared) / float64(c.evaluations) }

// add counts what another tally counted.
func (c *tally) add(o tally) {
	c.evaluations += o.evaluations
	c.compared += o.compared
	c.undefined += o.undefined
	c.saturated += o.saturated
	c.lowest += o.lowest
	c.unlike += o.unlike
	c.figures += o.figures
	c.differences = append(c.differences, o.differences...)
}

// difference is a figure on which the two do not agree; NaN stands for no figure.
type difference struct {
	history   *history
	at        time.Time
	figure    figure
	want, got float64
}

func (d *difference) String() string {
	return fmt.Sprintf("%s seed %d at %s: %s of %s %s: Prometheus says %v, fleet_outlier %v",
		d.history.class, d.history.seed, offset(d.at), d.figure.metric, d.figure.model, d.figure.pod, d.want, d.got)
}

// comparison holds the figures of one fleet at one instant against each other.
type comparison struct {
	tally
	history   *history
	at        time.Time
	want, got map[figure]float64
}

// compare holds what was derived from a history against what Prometheus says.
func compare(h *history, want, got figures) tally {
	var all tally
	for _, at := range h.evaluations() {
		for _, model := range h.models {
			c := comparison{history: h, at: at, want: want[at.UnixMilli()], got: got[at.UnixMilli()]}
			c.fleet(model)
			all.add(c.tally)
		}
	}
	return all
}

func (c *comparison) fleet(model string) {
	c.evaluations++
	if c.history.form == exponential && !c.history.sameResolution(model, c.at) {
		c.unlike++
		return
	}
	latency := figure{fleetLatency, model, ""}
	ratio := figure{fleetSpread, model, ""}
	c.same(figure{fleetImbalance, model, ""})
	fleet := c.place(latency)
	if fleet != lowestBucket {
		c.same(latency)
	}
	slowest := undefined
	for i := range c.history.pods {
		p := &c.history.pods[i]
		if p.model == model {
			slowest = max(slowest, c.replica(p, fleet))
		}
	}
	switch {
	case fleet == undefined || slowest == undefined:
		c.undefined++
		c.same(ratio)
	case fleet == aboveBuckets || slowest == aboveBuckets:
		c.saturated++
		c.absent(ratio)
	case fleet == lowestBucket || slowest == lowestBucket:
		c.lowest++
		c.absent(ratio)
	default:
		c.compared++
		c.same(ratio)
	}
}

// replica compares the figures of one replica and returns where its quantile lies.
func (c *comparison) replica(p *pod, fleet place) place {
	latency := figure{replicaLatency, p.model, p.name}
	ratio := figure{replicaRatio, p.model, p.name}
	at := c.place(latency)
	if at != lowestBucket {
		c.same(latency)
	}
	if at == within && fleet == within || at == undefined {
		c.same(ratio)
	} else {
		c.absent(ratio)
	}
	return at
}

// same counts a difference unless both have the figure and it is equal, or both have none.
func (c *comparison) same(key figure) {
	want, wanted := c.want[key]
	got, given := c.got[key]
	c.figures++
	if wanted != given || wanted && !equal(want, got) {
		c.differ(key, want, wanted, got, given)
	}
}

// absent counts a difference where a figure was given that ought to have been withheld.
func (c *comparison) absent(key figure) {
	c.figures++
	if got, given := c.got[key]; given {
		c.differ(key, 0, false, got, true)
	}
}

func (c *comparison) differ(key figure, want float64, wanted bool, got float64, given bool) {
	if !wanted {
		want = math.NaN()
	}
	if !given {
		got = math.NaN()
	}
	c.differences = append(c.differences, difference{history: c.history, at: c.at, figure: key, want: want, got: got})
}

// place is where among the buckets a quantile lies; the greatest of several is the slowest replica's.
type place int

const (
	undefined    place = iota
	lowestBucket       // all mass is in the lowest bucket: nothing is known but an upper bound
	within
	aboveBuckets // at or above the top finite bound: nothing is known but a lower bound
)

// place tells where Prometheus' figure lies. If and only if all mass is in the lowest bucket, interpolation gives 0.95 of
// its bound; any mass above makes it more.
func (c *comparison) place(key figure) place {
	const rounding = 1e-12
	v, ok := c.want[key]
	if !ok {
		return undefined
	}
	if c.history.form == exponential {
		return placeExponential(v)
	}
	lowest, top := c.history.bounds[0], c.history.bounds[len(c.history.bounds)-1]
	switch {
	case v >= top*(1-rounding):
		return aboveBuckets
	case v <= 0.95*lowest*(1+rounding):
		return lowestBucket
	default:
		return within
	}
}
