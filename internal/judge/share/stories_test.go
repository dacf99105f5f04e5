// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/tenant"
	"github.com/llmfleet/llmfleet/internal/window"
)

const (
	minute   = time.Minute
	replicas = 4
	// usualTokens are the uncached prompt tokens of a pane.
	usualTokens = 1_000_000.0
	usualITL    = 0.020
	noisyITL    = 0.028
	// quietPanes come before anything happens.
	quietPanes = 40
)

// birth is the start of the first pane.
const birth = window.Instant(1_700_000_040_000_000_000)

func endOf(pane int) window.Instant { return birth.Add(time.Duration(pane+1) * minute) }

// pane is made by hand: nineteen tenants who share what the culprit leaves.
func pane(at int, tokens, culprit, itl, running float64) *Pane {
	p := &Pane{
		End: endOf(at), Replicas: replicas, ITLSum: itl * 5e5, ITLCount: 5e5, Running: running * replicas,
		Prompt: tokens, Generation: 5e5,
	}
	for i := range 19 {
		p.Tenants = append(p.Tenants, Usage{fmt.Sprintf("tenant-%02d", i), tokens * (1 - culprit) / 19, 5e5 * 0.95 / 19})
	}
	p.Tenants = append(p.Tenants, Usage{"zorro", tokens * culprit, 5e5 * 0.05})
	return p
}

// wobble is a noise of the given size that repeats itself only after long.
func wobble(at int, size float64) float64 { return 1 + size*math.Sin(2.4*float64(at)*float64(at)) }

// noisy are those that a report flags.
func noisy(r *Report) (names []string) {
	for _, v := range r.Tenants {
		if v.Noisy {
			names = append(names, v.Name)
		}
	}
	return names
}

func verdictOf(t *testing.T, r *Report, name string) *Verdict {
	t.Helper()
	for i := range r.Tenants {
		if r.Tenants[i].Name == name {
			return &r.Tenants[i]
		}
	}
	t.Fatalf("no verdict of %s", name)
	return nil
}

// burstTokens are those of a pane in which all others send what they did, and the
// culprit, of 5 %, has 45 %.
const burstTokens = usualTokens * 0.95 / 0.55

// told is a way in which latency and tokens are told.
type told struct {
	noise   float64
	running func(itl float64) float64
	late    int // panes by which tokens are told after the latency
}

var tellings = map[string]told{
	"steady":               {0, func(float64) float64 { return 20 }, 0},
	"noise":                {0.02, func(float64) float64 { return 20 }, 0},
	"running not told":     {0.02, func(float64) float64 { return -1 }, 0},
	"latency makes batch":  {0.02, func(itl float64) float64 { return 1000 * itl }, 0},
	"tokens a pane late":   {0.02, func(float64) float64 { return 20 }, 1},
	"tokens two late":      {0.02, func(float64) float64 { return 20 }, 2},
	"latency a pane late":  {0.02, func(float64) float64 { return 20 }, -1},
	"latency two late":     {0.02, func(float64) float64 { return 20 }, -2},
	"steady and pane late": {0, func(itl float64) float64 { return 1000 * itl }, 1},
}

// play is a story in which something happens after quietPanes: the tokens, the
// culprit's share and the latency are others.
func (w told) play(at int, tokens, culprit, itl float64) *Pane {
	engines, gateways := at, at-w.late
	if w.late < 0 {
		engines, gateways = at+w.late, at
	}
	load, part, latency := usualTokens*wobble(gateways, w.noise), 0.05, usualITL
	if gateways >= quietPanes {
		load, part = tokens*wobble(gateways, w.noise), culprit
	}
	if engines >= quietPanes {
		latency = itl
	}
	latency *= wobble(engines+1000, w.noise/4) * (1 + 0.4*(wobble(engines, w.noise)-1))
	return pane(at, load, part, latency, w.running(latency))
}

// Issue: one tenant's share goes from 5 to 45 %, and ITL from 20 to 28 ms.
func TestNoisyNeighbour(t *testing.T) {
	for name, w := range tellings {
		t.Run(name, func(t *testing.T) {
			j := NewJudge(DefaultOptions(minute))
			for at := range quietPanes {
				require.Empty(t, noisy(j.Judge(w.play(at, burstTokens, 0.45, noisyITL))), "pane %d", at)
			}
			// Until late latency is told, what the tokens say passes for usual.
			unseen := 0.02 * float64(max(0, -w.late))
			named := -1
			for at := quietPanes; at < quietPanes+20; at++ {
				r := j.Judge(w.play(at, burstTokens, 0.45, noisyITL))
				if named < 0 && len(noisy(r)) > 0 {
					named = at - quietPanes
				}
				if named < 0 {
					continue
				}
				require.Equal(t, []string{"zorro"}, noisy(r))
				v := verdictOf(t, r, "zorro")
				assert.InDelta(t, 0.40, v.Excess.Value, 0.1)
				assert.InDelta(t, 0.05, v.UsualShare.Value, 0.015+unseen)
				assert.Greater(t, v.Score.Value, 5.0)
				assert.InDelta(t, usualITL, r.UsualITL.Value, 0.001)
				assert.InDelta(t, 0, v.Since.Sub(endOf(quietPanes-1)).Minutes(), 1)
			}
			delay := max(w.late, -w.late) // of what the pane is told, not of the judgement
			assert.True(t, 0 <= named && named < 5+delay, "named in pane %d", named)
			for at := quietPanes + 20; at < quietPanes+30; at++ {
				r := j.Judge(pane(at, usualTokens, 0.05, usualITL, 20))
				if at >= quietPanes+20+DefaultOptions(minute).Panes+2*reach {
					assert.Empty(t, noisy(r))
				}
			}
		})
	}
}

