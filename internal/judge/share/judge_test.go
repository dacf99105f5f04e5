// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// warm is a judge that has seen the quiet panes.
func warm(t *testing.T) *Judge {
	t.Helper()
	j := NewJudge(DefaultOptions(minute))
	for at := range quietPanes {
		require.Empty(t, noisy(j.Judge(story(at))))
	}
	return j
}

// story is the noisy neighbour, with noise.
func story(at int) *Pane { return tellings["noise"].play(at, burstTokens, 0.45, noisyITL) }

// flagged is a judge that has named the neighbour, and the next pane.
func flagged(t *testing.T) (j *Judge, next int) {
	t.Helper()
	j = warm(t)
	for next = quietPanes; next < quietPanes+5; next++ {
		j.Judge(story(next))
	}
	require.Equal(t, []string{"zorro"}, noisy(&j.report))
	return j, next
}

func TestWithheld(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *Pane)
		want   Withheld
	}{
		"nothing missing":      {func(*Pane) {}, Given},
		"no latency":           {func(p *Pane) { p.ITLSum, p.ITLCount = 0, 0 }, NoITL},
		"a sum of no latency":  {func(p *Pane) { p.ITLSum = 0 }, NoITL},
		"no replicas":          {func(p *Pane) { p.Replicas = 0 }, NoITL},
		"no tenants":           {func(p *Pane) { p.Tenants = nil }, NoTokens},
		"no tokens":            {func(p *Pane) { clear(p.Tenants) }, NoTokens},
		"running not told":     {func(p *Pane) { p.Running = -1 }, Given},
		"engines count no one": {func(p *Pane) { p.Prompt, p.Generation = -1, -1 }, Given},
		"prompts from a cache": {func(p *Pane) { p.Prompt *= 5 }, Given},
		"output not told":      {func(p *Pane) { forgetOutput(p) }, Given},
		"more is not seen":     {func(p *Pane) { p.Prompt *= 1.3; p.Generation *= 1.3 }, Unaccounted},
		"a little is not seen": {func(p *Pane) { p.Prompt *= 1.2; p.Generation *= 1.2 }, Given},
		"latency never moves":  {func(p *Pane) { p.ITLSum = usualITL * p.ITLCount }, Unidentifiable},
	} {
		t.Run(name, func(t *testing.T) {
			j := NewJudge(DefaultOptions(minute))
			var r *Report
			for at := range quietPanes + 5 {
				p := story(at)
				c.change(p)
				r = j.Judge(p)
			}
			assert.Equal(t, c.want, r.Slope.Withheld)
			for _, v := range r.Tenants {
				assert.Equal(t, c.want, v.Excess.Withheld)
				assert.Equal(t, c.want, v.Score.Withheld)
			}
			assert.Equal(t, c.want == Given, len(noisy(r)) == 1)
		})
	}
}

func forgetOutput(p *Pane) {
	for i := range p.Tenants {
		p.Tenants[i].Output = 0
	}
}

func TestWarming(t *testing.T) {
	j := NewJudge(DefaultOptions(minute))
	for at := range 2 * warmup {
		r := j.Judge(story(at))
		want := Given
		if at < warmup-1 {
			want = Warming
		}
		assert.Equal(t, want, r.UsualITL.Withheld)
		assert.Equal(t, Given, r.ITL.Withheld)
		for _, v := range r.Tenants {
			assert.Equal(t, want, v.UsualShare.Withheld)
			assert.Equal(t, want == Warming, v.Excess.Withheld == Warming)
		}
	}
}

// Latency and tokens that do not move together name nobody, however far one
// tenant's share has moved.
func TestUnidentifiable(t *testing.T) {
	j := NewJudge(DefaultOptions(minute))
	for at := range quietPanes + 20 {
		culprit := 0.05
		if at >= quietPanes {
			culprit = 0.45
		}
		r := j.Judge(pane(at, usualTokens*wobble(at, 0.1), culprit, usualITL*wobble(at+500, 0.05), 20))
		assert.Empty(t, noisy(r))
	}
}

func TestNewcomer(t *testing.T) {
	newcomer := func(from int) (r *Report) {
		j := NewJudge(DefaultOptions(minute))
		for at := range from + 5 {
			p := pane(at, usualTokens*wobble(at, 0.02), 0, usualITL*wobble(at, 0.008), 20)
			p.Tenants = p.Tenants[:19]
			if at >= from {
				p = pane(at, burstTokens*wobble(at, 0.02), 0.45, noisyITL*wobble(at, 0.008), 20)
			}
			r = j.Judge(p)
		}
		return r
	}
	late := verdictOf(t, newcomer(quietPanes), "zorro")
	assert.True(t, late.Noisy)
	assert.InDelta(t, 0, late.UsualShare.Value, 1e-12)
	early := verdictOf(t, newcomer(warmup-2), "zorro")
	assert.False(t, early.Noisy, "of a fleet that is not known, who came when?")
	assert.InDelta(t, 0.45, early.UsualShare.Value, 1e-9)
}

// What goes on for two half-lives is the new usual.
func TestWhatLastsIsUsual(t *testing.T) {
	o := DefaultOptions(minute)
	j, next := flagged(t)
	lasts := int(becomesUsual * o.HalfLife / minute)
	for at := next; at < quietPanes+3*lasts; at++ {
		r := j.Judge(story(at))
		v := verdictOf(t, r, "zorro")
		if since := at - quietPanes; since < lasts-1 {
			require.True(t, v.Noisy, "pane %d of the burst", since)
		} else if since > lasts+1 {
			require.Empty(t, noisy(r), "pane %d of the burst", since)
			assert.InDelta(t, 0.45, v.UsualShare.Value, 0.02)
			assert.InDelta(t, noisyITL, r.UsualITL.Value, 0.001)
		}
	}
}

