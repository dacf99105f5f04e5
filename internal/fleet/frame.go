// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/llmfleet/llmfleet/internal/window"
)

// Ask is what the frames of one evaluation tell.
type Ask struct {
	// Signals are told over the window, in this order.
	Signals []Signal
	// Recent is how many of them, from the first, are told over the alarm's
	// pane as well.
	Recent int
	// Reasons: replicas tell for which reasons requests ended, if Finished is among
	// the signals.
	Reasons bool
	// Pane is the length of the alarm's pane that ends at end, of a fleet whose
	// replicas report at this interval; zero if none ends then. Nil: none ever.
	Pane func(end window.Instant, interval time.Duration) time.Duration
}

// Frame is one fleet over one closed window: what a judgement reads.
type Frame struct {
	End   window.Instant
	Fleet *Fleet
	// Signals are those that members tell, in their order.
	Signals []Signal
	// Pane is the length of the alarm's pane that ends now; zero if none does.
	Pane time.Duration
	// Members are the replicas that are there.
	Members []MemberFrame
	// Departed are those that are not any more, but whose panes are still in
	// the window: they count in what the fleet did.
	Departed []MemberFrame
	// Copies is how many second scrapes of one process were left out.
	Copies  int
	gone    int // members that are not there any more
	recent  int // signals that are told over the alarm's pane
	reasons int // where Finished is told, if its reasons are asked for; otherwise -1
	levels  int // signals, if gauges that are no Load are among them
	layouts *window.Layouts
	names   *reasons
	*memory
}

// memory is handed out to the frames of one evaluation piece by piece.
type memory struct {
	counts        []uint64
	taken         int // counts in all
	distributions []Distribution
}

// zeros are n counts.
func (m *memory) zeros(n int) []uint64 {
	m.taken += n
	return take(&m.counts, n)
}

// MemberFrame is one replica over one closed window.
type MemberFrame struct {
	Identity *Identity
	// Warming: not yet there for a full window.
	Warming bool
	// Unreachable: its scrape failed, or its series were ended.
	Unreachable bool
	// Silent: reached, but its page has shown no signal for two panes and more.
	Silent bool
	// Realtime: its tokens are counted as they are made, not at a request's end.
	Realtime bool
	// Started is when its newest process began, in seconds since the Unix epoch;
	// zero if that is not told.
	Started float64
	// Told has one distribution for each signal asked for, in their order; a
	// counter's has one bucket, which is its increase.
	Told []Distribution
	// Recent is the first of them over the alarm's pane; empty if none ends now.
	Recent []Distribution
	// Reasons are for which reasons requests ended in the window, in the order of
	// their names; together they are what it told of Finished. One that is told and
	// that ended none has a count of zero. Nil if that was not asked for, or not told.
	Reasons []ReasonCount
	// Load is indexed by LoadOf.
	Load [loads]Load
	// Levels has one for each signal asked for, in their order: of gauges that are
	// no Load, summed over ranks. Nil if no such gauge was asked for.
	Levels []Load
}

// Index is where members tell the signal; -1 if it was not asked for.
func (f *Frame) Index(s Signal) int { return slices.Index(f.Signals, s) }

// Common is the layout on which counts of both may be added.
func (f *Frame) Common(a, b *window.Layout) *window.Layout { return f.layouts.Common(a, b) }

// Close judges the panes that end at end: it calls judge with the frame of each
// fleet in turn, in the order of their keys, then forgets what can no longer
// count. It is called by one evaluation at a time. All frames are read first:
// however long judge takes, points of the next panes are taken meanwhile.
func (r *Registry) Close(end window.Instant, ask Ask, judge func(*Frame)) {
	r.mu.Lock()
	r.end = end
	r.mu.Unlock()
	rolls := r.snapshot()
	frames := make([]Frame, len(rolls))
	pieces := memory{
		counts:        make([]uint64, 0, r.countsTaken),
		distributions: make([]Distribution, 0, (len(ask.Signals)+ask.Recent)*members(rolls)),
	}
	departed := 0
	for i, roll := range rolls {
		frame := &frames[i]
		frame.End, frame.layouts, frame.names, frame.memory = end, &r.layouts, &r.reasons, &pieces
		frame.read(roll, &ask)
		departed += frame.gone
	}
	r.mu.Lock()
	r.departed = departed
	r.mu.Unlock()
	r.countsTaken = pieces.taken
	for i := range frames {
		judge(&frames[i])
	}
	r.forget(end)
}