// Issue: the same latency from a surge that all take part in.
func TestSurgeIsNobodys(t *testing.T) {
	for name, w := range tellings {
		t.Run(name, func(t *testing.T) {
			j := NewJudge(DefaultOptions(minute))
			for at := range quietPanes + 60 {
				r := j.Judge(w.play(at, 2*usualTokens, 0.05, noisyITL))
				require.Empty(t, noisy(r), "pane %d", at)
				for _, v := range r.Tenants {
					assert.Less(t, v.Excess.Value, 0.05)
				}
			}
		})
	}
}

// A surge of all and a burst of one begin together: the one is named, and not
// for what the surge does.
func TestBurstInASurge(t *testing.T) {
	j := NewJudge(DefaultOptions(minute))
	w := tellings["noise"]
	var r *Report
	for at := range quietPanes + 6 {
		// 0.008 s for as many tokens more as in the story; the surge has as many again.
		r = j.Judge(w.play(at, 2*burstTokens, 0.45, usualITL+0.008*(2*burstTokens-usualTokens)/(burstTokens-usualTokens)))
	}
	assert.Equal(t, []string{"zorro"}, noisy(r))
	// Its surplus over 5 % is 40 % of the tokens.
	assert.InDelta(t, 0.4*0.40*2*burstTokens/(burstTokens-usualTokens), verdictOf(t, r, "zorro").Excess.Value, 0.1)
}

// In a surge that makes all 2.6 times as slow, one sends a little more than its
// share: 0.0035 s, which are a sixth of the usual and a fourteenth of the rest.
func TestDriftInASurge(t *testing.T) {
	const tokens, surplus = 4 * usualTokens, 0.08 * 4 * usualTokens
	const perToken = (noisyITL - usualITL) / (burstTokens - usualTokens)
	j := NewJudge(DefaultOptions(minute))
	w := tellings["noise"]
	for at := range quietPanes + 20 {
		r := j.Judge(w.play(at, tokens, 0.05+0.08, usualITL+perToken*(tokens-usualTokens)))
		require.Empty(t, noisy(r), "pane %d", at)
		if at == quietPanes+2 {
			assert.InDelta(t, perToken*surplus/usualITL, verdictOf(t, r, "zorro").Excess.Value, 0.05)
		}
	}
}

// Shares that change without a change of latency are nobody's noise.
func TestSharesChangeAndLatencyDoesNot(t *testing.T) {
	j := NewJudge(DefaultOptions(minute))
	w := tellings["noise"]
	for at := range quietPanes + 60 {
		assert.Empty(t, noisy(j.Judge(w.play(at, usualTokens, 0.45, usualITL))), "pane %d", at)
	}
}

// What may be noise is no usual share, but what lasts is, named or not.
func TestSuspectBecomesUsual(t *testing.T) {
	o := DefaultOptions(minute)
	j := NewJudge(o)
	w := tellings["noise"]
	lasts := int(becomesUsual * o.HalfLife / minute)
	for at := range quietPanes + lasts + 3 {
		r := j.Judge(w.play(at, usualTokens, 0.45, usualITL))
		switch usual := verdictOf(t, r, "zorro").UsualShare.Value; at - quietPanes {
		case 0, lasts / 2, lasts - 1:
			assert.InDelta(t, 0.05, usual, 1e-9)
		case lasts + 2:
			assert.InDelta(t, 0.45, usual, 1e-2)
		}
	}
}

// Twice the replicas serve twice the tokens: nothing has changed.
func TestScalingIsNoSurge(t *testing.T) {
	same, scaled := NewJudge(DefaultOptions(minute)), NewJudge(DefaultOptions(minute))
	w := tellings["noise"]
	for at := range 2 * quietPanes {
		p := w.play(at, usualTokens, 0.05, usualITL)
		want := same.Judge(p).Slope
		if at >= quietPanes {
			p.Replicas, p.Running, p.Prompt, p.Generation = 2*p.Replicas, 2*p.Running, 2*p.Prompt, 2*p.Generation
			for i := range p.Tenants {
				p.Tenants[i].Uncached *= 2
				p.Tenants[i].Output *= 2
			}
		}
		got := scaled.Judge(p).Slope
		require.Equal(t, want.Withheld, got.Withheld)
		assert.InDelta(t, want.Value, got.Value, 1e-9*want.Value)
	}
}

// Who is one of many, and who is many.
func TestWhoCanBeNoisy(t *testing.T) {
	for name, want := range map[string]bool{tenant.Other: false, tenant.Unknown: true, tenant.Invalid: true, tenant.Unmapped: true} {
		t.Run(name, func(t *testing.T) {
			j := NewJudge(DefaultOptions(minute))
			w := tellings["noise"]
			var r *Report
			for at := range quietPanes + 5 {
				p := w.play(at, burstTokens, 0.45, noisyITL)
				p.Tenants[len(p.Tenants)-1].Name = name
				r = j.Judge(p)
			}
			v := verdictOf(t, r, name)
			assert.Equal(t, want, v.Noisy)
			assert.InDelta(t, 0.35, v.Excess.Value, 0.1) // what is not flagged becomes usual at once
		})
	}
}
