// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// verdicts plays panes and returns what is told of the tenants after the last.
func verdicts(panes []*Pane) []Verdict {
	j := NewJudge(DefaultOptions(minute))
	for _, p := range panes[:len(panes)-1] {
		j.Judge(p)
	}
	return slices.Clone(j.Judge(panes[len(panes)-1]).Tenants)
}

func storyPanes() (panes []*Pane) {
	for at := range quietPanes + 6 {
		panes = append(panes, story(at))
	}
	return panes
}

func near(t assert.TestingT, want, got *Verdict) {
	assert.Equal(t, want.Noisy, got.Noisy)
	assert.Equal(t, want.Since, got.Since)
	assert.Equal(t, want.Excess.Withheld, got.Excess.Withheld)
	assert.InDelta(t, want.Excess.Value, got.Excess.Value, 1e-6)
	assert.InDelta(t, want.UsualShare.Value, got.UsualShare.Value, 1e-9)
	assert.InDelta(t, want.Score.Value, got.Score.Value, 1e-3*math.Abs(want.Score.Value)+1e-6)
}

// Who is called what, and stands where, makes no difference.
func TestNamesMakeNoDifference(t *testing.T) {
	want := verdicts(storyPanes())
	rapid.Check(t, func(t *rapid.T) {
		order := rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}).Draw(t, "order")
		panes := storyPanes()
		for _, p := range panes {
			named := slices.Clone(p.Tenants)
			for i, from := range order {
				p.Tenants[i].Uncached, p.Tenants[i].Output = named[from].Uncached, named[from].Output
			}
		}
		got := verdicts(panes)
		for i, from := range order {
			near(t, &want[from], &got[i])
		}
	})
}

// Tokens that are twice as many and cost half, a clock that began elsewhere, a
// fleet of more replicas: none of it is news.
func TestScalesMakeNoDifference(t *testing.T) {
	want := verdicts(storyPanes())
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.Float64Range(1e-2, 1e4).Draw(t, "tokens")
		seconds := rapid.Float64Range(1e-2, 1e2).Draw(t, "seconds")
		size := rapid.IntRange(1, 50).Draw(t, "size")
		shift := rapid.IntRange(-1_000_000, 1_000_000).Draw(t, "panes later")
		panes := storyPanes()
		for _, p := range panes {
			p.End += endOf(shift) - endOf(0)
			p.ITLSum *= seconds
			p.Prompt *= tokens
			p.Generation *= tokens
			p.Replicas *= size
			p.Running *= float64(size)
			for i := range p.Tenants {
				p.Tenants[i].Uncached *= tokens
				p.Tenants[i].Output *= tokens
			}
		}
		got := verdicts(panes)
		for i := range want {
			if want[i].Noisy {
				got[i].Since -= endOf(shift) - endOf(0)
			}
			near(t, &want[i], &got[i])
		}
	})
}

// Whatever is told, figures are numbers, and the excesses of all sum to nothing.
func TestFiguresAreNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := NewJudge(DefaultOptions(minute))
		at := 0
		for range rapid.IntRange(1, 60).Draw(t, "panes") {
			at += rapid.SampledFrom([]int{1, 1, 1, 1, 2, 70}).Draw(t, "step")
			p := &Pane{
				End:        endOf(at),
				Replicas:   rapid.IntRange(0, 3).Draw(t, "replicas"),
				ITLSum:     rapid.SampledFrom([]float64{0, 1e-9, 1, 20, 1e9}).Draw(t, "sum"),
				ITLCount:   rapid.SampledFrom([]float64{0, 1, 1000, 1e12}).Draw(t, "count"),
				Running:    rapid.SampledFrom([]float64{-1, 0, 1, 40, 1e6}).Draw(t, "running"),
				Prompt:     rapid.SampledFrom([]float64{-1, 0, 1000}).Draw(t, "prompt"),
				Generation: rapid.SampledFrom([]float64{-1, 0, 1000}).Draw(t, "generation"),
			}
			for _, name := range []string{"a", "b", "c"} {
				if rapid.Bool().Draw(t, "there") {
					p.Tenants = append(p.Tenants, Usage{name, rapid.SampledFrom([]float64{0, 1, 1000, 1e15}).Draw(t, "tokens"), 10})
				}
			}
			r := j.Judge(p)
			require.Len(t, r.Tenants, len(p.Tenants))
			figures := []Figure{r.ITL, r.UsualITL, r.Slope}
			for _, v := range r.Tenants {
				figures = append(figures, v.UsualShare, v.Excess, v.Score)
				require.Equal(t, v.Noisy, v.Since != 0)
			}
			for _, f := range figures {
				require.False(t, math.IsNaN(f.Value) || math.IsInf(f.Value, 0), "%+v", f)
				if f.Withheld != Given {
					require.Zero(t, f.Value)
				}
			}
		}
	})
}