// roll is one fleet's members as they are at the beginning of an evaluation.
type roll struct {
	fleet   *Fleet
	members []attendee
}

type attendee struct {
	*Member
	sources []*Source
}

func members(rolls []roll) (n int) {
	for _, r := range rolls {
		n += len(r.members)
	}
	return n
}

func (r *Registry) snapshot() []roll {
	r.mu.RLock()
	defer r.mu.RUnlock()
	rolls := make([]roll, 0, len(r.fleets))
	sources := make([]*Source, 0, r.members+r.members/8)
	for _, f := range r.fleets {
		members := make([]attendee, 0, len(f.members))
		for _, m := range f.members {
			from := len(sources)
			sources = append(sources, m.sources...)
			members = append(members, attendee{m, sources[from:len(sources):len(sources)]})
		}
		rolls = append(rolls, roll{f, members})
	}
	slices.SortFunc(rolls, func(a, b roll) int { return cmp.Compare(a.fleet.key, b.fleet.key) })
	for _, r := range rolls {
		slices.SortFunc(r.members, func(a, b attendee) int {
			return cmp.Compare(a.replica, b.replica)
		})
	}
	return rolls
}

// read fills the frame with one fleet.
func (f *Frame) read(r roll, ask *Ask) {
	f.Fleet, f.Signals, f.Copies, f.gone = r.fleet, ask.Signals, 0, 0
	if slices.ContainsFunc(ask.Signals, isLevel) {
		f.levels = len(ask.Signals)
	}
	f.reasons = -1
	if ask.Reasons {
		f.reasons = f.Index(Finished)
	}
	if ask.Pane != nil {
		f.Pane = min(ask.Pane(f.End, r.fleet.interval), r.fleet.grid.Length())
	}
	if f.Pane > 0 {
		f.recent = ask.Recent
	}
	f.Members = make([]MemberFrame, 0, len(r.members))
	intervals := make([]time.Duration, 0, len(r.members))
	for _, m := range r.members {
		f.distinguish(m.sources)
		if interval := f.readMember(m); interval > 0 {
			intervals = append(intervals, interval)
		}
	}
	if len(intervals) > 0 {
		slices.Sort(intervals)
		r.fleet.interval = intervals[len(intervals)/2]
	}
}

// distinguish finds out which sources of one replica are copies of another.
func (f *Frame) distinguish(sources []*Source) {
	if len(sources) == 1 {
		return
	}
	testimonies := make([]testimony, len(sources))
	for i, s := range sources {
		s.target.Lock()
		testimonies[i] = s.testify(f.End)
		s.target.Unlock()
	}
	settle(testimonies)
}

// readMember adds one replica to the frame, and returns how often it reports.
func (f *Frame) readMember(m attendee) (interval time.Duration) {
	view := MemberFrame{
		Identity:    m.Identity(),
		Unreachable: true,
		Told:        take(&f.distributions, len(f.Signals)),
		Recent:      take(&f.distributions, f.recent),
	}
	var (
		sums  = gathered{loadSums: loadSums{levels: make([]loadSum, f.levels)}}
		heard attendance
		told  window.Instant
	)
	for _, s := range m.sources {
		s.target.Lock()
		if s.twin.of != nil {
			f.Copies++
			s.target.due = true
		} else {
			if heard.add(s, f.End) {
				view.Unreachable = view.Unreachable && !s.reachable
				interval = max(interval, s.presence.Interval())
			}
			told = max(told, s.told)
			view.Started = max(view.Started, s.target.process)
			view.Realtime = view.Realtime || s.realtime
			f.readSource(s, &view, &sums)
		}
		s.open(f.End) // what came before is read: from now on there is room for what comes next
		s.target.Unlock()
	}
	sums.tell(&view)
	if f.reasons >= 0 {
		view.Reasons = sums.reasons.tell(f.names)
	}
	since := m.attend(heard)
	if since == 0 {
		f.gone++
	}
	if since == 0 || since > f.End { // gone, or there only after the window's end
		if view.counts() {
			f.Departed = append(f.Departed, view)
		}
		return 0
	}
	view.Silent = !view.Unreachable && heard.last.Sub(told) >= silentPanes*max(f.Fleet.grid.Interval(), interval)
	view.Warming = since > f.End.Add(-f.Fleet.grid.Length())
	f.Members = append(f.Members, view)
	return interval
}

