// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// ward is a fleet of ten with a flagged replica, number 0, whose cause is asked
// for. Its replicas are alike but for what a case says.
type ward struct {
	alarm *Alarm
	frame *fleet.Frame
	of    *fleetAlarm
}

var wardSignals = []fleet.Signal{fleet.TTFT, fleet.ITL, fleet.PromptLength, fleet.PrefixHits, fleet.PrefixQueries, fleet.Errors, fleet.Finished}

var (
	itlBounds    = []float64{0.01, 0.025, 0.05, 0.075, 0.1}
	promptBounds = []float64{100, 200, 500, 1000, 2000, 5000}
)

// observed is n observations of one value.
func observed(bounds []float64, n uint64, value float64) fleet.Distribution {
	counts := make([]uint64, len(bounds)+1)
	i, _ := slices.BinarySearch(bounds, value)
	counts[i] = n
	d := distribution(bounds, counts...)
	d.Sum = float64(n) * value
	return d
}

// counted is a counter.
func counted(n uint64) fleet.Distribution { return distribution(nil, n) }

func newWard(strain func(window.Instant, *fleet.Identity) fleet.Strain) *ward {
	o := careful()
	o.Strain = strain
	w := &ward{alarm: NewAlarm(o), frame: &fleet.Frame{
		End: window.Instant(100 * time.Hour), Fleet: &fleet.Fleet{Keys: []fleet.Label{{Name: "model_name", Value: "m"}}},
		Signals: wardSignals, Pane: time.Minute,
	}}
	for i := range 10 {
		m := fleet.MemberFrame{
			Identity: &fleet.Identity{Replica: fmt.Sprint(i), Engine: "vllm"},
			Started:  1, // long ago
			Told: []fleet.Distribution{
				observed(ttftBounds, 300, 0.3), observed(itlBounds, 9000, 0.02), observed(promptBounds, 300, 400),
				counted(60_000), counted(120_000), counted(0), counted(300),
			},
		}
		m.Load[fleet.LoadOf(fleet.Waiting)] = fleet.Load{Mean: 0.5, MeanKnown: true}
		m.Load[fleet.LoadOf(fleet.Running)] = fleet.Load{Mean: 8, MeanKnown: true}
		w.frame.Members = append(w.frame.Members, m)
	}
	w.slow(0)
	return w
}

// slow makes a replica twice as slow to the first token.
func (w *ward) slow(i int) {
	w.frame.Members[i].Told[0] = observed(ttftBounds, 300, 0.6)
}

// cause asks after so many panes why replica 0 is flagged, by a latency or by
// its errors.
func (w *ward) cause(signal int) Cause {
	for i := range w.frame.Members {
		w.frame.Members[i].Recent = w.frame.Members[i].Told
	}
	w.alarm.Judge(w.frame)
	w.of = w.alarm.fleets[w.frame.Fleet.Key()]
	flagged := w.of.members["0"]
	flagged.Born = 0
	flagged.streams[signal].Raised = w.frame.End
	for range 3 {
		w.frame.End += minute
		w.alarm.Judge(w.frame)
	}
	return flagged.cause()
}

const ofTTFT, ofErrors = 0, 1

