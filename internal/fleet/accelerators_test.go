// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/window"
)

func newAccelerators(maxReplicas int) *Accelerators {
	a := NewAccelerators(AcceleratorOptions{
		Grid: window.NewGrid(interval, length, lateness), Lateness: lateness, MaxReplicas: maxReplicas,
	})
	a.Open(noon + 1)
	return a
}

// podNamed is a pod of the namespace llm, and the identity of its replica.
func podNamed(name string) (*Place, *Identity) {
	return &Place{Where: Where{Namespace: "llm", Pod: name}},
		&Identity{Replica: "uid of " + name, Where: []Label{{"namespace", "llm"}, {"pod", name}}}
}

// hold gives a pod the accelerator with that id.
func (a *Accelerators) hold(t *testing.T, id ID, at *Place) *Accelerator {
	t.Helper()
	x, err := a.Hold(id, at)
	require.NoError(t, err)
	return x
}

// pass lets the panes that end before a time be judged, so that points of that
// time are taken.
func (a *Accelerators) pass(until window.Instant) {
	g := a.options.Grid
	a.Sweep(g.End(g.Pane(until) - 1))
}

// told is one sample, so many seconds after noon.
type told struct {
	seconds int
	value   float64
}

// count folds the samples of one counter in.
func (x *Accelerator) count(t *testing.T, signal Signal, name ID, samples ...told) {
	t.Helper()
	for _, s := range samples {
		x.store.pass(after(s.seconds))
		outcome, err := x.ObserveCounter(signal, name, s.value, window.Sample{At: after(s.seconds)})
		require.NoError(t, err)
		assert.True(t, outcome.Used(), outcome)
	}
}

// level folds the samples of one gauge in.
func (x *Accelerator) level(t *testing.T, signal Signal, samples ...told) {
	t.Helper()
	for _, s := range samples {
		x.store.pass(after(s.seconds))
		assert.Equal(t, window.Accepted, x.ObserveGauge(signal, after(s.seconds), s.value))
	}
}

// TestXID: the code stays until the next error, so that only a change tells.
func TestXID(t *testing.T) {
	for name, tt := range map[string]struct {
		codes    []told
		end      int
		code     int
		hardware bool
	}{
		"first sight is no change":                {[]told{{10, 79}, {40, 79}}, 60, 0, false},
		"an error of the hardware":                {[]told{{10, 0}, {40, 79}}, 60, 79, true},
		"one of the application":                  {[]told{{10, 0}, {40, 31}}, 60, 31, false},
		"one that nobody knows":                   {[]told{{10, 0}, {40, 9999}}, 60, 9999, false},
		"no error any more":                       {[]told{{10, 79}, {40, 0}}, 60, 0, false},
		"the same again after a restart":          {[]told{{10, 79}, {200, 79}}, 210, 0, false},
		"the same again after none":               {[]told{{10, 79}, {40, 0}, {70, 79}}, 90, 79, true},
		"an error that is over":                   {[]told{{10, 0}, {40, 31}, {70, 0}}, 90, 31, false},
		"the clean-up hides nothing":              {[]told{{10, 0}, {40, 79}, {70, 45}}, 90, 79, true},
		"hardware comes first":                    {[]told{{10, 0}, {40, 43}, {70, 95}}, 90, 95, true},
		"of two the newer":                        {[]told{{10, 0}, {40, 13}, {70, 31}}, 90, 31, false},
		"not what comes after the window's end":   {[]told{{10, 0}, {40, 79}}, 30, 0, false},
		"in the window's first instant":           {[]told{{10, 0}, {31, 79}, {300, 79}}, 330, 79, true},
		"not what was at the end of the last one": {[]told{{10, 0}, {30, 79}, {300, 79}}, 330, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccelerators(10)
			place, identity := podNamed("a")
			a.hold(t, 1, place).level(t, XIDCode, tt.codes...)
			s := a.Read(after(tt.end), identity)
			assert.Equal(t, Strain{Known: true, XID: tt.code, XIDChanged: tt.code != 0, XIDHardware: tt.hardware, xidAt: s.xidAt}, s)
		})
	}
}

// TestXIDOfSeveral: of a replica's accelerators the broken one's, whatever
// happened later to the others.
func TestXIDOfSeveral(t *testing.T) {
	place, identity := podNamed("a")
	for _, codes := range [][2]float64{{79, 31}, {31, 79}} {
		a := newAccelerators(10)
		a.hold(t, 1, place).level(t, XIDCode, told{10, 0}, told{40, codes[0]})
		a.hold(t, 2, place).level(t, XIDCode, told{20, 0}, told{50, codes[1]})
		s := a.Read(after(60), identity)
		assert.Equal(t, 79, s.XID)
		assert.True(t, s.XIDHardware)
	}
}