// silentPanes is after how many panes, and reports, a page without signals is
// that of an engine that has stopped.
const silentPanes = 2

// counts tells whether the replica observed anything in the window.
func (m *MemberFrame) counts() bool {
	return slices.ContainsFunc(m.Told, func(d Distribution) bool { return !empty(d.Counts) })
}

// gathered is what the sources of a replica tell together.
type gathered struct {
	loadSums
	reasons reasonSums
}

// readSource adds what one source told to its replica's view.
func (f *Frame) readSource(s *Source, view *MemberFrame, sums *gathered) {
	for _, series := range s.series {
		s.target.due = s.target.due || series.due(f.End)
		gauge := series.gauge()
		if gauge == nil {
			f.readHistogram(series, view, sums)
			continue
		}
		if sum := sums.of(f, series.signal); sum != nil {
			grid := f.Fleet.grid
			if l := gauge.Read(grid, grid.Pane(f.End), s.gone()); f.End.Sub(l.LastAt) < s.gone() {
				sum.add(l)
			}
		}
	}
}

// readHistogram adds what one histogram or counter told, if that is asked for.
func (f *Frame) readHistogram(series *Series, view *MemberFrame, sums *gathered) {
	i := f.Index(series.signal)
	if i < 0 {
		return
	}
	f.readBuckets(i, &series.histogram, series.reason, view, sums)
	for p := series.former(); p != nil; p = p.next {
		f.readBuckets(i, &p.histogram, series.reason, view, sums)
	}
}

// readBuckets adds what it told with the same buckets, to the i-th signal.
func (f *Frame) readBuckets(i int, h *window.Histogram, reason uint8, view *MemberFrame, sums *gathered) {
	grid := f.Fleet.grid
	k := grid.Pane(f.End)
	if h.Layout() == nil || h.At() <= f.End.Add(-grid.Length()) { // silent for the whole window
		return
	}
	f.add(&view.Told[i], h.Layout(), func(counts []uint64) window.Increase {
		increase := h.Read(grid, k, counts)
		if i == f.reasons && !increase.Unreliable {
			sums.reasons.add(reason, counts)
		}
		return increase
	})
	if total, ok := h.Total(); ok && total > 0 || !ok && !empty(view.Told[i].Counts) {
		view.Told[i].Ever = true
	}
	if i < f.recent {
		f.add(&view.Recent[i], h.Layout(), func(counts []uint64) window.Increase {
			h.ReadNewest(grid, k, int64(f.Pane/grid.Interval()), counts)
			return window.Increase{Unreliable: view.Told[i].Unreliable}
		})
	}
}

// add adds one series to a distribution, on the bounds that both have.
// A series that tells only count and sum adds nothing to one with buckets.
func (f *Frame) add(d *Distribution, layout *window.Layout, read func(counts []uint64) window.Increase) {
	counts := f.zeros(layout.Width())
	increase := read(counts)
	if increase.Unreliable {
		d.Unreliable = true
	}
	if d.Layout == nil || increase.Stalled < d.Stalled {
		d.Stalled = increase.Stalled
	}
	switch {
	case d.Layout == layout:
		for i, c := range counts {
			d.Counts[i] += c
		}
	case d.Layout == nil || empty(d.Counts) || !d.Layout.Bucketed():
		d.Layout, d.Counts, d.Sum, d.SumKnown = layout, counts, increase.Sum, increase.SumKnown
		return
	case empty(counts) || !layout.Bucketed():
		return
	default:
		common := f.Common(d.Layout, layout)
		merged := f.zeros(common.Width())
		common.Regroup(merged, d.Layout, d.Counts)
		common.Regroup(merged, layout, counts)
		d.Layout, d.Counts = common, merged
	}
	d.Sum += increase.Sum
	d.SumKnown = d.SumKnown && increase.SumKnown
}

func empty(counts []uint64) bool {
	return !slices.ContainsFunc(counts, func(c uint64) bool { return c != 0 })
}

// take cuts n zero elements from a slab. A slab that is used up is left to its
// takers, and replaced by a larger.
func take[T any](slab *[]T, n int) []T {
	from := len(*slab)
	if from+n > cap(*slab) {
		from, *slab = 0, make([]T, 0, max(2*cap(*slab), 1<<10, n))
	}
	*slab = (*slab)[:from+n]
	return (*slab)[from : from+n : from+n]
}