func TestCauses(t *testing.T) {
	revision := func(v string) []fleet.Label { return []fleet.Label{{Name: "model_revision", Value: v}} }
	gpus := func(own, others fleet.Strain) func(window.Instant, *fleet.Identity) fleet.Strain {
		return func(_ window.Instant, id *fleet.Identity) fleet.Strain {
			if id.Replica == "0" {
				return own
			}
			return others
		}
	}
	well := fleet.Strain{Known: true, ThrottleKnown: true, Throttled: 0.04, Clock: 1.98e9, ClockKnown: true, PCIeReplays: 20}
	strained := func(edit func(*fleet.Strain)) *ward {
		s := well
		edit(&s)
		return newWard(gpus(s, well))
	}
	cases := map[string]struct {
		ward   *ward
		edit   func(w *ward, m *fleet.MemberFrame)
		signal int
		want   Cause
	}{
		"nothing explains it": {want: Unknown},
		"its requests fail":   {want: Errors, signal: ofErrors},
		"two of a revision are slow, and no other": {want: Variant, edit: func(w *ward, _ *fleet.MemberFrame) {
			for i := range w.frame.Members {
				w.frame.Members[i].Identity.Variant = revision("old")
			}
			w.frame.Members[0].Identity.Variant, w.frame.Members[4].Identity.Variant = revision("new"), revision("new")
			w.slow(4)
		}},
		"its revision has replicas that are well": {want: Unknown, edit: func(w *ward, _ *fleet.MemberFrame) {
			for i := range w.frame.Members {
				w.frame.Members[i].Identity.Variant = revision("old")
			}
			w.frame.Members[0].Identity.Variant, w.frame.Members[4].Identity.Variant = revision("new"), revision("new")
		}},
		"all have one revision": {want: Unknown, edit: func(w *ward, _ *fleet.MemberFrame) {
			for i := range w.frame.Members {
				w.frame.Members[i].Identity.Variant = revision("old")
			}
		}},
		"its GPUs are throttled":      {want: Hardware, ward: strained(func(s *fleet.Strain) { s.Throttled = 0.5 })},
		"all GPUs are throttled":      {want: Unknown, ward: newWard(gpus(fleet.Strain{Known: true, ThrottleKnown: true, Throttled: 0.5}, fleet.Strain{Known: true, ThrottleKnown: true, Throttled: 0.4}))},
		"its clock is slow":           {want: Hardware, ward: strained(func(s *fleet.Strain) { s.Clock = 1.2e9 })},
		"its GPU fell off the bus":    {want: Hardware, ward: strained(func(s *fleet.Strain) { s.XID, s.XIDChanged, s.XIDHardware = 79, true, true })},
		"a process on its GPU failed": {want: Unknown, ward: strained(func(s *fleet.Strain) { s.XID, s.XIDChanged = 31, true })},
		"its links fail":              {want: Hardware, ward: strained(func(s *fleet.Strain) { s.NVLinkErrors = 3 })},
		"its bus repeats itself":      {want: Hardware, ward: strained(func(s *fleet.Strain) { s.PCIeReplays = 5000 })},
		"its memory is worn":          {want: Hardware, ward: strained(func(s *fleet.Strain) { s.RemappedRows = 1 })},
		"its prompts are longer":      {want: Routing, edit: func(_ *ward, m *fleet.MemberFrame) { m.Told[2] = observed(promptBounds, 300, 1500) }},
		"one of its few prompts is longer": {want: Unknown, edit: func(_ *ward, m *fleet.MemberFrame) {
			m.Told[2] = observed(promptBounds, 3, 400)
			m.Told[2].Counts[4]++
			m.Told[2].Sum += 1500
		}},
		"its process is young and its cache cold": {want: ColdCache, edit: func(w *ward, m *fleet.MemberFrame) {
			m.Told[3] = counted(12_000)
			m.Started = time.Duration(w.frame.End).Seconds() - 600
		}},
		"its cache is cold, and should not be": {want: Routing, edit: func(_ *ward, m *fleet.MemberFrame) { m.Told[3] = counted(12_000) }},
		"it decodes slowly at equal work":      {want: Hardware, edit: func(_ *ward, m *fleet.MemberFrame) { m.Told[1] = observed(itlBounds, 9000, 0.03) }},
		"more requests wait":                   {want: Load, edit: func(_ *ward, m *fleet.MemberFrame) { m.Load[fleet.LoadOf(fleet.Waiting)].Mean = 6 }},
		"more requests run, and explain its pace": {want: Load, edit: func(w *ward, m *fleet.MemberFrame) {
			for i := range w.frame.Members { // 10 ms, and 1 ms more a request
				running := float64(6 + i%4)
				w.frame.Members[i].Load[fleet.LoadOf(fleet.Running)].Mean = running
				w.frame.Members[i].Told[1] = observed(itlBounds, 9000, 0.01+0.001*running)
			}
			m.Load[fleet.LoadOf(fleet.Running)].Mean = 20
			m.Told[1] = observed(itlBounds, 9000, 0.03)
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := c.ward
			if w == nil {
				w = newWard(nil)
			}
			if c.edit != nil {
				c.edit(w, &w.frame.Members[0])
			}
			assert.Equal(t, c.want.String(), w.cause(c.signal).String())
		})
	}
}

