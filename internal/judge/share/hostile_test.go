// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOddPane: one pane that is far out, a miscounted request or engines that
// hang, does not keep a burst half an hour later from being named.
func TestOddPane(t *testing.T) {
	for name, odd := range map[string]func(*Pane){
		"tokens of a miscounted request": func(p *Pane) { p.Tenants[3].Uncached += 1e9 },
		"ten times the usual tokens":     func(p *Pane) { p.Tenants[3].Uncached += 10 * usualTokens },
		"engines that hang":              func(p *Pane) { p.ITLSum *= 500 },
		"engines that compile":           func(p *Pane) { p.ITLSum *= 50 },
	} {
		t.Run(name, func(t *testing.T) {
			j := warm(t)
			p := tellings["noise"].play(quietPanes, usualTokens, 0.05, usualITL)
			odd(p)
			r := j.Judge(p)
			assert.Equal(t, Incredible, r.Slope.Withheld)
			assert.Equal(t, Incredible, verdictOf(t, r, "zorro").Excess.Withheld)
			assert.Equal(t, Given, r.ITL.Withheld, "it is what it is")
			at := quietPanes + 1
			for ; at < quietPanes+30; at++ {
				j.Judge(tellings["noise"].play(at, usualTokens, 0.05, usualITL))
			}
			for ; at < quietPanes+35; at++ {
				r = j.Judge(story(at))
			}
			assert.Equal(t, []string{"zorro"}, noisy(r))
			assert.InDelta(t, 0.40, verdictOf(t, r, "zorro").Excess.Value, 0.1)
		})
	}
}

// TestAnotherWorld: what is many times the usual for long is learned from the
// beginning.
func TestAnotherWorld(t *testing.T) {
	j := warm(t)
	var r *Report
	for at := quietPanes; at < quietPanes+90; at++ {
		p := tellings["noise"].play(at, 20*usualTokens, 0.05, usualITL)
		p.Prompt = 20 * usualTokens
		r = j.Judge(p)
	}
	assert.NotEqual(t, Incredible, r.Slope.Withheld)
	assert.Equal(t, Given, r.UsualITL.Withheld)
}

// TestEverybodyHasAnotherName: where most tokens are of names that nobody has
// seen, nobody is taken for a newcomer, whatever the latency does.
func TestEverybodyHasAnotherName(t *testing.T) {
	for _, surge := range []int{0, 3, 10, 30} {
		j := warm(t)
		for at := quietPanes; at < quietPanes+60; at++ {
			tokens, itl := usualTokens, usualITL
			if at >= quietPanes+surge {
				tokens, itl = burstTokens, noisyITL
			}
			p := tellings["noise"].play(at, tokens, 0.3, itl)
			for i := range p.Tenants {
				p.Tenants[i].Name = "new-" + p.Tenants[i].Name
			}
			r := j.Judge(p)
			require.Empty(t, noisy(r), "a surge %d panes later, at %d", surge, at)
		}
	}
}
