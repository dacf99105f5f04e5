// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/window"
)

const (
	// tokensTold is how many inter-token latencies a request tells. They are all
	// alike: so tokens of one request are, far more than those of two.
	tokensTold = 50
	// hitShare of the requests find so much of their prompt in the prefix cache.
	hitShare, hitDepth = 0.5, 0.8
)

// logNormal is a quantity of requests, and the buckets that vLLM counts it in.
type logNormal struct {
	signal fleet.Signal
	mu     float64   // log of the median
	sigma  float64   // on the log scale
	edges  []float64 // the bounds in standard deviations from the median
	usual  int       // the bucket of the median, where to look first
	layout *window.Layout
}

// The quantities of requests, which are independent but for TPOT: it is that of
// the request's tokens.
var (
	drawnLayouts window.Layouts
	drawnCount   = drawnLayouts.Intern(nil)

	drawnTTFT   = newLogNormal(fleet.TTFT, typical[fleet.TTFT].median, typical[fleet.TTFT].sigma, fleetsim.Bounds(fleetsim.VLLM, fleet.TTFT))
	drawnITL    = newLogNormal(fleet.ITL, typical[fleet.ITL].median, typical[fleet.ITL].sigma, fleetsim.Bounds(fleetsim.VLLM, fleet.ITL))
	drawnE2E    = newLogNormal(fleet.E2E, typical[fleet.E2E].median, typical[fleet.E2E].sigma, fleetsim.Bounds(fleetsim.VLLM, fleet.E2E))
	drawnQueue  = newLogNormal(fleet.QueueTime, 0.2, 1, drawnE2E.layout.Bounds())
	drawnPrompt = newLogNormal(fleet.PromptLength, 500, 1, lengthBounds())
	drawnOutput = newLogNormal(fleet.OutputLength, 150, 0.8, lengthBounds())
)

// lengthBounds are the bounds in which vLLM counts the tokens of requests to a model
// with a context of 131,072.
func lengthBounds() (bounds []float64) {
	for decade := 1.0; decade <= 1e5; decade *= 10 {
		bounds = append(bounds, decade, 2*decade, 5*decade)
	}
	return bounds[:len(bounds)-2]
}

func newLogNormal(s fleet.Signal, median, sigma float64, bounds []float64) *logNormal {
	l := &logNormal{signal: s, mu: math.Log(median), sigma: sigma, layout: drawnLayouts.Intern(bounds)}
	for _, bound := range bounds {
		l.edges = append(l.edges, (math.Log(bound)-l.mu)/sigma)
	}
	l.usual, _ = slices.BinarySearch(l.edges, 0)
	return l
}

// drawnLayout is how pods tell a signal; nil if they do not.
func drawnLayout(s fleet.Signal) *window.Layout {
	for _, l := range []*logNormal{drawnTTFT, drawnITL, drawnE2E, drawnQueue, drawnPrompt, drawnOutput} {
		if l.signal == s {
			return l.layout
		}
	}
	switch s {
	case fleet.TPOT:
		return drawnITL.layout
	case fleet.Errors, fleet.Finished, fleet.PrefixHits, fleet.PrefixQueries, fleet.GenerationTokens:
		return drawnCount
	default:
		return nil
	}
}

// draw draws a value, so many times as long as usual on the log scale, and the
// bucket that it is in.
func (l *logNormal) draw(r *rand.Rand, longer float64) (value float64, bucket int) {
	z := r.NormFloat64() + longer/l.sigma
	i := l.usual
	for i < len(l.edges) && z > l.edges[i] {
		i++
	}
	for i > 0 && z <= l.edges[i-1] {
		i--
	}
	return math.Exp(l.mu + l.sigma*z), i
}

// podTells is where a pod tells what.
type podTells struct {
	ttft, itl, tpot, e2e, queue, prompt, output *fleet.Distribution
	hits, queries, tokens, finished, failed     *fleet.Distribution
}

func newPodTells(frame *fleet.Frame, m *fleet.MemberFrame) podTells {
	of := func(s fleet.Signal) *fleet.Distribution { return &m.Told[frame.Index(s)] }
	return podTells{
		ttft: of(fleet.TTFT), itl: of(fleet.ITL), tpot: of(fleet.TPOT), e2e: of(fleet.E2E), queue: of(fleet.QueueTime),
		prompt: of(fleet.PromptLength), output: of(fleet.OutputLength), hits: of(fleet.PrefixHits), queries: of(fleet.PrefixQueries),
		tokens: of(fleet.GenerationTokens), finished: of(fleet.Finished), failed: of(fleet.Errors),
	}
}

// serve draws one pane of requests, whose latencies are so many times as long on
// the log scale, into what the pod tells.
func (p *drawnPod) serve(m *fleet.MemberFrame, rate, slower float64) {
	p.reset(m)
	t := &p.tells
	ttft, prompts, outputs := slower+math.Log(p.of.ttft), math.Log(p.of.prompt), math.Log(p.of.output)
	n := drawPoisson(p.requests, rate)
	for range n {
		m.Reasons[p.ends()].Count++
		p.observe(t.ttft, drawnTTFT, ttft)
		p.observe(t.e2e, drawnE2E, slower)
		p.observe(t.queue, drawnQueue, slower)
		gap, bucket := drawnITL.draw(p.requests, slower)
		t.itl.Counts[bucket] += tokensTold
		t.itl.Sum += tokensTold * gap
		t.tpot.Counts[bucket]++
		t.tpot.Sum += gap
		prompt := p.observe(t.prompt, drawnPrompt, prompts)
		t.queries.Counts[0] += uint64(prompt)
		if p.requests.Float64() < hitShare {
			t.hits.Counts[0] += uint64(hitDepth * prompt)
		}
		t.tokens.Counts[0] += uint64(p.observe(t.output, drawnOutput, outputs))
	}
	t.finished.Counts[0], t.failed.Counts[0] = n, m.Reasons[endsFailed].Count
}

// reset forgets the pane before.
func (p *drawnPod) reset(m *fleet.MemberFrame) {
	for i := range m.Told {
		clear(m.Told[i].Counts)
		m.Told[i].Sum = 0
	}
	for i := range m.Reasons {
		m.Reasons[i].Count = 0
	}
}

// observe draws what is told of one request.
func (p *drawnPod) observe(d *fleet.Distribution, l *logNormal, longer float64) float64 {
	value, bucket := l.draw(p.requests, longer)
	d.Counts[bucket]++
	d.Sum += value
	return value
}

// The reasons for which requests end, as members tell them.
const (
	endsAborted = iota
	endsFailed
	endsCut
	endsStopped
)

// ends draws the reason for which a request ends.
func (p *drawnPod) ends() int {
	u := p.requests.Float64()
	for reason, share := range [endsStopped]float64{p.of.aborted, p.of.failed, p.of.cut} {
		if u -= share; u < 0 {
			return reason
		}
	}
	return endsStopped
}

// drawPoisson counts the events of a Poisson process by its exponential gaps.
func drawPoisson(r *rand.Rand, mean float64) (n uint64) {
	for at := r.ExpFloat64(); at < mean; at += r.ExpFloat64() {
		n++
	}
	return n
}