// TestThrottled: two reasons add up, the accelerator that was held back most
// counts, and the share is one of the time in which it was watched.
func TestThrottled(t *testing.T) {
	a := newAccelerators(10)
	place, identity := podNamed("a")
	x := a.hold(t, 1, place)
	x.count(t, ThrottleTime, 1, told{60, 100}, told{90, 106.25}, told{120, 112.5})
	x.count(t, ThrottleTime, 2, told{60, 7}, told{90, 8}, told{120, 9.5})
	a.hold(t, 2, place).count(t, ThrottleTime, 1, told{60, 50}, told{120, 50})

	s := a.Read(after(120), identity)
	assert.True(t, s.ThrottleKnown)
	assert.InDelta(t, (12.5+2.5)/60, s.Throttled, 1e-9)

	x.count(t, ThrottleTime, 1, told{390, 119})
	s = a.Read(after(390), identity)
	assert.InDelta(t, (119-106.25+9.5-8)/300, s.Throttled, 1e-9, "the whole window was watched: the panes of (90, 390]")
}

// TestThrottledUnknown: missing is not zero.
func TestThrottledUnknown(t *testing.T) {
	a := newAccelerators(10)
	place, identity := podNamed("a")
	assert.Equal(t, Strain{}, a.Read(after(60), identity), "nobody tells of it")

	x := a.hold(t, 1, place)
	assert.Equal(t, Strain{}, a.Read(after(60), identity), "nothing is told yet")
	x.count(t, ThrottleTime, 1, told{10, 100})
	assert.Equal(t, Strain{Known: true}, a.Read(after(60), identity), "a first sample is no increase")
	x.count(t, ThrottleTime, 1, told{70, 100})
	assert.Equal(t, Strain{Known: true, ThrottleKnown: true}, a.Read(after(90), identity), "it was not throttled")
}

// TestErrorsAreCounted over all names and accelerators, and a restart is no
// increase.
func TestErrorsAreCounted(t *testing.T) {
	a := newAccelerators(10)
	place, identity := podNamed("a")
	for id := range ID(2) {
		x := a.hold(t, id, place)
		x.count(t, NVLinkErrors, 1, told{10, 1000}, told{40, 1003})
		x.count(t, NVLinkErrors, 2, told{10, 0}, told{40, 4})
		x.count(t, PCIeReplays, 3, told{10, 70}, told{40, 70}, told{70, 1}) // the driver was loaded anew
		x.count(t, RemappedRows, 4, told{10, 5}, told{40, 6})
	}
	assert.Equal(t, Strain{Known: true, NVLinkErrors: 14, PCIeReplays: 2, RemappedRows: 2}, a.Read(after(90), identity))
}

// TestClock is the slowest accelerator's, in its mean over time; of one that is
// not told any more, as long as it was.
func TestClock(t *testing.T) {
	a := newAccelerators(10)
	place, identity := podNamed("a")
	a.hold(t, 1, place).level(t, SMClock, told{10, 1980e6}, told{40, 1980e6}, told{70, 1980e6})
	x := a.hold(t, 2, place)
	x.level(t, SMClock, told{10, 1980e6}, told{40, 1200e6})
	assert.InDelta(t, (1980e6*30+1200e6*50)/80, a.Read(after(90), identity).Clock, 1)

	x.Suspend(SMClock, after(70))
	assert.InDelta(t, (1980e6*30+1200e6*30)/60, a.Read(after(90), identity).Clock, 1)

	late, identity := podNamed("b")
	a.hold(t, 3, late).level(t, SMClock, told{90, 345e6})
	s := a.Read(after(90), identity)
	assert.True(t, s.ClockKnown)
	assert.InDelta(t, 345e6, s.Clock, 1, "at the window's very end")
}

