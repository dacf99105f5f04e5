// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Three panes, each counting half as much as the next and by its latency's inverse
// square, worked by hand: the weights are 1/4, 1/2 and 1/4 of P (0, 1, 2) and ITL
// (1, 1, 2), so that the weighted sums are 1 and 1.25, and 1.5, 1.5 and 1.75 of their
// squares and product.
func TestFitByHand(t *testing.T) {
	var f fit
	for i, itl := range []float64{1, 1, 2} {
		f.forget(0.5)
		f.add(-1, float64(i), itl)
	}
	assert.InDelta(t, 1, f.Weight, 1e-12)
	assert.InDelta(t, 0.375, f.Squares, 1e-12)
	assert.InDelta(t, 1, f.Prompt, 1e-12)
	assert.InDelta(t, 1.25, f.ITL, 1e-12)
	assert.InDelta(t, 1.5-1, f.PP, 1e-12)
	assert.InDelta(t, 1.5-1.25, f.PI, 1e-12)
	assert.InDelta(t, 1.75-1.25*1.25, f.II, 1e-12)
	assert.InDelta(t, 1/0.375, f.panes(), 1e-12)
}

func TestFitNothingMoves(t *testing.T) {
	for name, pane := range map[string]func(i float64) (running, prompt, itl float64){
		"nothing": func(float64) (float64, float64, float64) { return 20, 3000, 0.02 },
		"prompts": func(i float64) (float64, float64, float64) { return 20, 3000 + i, 0.02 },
		"latency": func(i float64) (float64, float64, float64) { return 20, 3000, 0.02 + i/1000 },
	} {
		t.Run(name, func(t *testing.T) {
			var f fit
			for i := range 20 {
				f.forget(0.98)
				f.add(pane(float64(i % 5)))
			}
			assert.Zero(t, f.solve().slope)
			assert.Zero(t, f.solve().certainty)
		})
	}
}

const (
	alpha = 0.008 // s
	beta  = 2e-4  // s a request
	gamma = 2e-6  // s a token a second
)

// The exact model: running and prompts come and go apart, and the latency is
// their line with a little noise.
func TestFitRecoversTheModel(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var f fit
		for range 120 {
			running, prompt := 20+5*rng.NormFloat64(), 3000+600*rng.NormFloat64()
			f.forget(math.Exp2(-1.0 / 30))
			f.add(running, prompt, alpha+beta*running+gamma*prompt+1e-4*rng.NormFloat64())
		}
		l := f.solve()
		assert.InEpsilon(t, gamma, l.slope, 0.05)
		assert.InEpsilon(t, beta, l.batch, 0.15)
		assert.Greater(t, l.certainty, 20.0)
	}
}

// Requests come regardless of how fast they are served: running is demand times
// latency, and what a prompt token costs in all is gamma/(1 - beta·demand). However
// much of that goes through the batch, slope and gain make it up.
func TestFitWhereLatencyMakesTheBatch(t *testing.T) {
	var whole float64
	const worlds = 50
	for seed := range uint64(worlds) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var f fit
		for range 200 {
			demand, prompt := 1000+30*rng.NormFloat64(), 3000+600*rng.NormFloat64()
			itl := (alpha + gamma*prompt + 4e-4*rng.NormFloat64()) / (1 - beta*demand)
			f.forget(math.Exp2(-1.0 / 30))
			f.add(demand*itl, prompt, itl)
		}
		l := f.solve()
		assert.LessOrEqual(t, l.batch, beta)
		whole += l.slope / (1 - l.batch*f.Running/f.ITL) / worlds
	}
	assert.InEpsilon(t, gamma/(1-beta*1000), whole, 0.05)
}

