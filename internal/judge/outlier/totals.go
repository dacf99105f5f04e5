// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import "github.com/llmfleet/llmfleet/internal/fleet"

// totals are sums over all members of a frame, from which each suspect takes its
// own part: however many there are, the frame is added up once. They are made
// when they are first asked for.
type totals struct {
	alarm         *Alarm
	frame         *fleet.Frame
	made          bool
	errors        portion // requests that failed, over all
	promptLengths portion // the sum of prompt lengths, over prompts
	load          [loads]portion
	hits          Figure // of prefix caches
}

// portion is one sum over another.
type portion struct{ part, whole float64 }

func (m *portion) add(o portion) { m.part, m.whole = m.part+o.part, m.whole+o.whole }

func (m portion) without(o portion) portion { return portion{m.part - o.part, m.whole - o.whole} }

// sums are the totals, made up to date.
func (t *totals) sums() *totals {
	if t.made {
		return t
	}
	t.made = true
	for i := range t.frame.Members {
		t.errors.add(t.errorsOf(i))
		t.promptLengths.add(promptsTold(t.frame, i))
		for l := range t.load {
			t.load[l].add(loadTold(t.frame, i, l))
		}
	}
	t.hits = hitRatio(t.frame, t.frame.Members)
	return t
}

// errorsOf are the requests of a replica that failed in the window, over all.
func (t *totals) errorsOf(i int) portion {
	failed, all, told := t.alarm.errors(t.frame, t.frame.Members[i].Told)
	if !told {
		return portion{}
	}
	return portion{float64(failed), float64(all)}
}

// promptsTold is the sum of the lengths of a replica's prompts, over their number.
func promptsTold(f *fleet.Frame, i int) portion {
	at := f.Index(fleet.PromptLength)
	if at < 0 {
		return portion{}
	}
	d := &f.Members[i].Told[at]
	if d.Layout == nil || d.Unreliable || !d.SumKnown {
		return portion{}
	}
	return portion{d.Sum, float64(d.Observations())}
}

// loadTold is a replica's mean load, over one replica.
func loadTold(f *fleet.Frame, i, l int) portion {
	if load := &f.Members[i].Load[l]; load.MeanKnown {
		return portion{load.Mean, 1}
	}
	return portion{}
}
