// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"math"
	"time"

	"github.com/llmfleet/llmfleet/internal/judge/share"
)

// tenantRule names who accuses tenants: our judgement, or a correlation that
// people look at today.
type tenantRule int

const (
	judgement tenantRule = iota
	// shareCorrelation: a tenant's share of the prompt tokens and the fleet's
	// inter-token latency move together.
	shareCorrelation
	// tokenCorrelation: its prompt tokens do.
	tokenCorrelation
	tenantRuleCount
)

var tenantRuleNames = [tenantRuleCount]string{ //nolint:gosec // no credentials
	judgement: "judge", shareCorrelation: "share_correlation", tokenCorrelation: "token_correlation",
}

const (
	correlationHalfLife = 30 * time.Minute
	// A correlation accuses whose t statistic is above the limit in so many panes
	// in a row: the same that our judgement asks for.
	correlationLimit, accusePanes = 5, 3
)

// correlation is that of one tenant's figure with the fleet's inter-token
// latency: decayed sums of products of deviations.
type correlation struct {
	weight, squares float64 // of the panes, and of those
	meanX, meanY    float64
	xx, yy, xy      float64
	above           int // panes in a row above the limit
}

// add takes in one more pane.
func (c *correlation) add(x, y, keep float64) {
	c.weight = keep*c.weight + 1
	c.squares = keep*keep*c.squares + 1
	dx, dy := x-c.meanX, y-c.meanY
	c.meanX += dx / c.weight
	c.meanY += dy / c.weight
	c.xx = keep*c.xx + dx*(x-c.meanX)
	c.yy = keep*c.yy + dy*(y-c.meanY)
	c.xy = keep*c.xy + dx*(y-c.meanY)
}

// coefficient is Pearson's; 0 where one side stood still.
func (c *correlation) coefficient() float64 {
	if !(c.xx > 0) || !(c.yy > 0) {
		return 0
	}
	return c.xy / math.Sqrt(c.xx*c.yy)
}

// t is the statistic of the coefficient, by the effective number of panes.
func (c *correlation) t() float64 {
	const rounding = 1e-12 // of the coefficient of what is exactly a line
	r := c.coefficient()
	panes := c.weight * c.weight / c.squares
	return r * math.Sqrt(max(0, panes-2)/max(rounding, 1-r*r))
}

// correlations are those of all tenants of a fleet.
type correlations struct {
	of   func(u *share.Usage, all float64) float64
	keep float64
	each []correlation
}

func newCorrelations(r tenantRule, tenants int) *correlations {
	c := &correlations{keep: math.Exp2(-float64(pane) / float64(correlationHalfLife)), each: make([]correlation, tenants)}
	c.of = func(u *share.Usage, _ float64) float64 { return u.Uncached }
	if r == shareCorrelation {
		c.of = func(u *share.Usage, all float64) float64 { return u.Uncached / all }
	}
	return c
}

// judge takes in a pane: it names whose coefficient is the highest, and accuses
// who was above the limit for long enough.
func (c *correlations) judge(p *share.Pane, teller *teller, says *verdict) {
	var all float64
	for place := range p.Tenants {
		all += p.Tenants[place].Uncached
	}
	clear(says.accused)
	says.named = nobody
	best := math.Inf(-1)
	for place := range p.Tenants {
		of := &c.each[place]
		of.add(c.of(&p.Tenants[place], all), p.ITLSum/p.ITLCount, c.keep)
		of.above++
		if of.t() <= correlationLimit {
			of.above = 0
		}
		rank := teller.rank(place)
		if rank == nobody {
			continue
		}
		says.accused[rank] = of.above >= accusePanes
		if r := of.coefficient(); r > best {
			best, says.named = r, rank
		}
	}
}