func TestPlacementIsWhatOthersOfTheNodeShare(t *testing.T) {
	v := newVillage(t, careful(), 20)
	v.quiet(120)
	v.replicas[3].node, v.replicas[4].node, v.replicas[5].node = "n1", "n1", "n2"
	v.replicas[3].slower, v.replicas[4].slower = 2, 2
	for range 15 {
		v.live()
	}
	assert.Equal(t, Placement, v.verdicts.Replicas[3].Cause)
	assert.Equal(t, Placement, v.verdicts.Replicas[4].Cause)
	assert.Equal(t, map[Node]bool{{Name: "n1"}: false}, maps.Collect(v.alarm.Nodes()), "both serve one model")

	other := newVillage(t, careful(), 20) // another model's fleet, under the same alarm
	other.alarm, other.pane = v.alarm, v.pane
	other.fleet = &fleet.Fleet{Keys: []fleet.Label{{Name: "model_name", Value: "other"}}}
	for _, r := range []string{"3"} {
		other.replicas[3].name, other.replicas[3].node = "other-"+r, "n1"
	}
	both := func() {
		v.alarm.Begin()
		v.verdicts = v.alarm.Judge(v.frame())
		other.verdicts = v.alarm.Judge(other.frame())
	}
	for range 70 {
		both()
	}
	assert.Equal(t, map[Node]bool{{Name: "n1"}: false}, maps.Collect(v.alarm.Nodes()))
	other.replicas[3].slower = 2
	for range 15 {
		both()
	}
	assert.Equal(t, map[Node]bool{{Name: "n1"}: true}, maps.Collect(v.alarm.Nodes()), "two models are slow on it")
	v.replicas[3].slower, v.replicas[4].slower, other.replicas[3].slower = 1, 1, 1
	for range 30 {
		both()
	}
	assert.Empty(t, maps.Collect(v.alarm.Nodes()), "told once more as well, then no more")
}

func TestNodesOfTwoClustersAreTwo(t *testing.T) {
	at := func(cluster string) *fleet.Identity {
		return &fleet.Identity{Replica: cluster, Node: "gpu-0", Keys: []fleet.Label{{Name: "cluster", Value: cluster}}}
	}
	n := nodes{current: map[Node][]suspect{}}
	n.add(&fleet.Fleet{}, at("a"))
	n.add(&fleet.Fleet{Keys: []fleet.Label{{Name: "model_name", Value: "other"}}}, at("b"))
	n.turn()
	assert.Zero(t, n.others(at("a")))
	assert.Len(t, n.former, 2)
}

func TestFleetOnOneNodeIsNotMisplaced(t *testing.T) {
	v := newVillage(t, careful(), 10)
	for i := range v.replicas {
		v.replicas[i].node = "n1"
	}
	v.quiet(120)
	v.replicas[3].slower, v.replicas[4].slower = 2, 2
	for range 15 {
		v.live()
	}
	assert.Equal(t, Unknown, v.verdicts.Replicas[3].Cause)
}

func TestCausesHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for c := range CauseCount {
		assert.NotEmpty(t, c.String())
		assert.False(t, seen[c.String()], "%s stands twice", c)
		seen[c.String()] = true
	}
	assert.Equal(t, "unknown", CauseCount.String())
}