// TestHolders: how a replica's pod is found, and who of one name counts.
func TestHolders(t *testing.T) {
	a := newAccelerators(10)
	for id, place := range map[ID]*Place{
		1: {Where: Where{Namespace: "llm", Pod: "plain"}},
		2: {Where: Where{Cluster: "east", Namespace: "llm", Pod: "plain"}},
		3: {Where: Where{Namespace: "llm", Pod: "known"}, UID: "u-3"},
	} {
		a.hold(t, id, place).count(t, PCIeReplays, 1, told{1, 0}, told{20, float64(id)})
	}
	// A pod of a StatefulSet comes back under its name.
	a.hold(t, 4, &Place{Where: Where{Namespace: "llm", Pod: "known"}, UID: "u-4"}).count(t, PCIeReplays, 1, told{1, 0}, told{20, 4})

	plain := []Label{{"namespace", "llm"}, {"pod", "plain"}}
	for name, tt := range map[string]struct {
		identity Identity
		want     uint64
	}{
		"by where it runs":                     {Identity{Replica: "u", Where: plain}, 1},
		"by keys of its fleet":                 {Identity{Replica: "u", Keys: plain[:1], Where: plain[1:]}, 1},
		"by its replica's name":                {Identity{Replica: "llm/plain"}, 1},
		"in its cluster":                       {Identity{Keys: []Label{{"cluster", "east"}}, Where: plain}, 2},
		"in a cluster that the exporter omits": {Identity{Keys: []Label{{"cluster", "west"}}, Where: plain}, 1},
		"by its uid":                           {Identity{Replica: "u-3"}, 3},
		"by a uid before the name":             {Identity{Replica: "u-3", Where: []Label{{"namespace", "llm"}, {"pod", "known"}}}, 3},
		"by a name that was given anew":        {Identity{Replica: "10.0.0.1:8000", Where: []Label{{"namespace", "llm"}, {"pod", "known"}}}, 4},
		"not in another namespace":             {Identity{Where: []Label{{"namespace", "other"}, {"pod", "plain"}}}, 0},
		"not without a pod":                    {Identity{Replica: "10.0.0.1:8000"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := a.Read(after(30), &tt.identity)
			assert.Equal(t, tt.want > 0, s.Known)
			assert.Equal(t, tt.want, s.PCIeReplays)
		})
	}
}

// TestAcceleratorsAreBounded: of all pods, of one, and what one of them counts.
func TestAcceleratorsAreBounded(t *testing.T) {
	a := newAccelerators(2)
	for id := range ID(2 * acceleratorsPerReplica) {
		a.hold(t, id, &Place{Where: Where{Pod: string(rune('a' + id))}})
	}
	_, err := a.Hold(99, &Place{Where: Where{Pod: "other"}})
	require.ErrorIs(t, err, ErrLimit)
	assert.Len(t, a.byName, 2*acceleratorsPerReplica)
	assert.NotNil(t, a.hold(t, 0, &Place{}), "it is known")

	a = newAccelerators(1000)
	place, _ := podNamed("greedy")
	for id := range ID(acceleratorsPerPod) {
		a.hold(t, id, place)
	}
	_, err = a.Hold(acceleratorsPerPod, place)
	require.ErrorIs(t, err, ErrLimit)

	x := a.Accelerator(0)
	for name := range ID(countersPerAccelerator) {
		x.count(t, PCIeReplays, name, told{1, 0})
	}
	_, err = x.ObserveCounter(PCIeReplays, countersPerAccelerator, 0, window.Sample{At: after(1)})
	require.ErrorIs(t, err, ErrLimit)
}

// TestAcceleratorsAreForgotten once nothing of them can count, and leave room.
func TestAcceleratorsAreForgotten(t *testing.T) {
	a := newAccelerators(1)
	place := &Place{Where: Where{Namespace: "llm", Pod: "a"}, UID: "u"}
	identity := &Identity{Replica: "u"}
	for id := range ID(acceleratorsPerReplica) {
		a.hold(t, id, place).count(t, PCIeReplays, 1, told{10, 0}, told{20, 1})
	}
	a.Sweep(after(20).Add(length))
	assert.Len(t, a.known, acceleratorsPerReplica)
	a.Sweep(after(20).Add(length + time.Nanosecond))
	assert.Empty(t, a.known)
	assert.Empty(t, a.byName)
	assert.Empty(t, a.byUID)
	assert.Equal(t, Strain{}, a.Read(after(30), identity))
	a.hold(t, 77, place)
}

// TestSamplesOutOfTime are held against the evaluation, as everywhere.
func TestSamplesOutOfTime(t *testing.T) {
	place, identity := podNamed("a")
	closed := NewAccelerators(AcceleratorOptions{Grid: window.NewGrid(interval, length, lateness), MaxReplicas: 1})
	assert.Equal(t, window.Future, closed.hold(t, 1, place).ObserveGauge(XIDCode, after(1), 0), "it was not opened")

	a := newAccelerators(10)
	x := a.hold(t, 1, place)
	assert.Equal(t, window.Future, x.ObserveGauge(SMClock, after(30).Add(2*lateness+1), 1e9))
	a.Sweep(after(300))
	assert.Equal(t, window.Late, x.ObserveGauge(XIDCode, after(30), 79))
	outcome, err := x.ObserveCounter(PCIeReplays, 1, 7, window.Sample{At: after(30)})
	require.NoError(t, err)
	assert.Equal(t, window.Late, outcome)
	assert.Equal(t, Strain{}, a.Read(after(330), identity))

	x.level(t, XIDCode, told{310, 0})
	assert.Equal(t, Strain{}, a.Read(after(300), identity), "what begins after a window is not in it")
	assert.Equal(t, window.Duplicate, x.ObserveGauge(XIDCode, after(310), 79))
	assert.Equal(t, window.OutOfOrder, x.ObserveGauge(XIDCode, after(309), 79))
}