func TestClears(t *testing.T) {
	j, next := flagged(t)
	for at := next; at < next+10; at++ {
		r := j.Judge(pane(at, usualTokens, 0.05, usualITL, 20))
		assert.Equal(t, at < next+DefaultOptions(minute).Panes-1, len(noisy(r)) == 1, "quiet pane %d", at-next)
		v := verdictOf(t, r, "zorro")
		if !v.Noisy {
			assert.Zero(t, v.Since)
		}
	}
}

// A noisy tenant that is gone without a word is no longer noisy.
func TestLeaves(t *testing.T) {
	j, next := flagged(t)
	for at := next; at < next+5; at++ {
		p := pane(at, usualTokens, 0, usualITL, 20)
		p.Tenants = p.Tenants[:19]
		assert.Empty(t, noisy(j.Judge(p)))
	}
	assert.False(t, j.accounts["zorro"].Noisy)
}

// A pane that tells nothing changes nothing.
func TestFlagOutlivesSilence(t *testing.T) {
	j, next := flagged(t)
	for at := next; at < next+10; at++ {
		p := story(at)
		p.ITLCount = 0
		r := j.Judge(p)
		assert.Equal(t, []string{"zorro"}, noisy(r))
		assert.Equal(t, NoITL, verdictOf(t, r, "zorro").Excess.Withheld)
	}
	assert.Equal(t, []string{"zorro"}, noisy(j.Judge(story(next+10))))
}

// Where panes are missing, time passes all the same, and no lag goes over them.
func TestGaps(t *testing.T) {
	j := NewJudge(DefaultOptions(minute))
	var r *Report
	for at := range quietPanes + 9 {
		if at%3 != 1 {
			r = j.Judge(story(at))
		}
	}
	v := verdictOf(t, r, "zorro")
	assert.True(t, v.Noisy)
	assert.InDelta(t, 0.40, v.Excess.Value, 0.1)
	for i, lag := range lags {
		told := map[int]float64{0: 33, 1: 16, -1: 16, 2: 0, -2: 0}[lag]
		assert.LessOrEqual(t, j.memory.Fits[i].panes(), told)
		assert.GreaterOrEqual(t, j.memory.Fits[i].panes(), told/2)
	}
}

func TestBeginsAnew(t *testing.T) {
	o := DefaultOptions(minute)
	for name, to := range map[string]time.Duration{"after long": becomesUsual*o.HalfLife + minute, "earlier": -minute, "again": 0} {
		t.Run(name, func(t *testing.T) {
			j := warm(t)
			p := story(quietPanes)
			p.End = endOf(quietPanes - 1).Add(to)
			assert.Equal(t, Warming, j.Judge(p).Slope.Withheld)
			assert.Len(t, j.accounts, len(p.Tenants))
		})
	}
}

// crowd is a pane of so many tenants, of which the first has the number.
func crowd(at, first, n int) *Pane {
	p := pane(at, usualTokens*wobble(at, 0.02), 0, usualITL*wobble(at, 0.008), 20)
	p.Tenants = p.Tenants[:0]
	for i := range n {
		p.Tenants = append(p.Tenants, Usage{fmt.Sprintf("tenant-%06d", first+i), float64(1 + i), 1})
	}
	return p
}

func TestMaxTenants(t *testing.T) {
	o := DefaultOptions(minute)
	o.MaxTenants = 50
	for name, c := range map[string]struct{ tenants, untold int }{"limit": {50, 0}, "limit and one": {51, 1}} {
		t.Run(name, func(t *testing.T) {
			j := NewJudge(o)
			var r *Report
			for at := range quietPanes {
				r = j.Judge(crowd(at, 0, c.tenants))
			}
			assert.Len(t, j.accounts, 50)
			require.Len(t, r.Tenants, c.tenants)
			var untold int
			for _, v := range r.Tenants {
				if v.UsualShare.Withheld == Warming {
					untold++
				}
			}
			assert.Equal(t, c.untold, untold)
		})
	}
}

// Who is away makes room, the one with the least share first.
func TestMaxTenantsMakesRoom(t *testing.T) {
	o := DefaultOptions(minute)
	o.MaxTenants = 50
	j := NewJudge(o)
	j.Judge(crowd(0, 0, 50))
	j.Judge(crowd(1, 100, 2))
	assert.Len(t, j.accounts, 50)
	for name, there := range map[string]bool{"tenant-000000": false, "tenant-000001": false, "tenant-000002": true, "tenant-000100": true} {
		assert.Equal(t, there, j.accounts[name] != nil, name)
	}
}

// Tenants that come, and go for good, do not fill the memory.
func TestForgetsTenants(t *testing.T) {
	j := NewJudge(DefaultOptions(minute))
	for at := range quietPanes {
		j.Judge(crowd(at, 0, 300))
	}
	for at := quietPanes; at < quietPanes+600; at++ {
		j.Judge(crowd(at, 1000, 3))
	}
	assert.Len(t, j.accounts, 3)
}

func TestNames(t *testing.T) {
	seen := make(map[string]bool)
	for w := range WithheldCount {
		require.NotEmpty(t, w.String())
		seen[w.String()] = true
	}
	assert.Len(t, seen, int(WithheldCount))
}
