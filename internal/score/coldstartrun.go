// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"cmp"
	"slices"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/judge/coldstart"
	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

const (
	// coldStartGrace lets in what is told a minute late.
	coldStartGrace = 2 * time.Minute
	coldStartTTL   = 2 * time.Hour
	coldStartTick  = 10 * time.Second
	// stageTolerance is by how much a stage may be off: as much as whole seconds hide.
	stageTolerance = time.Second
	// longer is by how much stages of the truth are longer that no report matches.
	longer = 3 * time.Second
)

// startOutcome is what became of the starts of a world.
type startOutcome struct {
	starts, pods, facts int
	once, again         int // starts that were told, and those told once more
	// negative are spans that end before they begin, reach out of their parent or do
	// not hold their critical time; negativeAsTold stages that end before they begin
	// where nothing is repaired.
	spans, negative, negativeAsTold int
	// sum is the largest difference of the critical times to the total.
	sum time.Duration
	// stages are those whose boundaries are known, right those that are as long as
	// they truly were; rightAsTold those that would be without repair, stretched those
	// that are as long as in a truth that is stretched. off counts the others by name.
	stages, right, rightAsTold, stretched int
	off                                   map[string]int
	// ready are the starts that were told to be, dominant those of them whose dominant
	// stage is right, guessed those for which unattributed would be.
	ready, dominant, guessed int
	totals                   []float64 // differences to the truth, in seconds
	leaked                   int       // pods that are still known in the end
}

func newStartOutcome() *startOutcome { return &startOutcome{off: map[string]int{}} }

// add adds the starts of another world.
func (o *startOutcome) add(other *startOutcome) {
	for sum, n := range map[*int]int{
		&o.starts: other.starts, &o.pods: other.pods, &o.facts: other.facts, &o.once: other.once, &o.again: other.again,
		&o.spans: other.spans, &o.negative: other.negative, &o.negativeAsTold: other.negativeAsTold,
		&o.stages: other.stages, &o.right: other.right, &o.rightAsTold: other.rightAsTold, &o.stretched: other.stretched,
		&o.ready: other.ready, &o.dominant: other.dominant, &o.guessed: other.guessed, &o.leaked: other.leaked,
	} {
		*sum += n
	}
	o.sum = max(o.sum, other.sum)
	o.totals = append(o.totals, other.totals...)
	for stage, n := range other.off {
		o.off[stage] += n
	}
}

// startRun plays one world through a book.
type startRun struct {
	*startOutcome

	book  *coldstart.Book
	truth map[string]*fleetsim.ColdStart // by id, of starts that were not told yet
	tick  window.Instant                 // the next
}

// playColdStarts plays a world of so many pods, and on until nothing of it should
// be remembered.
func playColdStarts(name string, pods int, seed uint64) (*startOutcome, error) {
	world := fleetsim.HardColdStarts(name, pods)
	r := &startRun{
		startOutcome: newStartOutcome(), truth: map[string]*fleetsim.ColdStart{}, tick: world.Begin,
		book: coldstart.New(coldstart.Options{MaxPods: 2 * pods, TTL: coldStartTTL, Grace: coldStartGrace, MaxAge: coldStartTTL}),
	}
	err := world.Play(seed,
		func(truth *fleetsim.ColdStart) {
			r.truth[truth.ID] = truth
			r.starts++
			r.pods += len(truth.Pods)
		},
		func(at window.Instant, f *lifecycle.Fact) {
			r.until(at)
			r.facts++
			r.book.Note(f, at)
		})
	r.until(r.tick.Add(2*coldStartTTL + coldStartGrace))
	open, remembered := r.book.Pods()
	r.leaked = open + remembered
	for _, truth := range r.truth { // what was never told is wrong
		r.stages += len(knownStages(truth))
		if truth.ReadyTold {
			r.ready++
		}
	}
	return r.startOutcome, err
}

// until closes the book at every tick that has come.
func (r *startRun) until(now window.Instant) {
	for ; r.tick <= now; r.tick = r.tick.Add(coldStartTick) {
		closed := r.book.Close(r.tick)
		for _, report := range closed.Starts {
			truth := r.truth[report.ID]
			if truth == nil {
				r.again++
				continue
			}
			delete(r.truth, report.ID)
			r.once++
			r.checkSpans(report)
			r.checkStages(report, truth)
			if truth.ReadyTold {
				r.checkDominant(report, truth)
			}
		}
	}
}

// checkSpans checks a report against itself.
func (o *startOutcome) checkSpans(report *coldstart.Report) {
	sum := time.Duration(0)
	for i := range report.Spans {
		s := &report.Spans[i]
		o.spans++
		sum += s.Critical
		if !sound(report, i) {
			o.negative++
		}
	}
	o.sum = max(o.sum, (sum - report.Total).Abs())
}

// sound tells whether a span ends after it begins, within its parent, and holds its
// critical time. The root has no parent, and is as long as the total.
func sound(report *coldstart.Report, i int) bool {
	s := &report.Spans[i]
	length := s.End.Sub(s.Start)
	if length < 0 || s.Critical < 0 || s.Critical > length {
		return false
	}
	if i == 0 {
		return s.Parent == -1 && length == report.Total
	}
	if s.Parent < 0 || s.Parent >= i {
		return false
	}
	parent := &report.Spans[s.Parent]
	return s.Start >= parent.Start && s.End <= parent.End
}

// checkStages compares the stages whose boundaries were told with the truth.
func (o *startOutcome) checkStages(report *coldstart.Report, truth *fleetsim.ColdStart) {
	said := map[stageKey]time.Duration{}
	for i := range report.Spans {
		s := &report.Spans[i]
		said[keyOf(s.Stage.String(), cmp.Or(s.Pod, report.ID), s.Container, s.Attempt)] += s.End.Sub(s.Start)
	}
	near := func(x, y time.Duration) bool { return (x - y).Abs() <= stageTolerance }
	for k, known := range knownStages(truth) {
		o.stages++
		length, ok := said[k]
		if (ok || known.pieces) && near(length, known.truly) {
			o.right++
		} else {
			o.off[k.stage]++
		}
		if ok && near(length, known.truly+longer) {
			o.stretched++
		}
		if near(known.asTold, known.truly) {
			o.rightAsTold++
		}
		if known.asTold < 0 {
			o.negativeAsTold++
		}
	}
}

// checkDominant compares the dominant stage with the truth. It is right to name
// the stage that was waited for most, and as right to name the one that was waited
// for most as far as it was told: a stage of which a boundary was not told is what
// it is a part of, the wait for a node scheduling, a download the loading of
// weights; otherwise it is unattributed, and the report has to name what is missing.
func (o *startOutcome) checkDominant(report *coldstart.Report, truth *fleetsim.ColdStart) {
	o.ready++
	o.totals = append(o.totals, (report.Total - truth.Ready.Sub(truth.Began)).Abs().Seconds())
	is := longest(criticalTimes(truth, truly))
	known := longest(criticalTimes(truth, asKnown))
	names := is == unattributed || slices.ContainsFunc(report.Spans, func(s coldstart.Span) bool {
		return s.Stage == coldstart.Unattributed && len(s.Missing) > 0
	})
	says := report.Dominant.String()
	if says == is || says == known && (known != unattributed || names) {
		o.dominant++
	}
	if is == unattributed || known == unattributed {
		o.guessed++
	}
}
