// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"time"

	"github.com/llmfleet/llmfleet/internal/window"
)

// recent is over how many panes a surplus is averaged, at most.
const recent = 3

// evident is how many standard errors the latency has to move with a surplus.
const evident = 2

// account is what is remembered of one tenant.
type account struct {
	Share usual // of the uncached prompt tokens
	// Surplus is s: uncached prompt tokens a second and replica beyond the usual
	// share, of the latest panes, the newest first.
	Surplus [reach + recent]float64
	With    [len(lags)]covariance
	// Climb is the CUSUM of the excess over what is tolerated (Page 1954), and
	// Climbing the panes since it was zero, the first of which began at Began.
	Climb    float64
	Climbing int
	Began    window.Instant
	// Suspect: its excess is that of a noisy tenant, whatever the score.
	Suspect bool
	// Convincing and Quiet are panes in a row.
	Convincing, Quiet int
	Noisy             bool
	Seen              window.Instant // when it last sent something

	uncached float64 // in the pane at hand
	present  bool
	excess   float64
	score    float64
}

// covariance is of a tenant's surplus and the fleet, at one lag. Its weights are
// those of the fit: a tenant that is not there has no surplus.
type covariance struct {
	Mean, SS, SR, SP, SI float64 // S surplus, R running, P prompt tokens, I inter-token latency
}

func (c *covariance) forget(decay float64) {
	c.SS, c.SR, c.SP, c.SI = decay*c.SS, decay*c.SR, decay*c.SP, decay*c.SI
}

func (c *covariance) add(surplus float64, d *deviation) {
	s := surplus - c.Mean
	c.Mean += d.part * s
	c.SS += d.carry * s * s
	c.SR += d.carry * s * d.running
	c.SP += d.carry * s * d.prompt
	c.SI += d.carry * s * d.itl
}

// score is the t statistic of the correlation of the surplus and what the usual
// traffic leaves of the latency: ITL - b·running - g·(P - surplus).
func (c *covariance) score(f *fit, l *line) float64 {
	left := c.SI - l.batch*c.SR - l.slope*c.SP // surplus and what the line leaves
	return f.t(c.SS, left+l.slope*c.SS, l.left+l.slope*(2*left+l.slope*c.SS))
}

// slows is the same of ITL - b·running: whether it is slower with the surplus
// than without, and not only slower than it had else become.
func (c *covariance) slows(f *fit, l *line) float64 {
	return f.t(c.SS, c.SI-l.batch*c.SR, f.leftBy(l.batch))
}

// observe takes what the tenant sent in a pane.
func (a *account) observe(o *observation, total float64, deviations *[len(lags)]deviation) {
	share := a.uncached / total
	copy(a.Surplus[1:], a.Surplus[:])
	a.Surplus[0] = (share - a.Share.mean(share)) * o.Prompt
	for i, lag := range lags {
		if d := &deviations[i]; d.known {
			a.With[i].add(a.Surplus[max(0, lag)], d)
		}
	}
	if a.uncached > 0 {
		a.Seen = o.End
	}
}

// weigh finds the tenant's excess and score in the pane, and what it has become:
// noisy, or no longer.
func (a *account) weigh(o *Options, e *effect, end window.Instant) {
	surplus := a.Surplus[max(0, lags[e.at]):]
	now := e.excess(surplus[0])
	tolerated := o.MinExcess / 2
	if a.Climb == 0 {
		a.Climbing = 0
		a.Began = end.Add(-time.Duration(1+max(lags[e.at], -lags[e.at])) * o.Pane) // as told by who is not late
	}
	a.Climb = max(0, min(a.Climb+now-tolerated, o.MinExcess*recent))
	a.Climbing++
	var sum float64
	n := min(a.Climbing, recent)
	for _, s := range surplus[:n] {
		sum += s
	}
	a.excess = e.excess(sum / float64(n))
	a.score = a.With[e.at].score(e.fit, &e.line)

	known := e.reason == Given
	a.Suspect = known && e.felt(a.excess) >= o.MinExcess
	a.Convincing++
	if !a.Suspect || a.score <= o.MinScore || a.With[e.at].slows(e.fit, &e.line) <= evident {
		a.Convincing = 0
	}
	a.Quiet++
	if known && now >= tolerated {
		a.Quiet = 0
	}
}

// unusual tells whether what the tenant sends may be no part of its usual share.
func (a *account) unusual() bool { return a.Noisy || a.Suspect }

// decide turns the flag on or off. It tells whether what was noise is from now on
// the usual.
func (a *account) decide(o *Options, end window.Instant) (adopted bool) {
	switch {
	case !a.Noisy && a.Convincing >= o.Panes:
		a.Noisy, a.Quiet = true, 0
	case a.Noisy && a.Quiet >= o.Panes:
		a.calm()
	case a.unusual() && end.Sub(a.Began) > becomesUsual*o.HalfLife:
		a.Share.adopt()
		a.Surplus = [reach + recent]float64{}
		a.calm()
		return true
	}
	return false
}

// calm ends an episode.
func (a *account) calm() {
	a.Noisy, a.Suspect, a.Convincing, a.Climb = false, false, 0, 0
}