// Three replicas of eight serve a client that comes and goes, so that latency, told
// by the token made, rises by more than the means over replicas say; then prompts
// come alone, to all. What the swings teach may not hide them.
func TestFitPromptsAfterTrafficThatSwings(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var f fit
		for at := range 70 {
			burst := 0.0
			if at >= 60 {
				burst = 3000
			}
			swing := 1.6 + 1.4*math.Sin(float64(at)/4) + 0.05*rng.NormFloat64()
			var made, prompts, running float64
			for replica := range 8 {
				demand := 300.0
				if replica < 3 {
					demand *= 1 + swing
				}
				prompt := 8*demand + burst
				made += demand
				prompts += prompt
				running += demand * (alpha + gamma*prompt) / (1 - beta*demand)
			}
			itl := running / made * (1 + 0.01*rng.NormFloat64())
			f.forget(math.Exp2(-1.0 / 30))
			f.add(made*itl/8, prompts/8, itl)
		}
		l := f.solve()
		assert.Greater(t, l.certainty, float64(certain))
		assert.InEpsilon(t, gamma, l.slope, 0.2) // least squares that share freely find three quarters
	}
}

// A batch that moves with the prompts alone explains nothing of its own.
func TestFitPromptsAndBatchTogether(t *testing.T) {
	var f fit
	for i := range 40 {
		itl, prompt := 0.02, 3000.0
		if i >= 35 {
			itl, prompt = 0.028, 6000
		}
		f.add(itl*1000, prompt, itl)
	}
	l := f.solve()
	assert.InDelta(t, 0, l.batch, 1e-9)
	assert.InEpsilon(t, 0.008/3000, l.slope, 1e-6)
}

func TestFitRunningComesLate(t *testing.T) {
	var f fit
	for i := range 40 {
		running := -1.0
		if i >= 20 {
			running = 50 // told from now on, and the same ever after
		}
		prompt := 3000 + 100*float64(i%7)
		f.add(running, prompt, alpha+gamma*prompt)
	}
	l := f.solve()
	assert.InEpsilon(t, gamma, l.slope, 1e-3)
	assert.Zero(t, l.batch)
}

// The statistics of a tenant against those of all its panes, kept and summed anew.
func TestScores(t *testing.T) {
	const decay = 0.97
	rng := rand.New(rand.NewPCG(1, 4))
	var f fit
	var c covariance
	var weight, surplus, usual, latency []float64
	panes := make([][4]float64, 60)
	for at := range panes {
		s, running, prompt := 500*rng.NormFloat64(), 20+5*rng.NormFloat64(), 3000+600*rng.NormFloat64()
		itl := alpha + beta*running + gamma*prompt + 1e-3*rng.NormFloat64()
		panes[at] = [4]float64{s, running, prompt, itl}
		f.forget(decay)
		c.forget(decay)
		d := f.add(running, prompt, itl)
		c.add(s, &d)
	}
	l := f.solve()
	for at, p := range panes {
		weight = append(weight, math.Pow(decay, float64(len(panes)-1-at))/(p[3]*p[3]))
		surplus = append(surplus, p[0])
		usual = append(usual, p[3]-l.batch*p[1]-l.slope*(p[2]-p[0]))
		latency = append(latency, p[3]-l.batch*p[1])
	}
	assert.InDelta(t, statistic(weight, surplus, usual), c.score(&f, &l), 1e-6)
	assert.InDelta(t, statistic(weight, surplus, latency), c.slows(&f, &l), 1e-6)
}

// statistic is t of the correlation of weighted values.
func statistic(weight, x, y []float64) float64 {
	var w, ww, mx, my, xx, xy, yy float64
	for i := range weight {
		w += weight[i]
		ww += weight[i] * weight[i]
		mx += weight[i] * x[i]
		my += weight[i] * y[i]
	}
	for i := range weight {
		dx, dy := x[i]-mx/w, y[i]-my/w
		xx += weight[i] * dx * dx
		xy += weight[i] * dx * dy
		yy += weight[i] * dy * dy
	}
	r := xy / math.Sqrt(xx*yy)
	return r * math.Sqrt((w*w/ww-2)/(1-r*r))
}
