// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"hash/fnv"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/llmfleet/llmfleet/internal/window"
)

var askReasons = Ask{Signals: []Signal{TTFT, Finished}, Reasons: true}

// ending is a series that counts how many requests of a replica ended.
type ending struct {
	target   ID
	process  float64
	spelling Spelling
	gains    uint64 // from 3 s after noon to 18 s
}

// finish folds a total of ended requests in, under an id of the spelling's own.
func finish(tl *timeline, e ending, at window.Instant, total uint64) {
	s := tl.scrape(e.target, "a")
	s.process = e.process
	s.page(at, func(t *Target) error {
		hash := fnv.New64a()
		fmt.Fprint(hash, e.spelling)
		id := ID(hash.Sum64())
		series := t.Series(id)
		if series == nil {
			var err error
			if series, err = t.Join(id, &s.identity, Finished, e.spelling); err != nil {
				return err
			}
		}
		series.Touch(at)
		series.ObserveHistogram(nil, &window.Sample{At: at, Counts: []uint64{total}})
		return nil
	})
}

func TestReasons(t *testing.T) {
	of := func(reason string) Spelling { return Spelling{Reason: reason} }
	for name, tc := range map[string]struct {
		told []ending
		want []ReasonCount
	}{
		"in the order of their names": {
			[]ending{{1, 0, of("stop"), 5}, {1, 0, of("length"), 3}},
			[]ReasonCount{{"length", 3}, {"stop", 5}},
		},
		"one that is told and ended none": {
			[]ending{{1, 0, of("stop"), 5}, {1, 0, of("abort"), 0}},
			[]ReasonCount{{"abort", 0}, {"stop", 5}},
		},
		"an engine that tells none":  {[]ending{{1, 0, of(""), 7}}, []ReasonCount{{"", 7}}},
		"an engine that tells of no": {nil, nil},
		"ranks are added up": {
			[]ending{{1, 0, Spelling{Rank: 1, Reason: "stop"}, 5}, {1, 0, Spelling{Rank: 2, Reason: "stop"}, 4}},
			[]ReasonCount{{"stop", 9}},
		},
		"so are processes behind several targets": {
			[]ending{{1, 100, of("stop"), 5}, {2, 200, of("stop"), 4}, {2, 200, of("abort"), 1}},
			[]ReasonCount{{"abort", 1}, {"stop", 9}},
		},
		"a copy is left out": {
			[]ending{{1, 100, of("stop"), 5}, {2, 100, of("stop"), 5}},
			[]ReasonCount{{"stop", 5}},
		},
		"an older name is not counted again": {
			[]ending{{1, 0, Spelling{Alias: 1, Reason: "eos"}, 5}, {1, 0, Spelling{Alias: 0, Reason: "stop"}, 5}},
			[]ReasonCount{{"stop", 5}},
		},
		"nor is a rank that repeats another": {
			[]ending{{1, 0, Spelling{Group: 7, Choice: 1, Reason: "stop"}, 5}, {1, 0, Spelling{Group: 7, Choice: 2, Reason: "stop"}, 5}},
			[]ReasonCount{{"stop", 5}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tl := newTimeline()
			tl.scrape(1, "a").total(after(2), 0)
			for _, e := range tc.told {
				finish(tl, e, after(3), 1000)
			}
			for _, e := range tc.told {
				finish(tl, e, after(18), 1000+e.gains)
			}
			tl.registry.Close(after(30), askReasons, func(f *Frame) {
				assert.Equal(t, tc.want, f.Members[0].Reasons)
				var all uint64
				for _, r := range tc.want {
					all += r.Count
				}
				assert.Equal(t, all, f.Members[0].Told[1].Observations(), "they are all that ended")
			})
		})
	}
}

func TestReasonsAreToldIfTheyAreAskedFor(t *testing.T) {
	for name, ask := range map[string]Ask{
		"not asked for":              {Signals: []Signal{Finished}},
		"asked for, but not of whom": {Signals: []Signal{TTFT}, Reasons: true},
	} {
		tl := newTimeline()
		finish(tl, ending{target: 1}, after(3), 1000)
		finish(tl, ending{target: 1}, after(18), 1005)
		tl.registry.Close(after(30), ask, func(f *Frame) { assert.Nil(t, f.Members[0].Reasons, name) })
	}
}

// Past the limit, reasons are one: of 40, 32 are told apart, and 8 are not, nor is
// one that is called like those.
func TestReasonsAreToldApartToALimit(t *testing.T) {
	tl := newTimeline()
	told := []ending{{target: 1, spelling: Spelling{Reason: otherReason}}}
	for i := range 40 {
		told = append(told, ending{target: 1, spelling: Spelling{Reason: fmt.Sprintf("r%02d", i)}})
	}
	for _, e := range told {
		finish(tl, e, after(3), 10)
	}
	for _, e := range told {
		finish(tl, e, after(18), 11)
	}
	want := []ReasonCount{{otherReason, 9}}
	for i := range 32 {
		want = append(want, ReasonCount{fmt.Sprintf("r%02d", i), 1})
	}
	tl.registry.Close(after(30), askReasons, func(f *Frame) { assert.Equal(t, want, f.Members[0].Reasons) })
}

// Two processes that answer under one name are not counted; what a sound series
// counts is.
func TestReasonsOfAnUnreliableSeriesAreNotCounted(t *testing.T) {
	tl := newTimeline()
	unsound := ending{target: 1, spelling: Spelling{Reason: "stop"}}
	sound := ending{target: 1, spelling: Spelling{Reason: "length"}}
	for i, total := range []uint64{1000, 10, 1001, 11, 1002, 12} { // falls three times
		finish(tl, unsound, after(3+4*i), total)
		finish(tl, sound, after(3+4*i), uint64(100+i))
	}
	tl.registry.Close(after(30), askReasons, func(f *Frame) {
		assert.Equal(t, []ReasonCount{{"length", 5}}, f.Members[0].Reasons)
		assert.True(t, f.Members[0].Told[1].Unreliable)
	})
}

func TestReasonsOfDepartedReplicas(t *testing.T) {
	tl := newTimeline()
	stop := ending{target: 1, spelling: Spelling{Reason: "stop"}}
	finish(tl, stop, after(3), 1000)
	finish(tl, stop, after(18), 1006)
	tl.registry.Close(after(30), askReasons, func(*Frame) {})
	tl.registry.Close(after(60), askReasons, func(*Frame) {})
	tl.registry.Close(after(90), askReasons, func(f *Frame) {
		assert.Empty(t, f.Members)
		assert.Equal(t, []ReasonCount{{"stop", 6}}, f.Departed[0].Reasons)
	})
}
