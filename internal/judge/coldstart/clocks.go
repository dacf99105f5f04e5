// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"time"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

const (
	// clockSpan is how long a clock's offset counts at least, and twice that at most.
	clockSpan = 10 * time.Minute
	// clockTolerance is the difference of clocks up to which times are taken as told:
	// news travel, and whole seconds hide as much. Of many news the fastest came at
	// once and hide next to nothing.
	clockTolerance     = time.Second
	clockToleranceMany = 300 * time.Millisecond
	manyNews           = 20
	// maxClocks bounds the nodes whose clocks are followed.
	maxClocks = 20_000
)

// clocks know how far the clocks of nodes are off the control plane's. News that
// come at once show it: the least of what lies between a time that a clock told
// and the collector's learning of it is the clock's offset, and the journey of the
// fastest news. The filter is that of Paxson, "On Calibrating Measurements of
// Packet Transit Times", SIGMETRICS 1998, without drift.
type clocks struct {
	of map[lifecycle.Clock]*offset
}

// offset is the least that was seen in the current and in the last clockSpan.
type offset struct {
	Since         window.Instant
	Current, Last time.Duration
	HasLast       bool
	News          int
}

func (c *clocks) hear(f *lifecycle.Fact) {
	if f.Learned == 0 || f.At == 0 || f.Clock.Kind == lifecycle.Engine {
		return
	}
	lag := f.Learned.Sub(f.At)
	o := c.of[f.Clock]
	switch {
	case o == nil:
		if len(c.of) < maxClocks {
			c.of[f.Clock] = &offset{Since: f.Learned, Current: lag, News: 1}
		}
	case f.Learned.Sub(o.Since) > clockSpan:
		*o = offset{Since: f.Learned, Current: lag, Last: o.Current, HasLast: f.Learned.Sub(o.Since) <= 2*clockSpan, News: o.News + 1}
	default:
		o.Current = min(o.Current, lag)
		o.News++
	}
}

func (o *offset) least() time.Duration {
	if o.HasLast {
		return min(o.Current, o.Last)
	}
	return o.Current
}

// forget drops the clocks that told nothing for as long as a start may take.
func (c *clocks) forget(now window.Instant, ttl time.Duration) {
	for clock, o := range c.of {
		if now.Sub(o.Since) > ttl+2*clockSpan {
			delete(c.of, clock)
		}
	}
}

// shift is what is added to a time of the clock to have it by the control
// plane's, 0 where they cannot be told apart.
func (c *clocks) shift(clock lifecycle.Clock) time.Duration {
	base, of := c.of[lifecycle.Clock{}], c.of[clock]
	if base == nil || of == nil {
		return 0
	}
	tolerance := clockTolerance
	if min(base.News, of.News) >= manyNews {
		tolerance = clockToleranceMany
	}
	return beyond(tolerance, of.least()-base.least())
}

// shiftBy is the same for a clock of which the least lag is known otherwise.
func (c *clocks) shiftBy(lag time.Duration, ok bool) time.Duration {
	base := c.of[lifecycle.Clock{}]
	if base == nil || !ok {
		return 0
	}
	return beyond(clockTolerance, lag-base.least())
}

func beyond(tolerance, d time.Duration) time.Duration {
	if d > tolerance || d < -tolerance {
		return d
	}
	return 0
}
