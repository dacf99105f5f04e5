// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstartconnector

import (
	"cmp"
	"slices"
	"time"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/judge/coldstart"
	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

const (
	stageCount   = coldstart.Unattributed + 1
	outcomeCount = len(outcomes)
)

// figures are what starts add up to, by model.
type figures struct {
	config     *Config
	models     map[modelKey]*model
	turned     window.Instant // the last evaluation
	at         window.Instant // the one that runs
	overflowed int64          // starts that were counted under no model of their own
}

// modelKey is whose starts are counted together. That of the series of all that
// have none of their own is overflow alone.
type modelKey struct {
	namespace, model, gpu string
	overflow              bool
}

// model is the figures of one.
type model struct {
	since  window.Instant // what adds up does
	last   window.Instant // something was counted
	kinds  map[kind]*durations
	failed [stageCount][outcomeCount]uint64
	panes  []pane // of the window, oldest first
	// starting is how many replicas are at a stage now; shown are the stages at which
	// one has been.
	starting [stageCount]int
	shown    [stageCount]bool
}

// kind is which starts have durations of the same series.
type kind struct {
	class                 coldstart.Class
	nodeWarm, imageCached coldstart.Answer
}

// durations are the histograms of one kind of start; nil where there are none.
type durations struct {
	since  window.Instant
	whole  *histogram
	stages [stageCount]*histogram
}

// mostPanes is in how many parts a window is kept at most.
const mostPanes = 1000

// pane is the critical time of the starts that ended in one interval, or in several
// short ones.
type pane struct {
	at       window.Instant
	total    time.Duration
	critical [stageCount]time.Duration
}

func newFigures(c *Config) *figures { return &figures{config: c, models: make(map[modelKey]*model)} }

// begin says since when starts are counted.
func (f *figures) begin(at window.Instant) { f.at = at }

// turn begins an evaluation: what is over for long is forgotten. It returns how many
// starts were counted under no model of their own so far.
func (f *figures) turn(at window.Instant) (overflowed int64) {
	f.turned, f.at = f.at, at
	for key, m := range f.models {
		if at.Sub(m.last) >= f.config.ForgetAfter {
			delete(f.models, key)
			continue
		}
		m.panes = slices.DeleteFunc(m.panes, func(p pane) bool { return at.Sub(p.at) >= f.config.Window })
		m.starting = [stageCount]int{}
	}
	return f.overflowed
}

// of finds the figures of a model; those of the overflow if there are too many.
func (f *figures) of(key modelKey) (m *model, overflow bool) {
	if m = f.models[key]; m == nil {
		if overflow = len(f.models) >= f.config.MaxModels && !key.overflow; overflow {
			m, _ = f.of(modelKey{overflow: true})
			return m, true
		}
		m = &model{since: f.turned, kinds: make(map[kind]*durations)}
		f.models[key] = m
	}
	m.last = f.at
	return m, false
}

func keyOf(p *lifecycle.Pod) modelKey {
	return modelKey{namespace: p.Namespace, model: p.Model, gpu: p.GPUModel}
}

// observe counts a start that is over. Only one that served has durations.
func (f *figures) observe(r *coldstart.Report) {
	m, overflow := f.of(keyOf(&r.Pod))
	if overflow {
		f.overflowed++
	}
	if r.Outcome != coldstart.Served {
		stopped := r.Stopped
		if stopped.Holds() {
			stopped = coldstart.Unattributed
		}
		m.failed[stopped][r.Outcome]++
		return
	}
	d := f.durations(m, kind{r.Class, r.NodeWarm, r.ImageCached})
	e := exemplarOf(r.ID, r.Spans[0].End)
	f.count(&d.whole, e, r.Total.Seconds())
	for stage, length := range stageLengths(r) {
		f.count(&d.stages[stage], e, length.Seconds())
	}
	if r.Unattributed > 0 {
		f.count(&d.stages[coldstart.Unattributed], e, r.Unattributed.Seconds())
	}
	if n := len(m.panes); n == 0 || f.at.Sub(m.panes[n-1].at) > f.config.Window/mostPanes {
		m.panes = append(m.panes, pane{at: f.at})
	}
	p := &m.panes[len(m.panes)-1]
	p.total += r.Total
	for i := range r.Spans {
		p.critical[r.Spans[i].Stage] += r.Spans[i].Critical
	}
}

// after counts the time from ready to the first token, of all kinds of starts
// together.
func (f *figures) after(a *coldstart.After) {
	m, _ := f.of(keyOf(&a.Pod))
	d := f.durations(m, kind{})
	f.count(&d.stages[a.Span.Stage], exemplarOf(a.ID, a.Span.End), a.Span.End.Sub(a.Span.Start).Seconds())
}

func (f *figures) durations(m *model, k kind) *durations {
	d := m.kinds[k]
	if d == nil {
		d = &durations{since: f.turned}
		m.kinds[k] = d
	}
	return d
}

// exemplarOf leads to the root of a start's trace.
func exemplarOf(uid string, at window.Instant) emit.Exemplar {
	return emit.Exemplar{At: at, Trace: traceID(uid), Span: rootID(uid)}
}

func (f *figures) count(h **histogram, e emit.Exemplar, seconds float64) {
	if *h == nil {
		*h = f.config.Duration.newHistogram()
	}
	e.Value = seconds
	(*h).observe(e)
}

// progress takes which replicas start now.
func (f *figures) progress(all []coldstart.Progress) {
	for i := range all {
		p := &all[i]
		m, _ := f.of(modelKey{namespace: p.Namespace, model: p.Model, gpu: p.GPUModel})
		m.starting[p.Stage] += p.Replicas
		m.shown[p.Stage] = true
	}
}

// stageLengths is how long a start was at each stage that it had: where spans of one
// stage run beside each other, the time counts once. What is not known of one pod is
// not unattributed as long as another pod's stage accounts for the time.
func stageLengths(r *coldstart.Report) map[coldstart.Stage]time.Duration {
	spans := make([]*coldstart.Span, 0, len(r.Spans))
	for i := range r.Spans {
		if stage := r.Spans[i].Stage; !stage.Holds() && stage != coldstart.Unattributed {
			spans = append(spans, &r.Spans[i])
		}
	}
	slices.SortFunc(spans, func(a, b *coldstart.Span) int {
		return cmp.Or(cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Start, b.Start))
	})
	lengths := make(map[coldstart.Stage]time.Duration)
	var covered window.Instant // of the stage
	for i, s := range spans {
		if i == 0 || spans[i-1].Stage != s.Stage {
			covered = s.Start
		}
		lengths[s.Stage] += max(0, s.End.Sub(max(covered, s.Start)))
		covered = max(covered, s.End)
	}
	return lengths
}
