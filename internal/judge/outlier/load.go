// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import "github.com/llmfleet/llmfleet/internal/fleet"

var (
	waiting = fleet.LoadOf(fleet.Waiting)
	usage   = fleet.LoadOf(fleet.KVUsage)
)

// load judges the gauges: each replica's mean over the window against the
// fleet's mean. Requests of the fleet are a sum, usage is a mean.
func (j *Judge) load(f *fleet.Frame) {
	for i := range loads {
		var sum float64
		known := 0
		for m := range f.Members {
			if l := &f.Members[m].Load[i]; l.MeanKnown {
				sum += l.Mean
				known++
			}
		}
		mean := withheld(NotReported)
		if known > 0 {
			mean = Figure{Value: sum / float64(known)}
		}
		j.report.Load[i] = mean
		if i != usage {
			j.report.Load[i].Value = sum
		}
		for m := range f.Members {
			r := &j.report.Replicas[m]
			r.Load[i], r.LoadRatio[i] = loadOf(&f.Members[m].Load[i], mean.Value, i == waiting)
		}
	}
	j.report.WaitingImbalance = imbalance(f)
}

// loadOf is one replica's load and its ratio to the fleet's mean, which for
// queues is at least 1: among empty queues, a single waiting request is no
// imbalance.
func loadOf(l *fleet.Load, mean float64, clamp bool) (own, over Figure) {
	if !l.MeanKnown {
		return withheld(NotReported), withheld(NotReported)
	}
	if clamp {
		mean = max(mean, 1)
	}
	return Figure{Value: l.Mean}, ratio(l.Mean, mean)
}

// imbalance is max(waiting) / clamp_min(avg(waiting), 1) at the window's end.
func imbalance(f *fleet.Frame) Figure {
	var sum, longest float64
	known := 0
	for m := range f.Members {
		if l := &f.Members[m].Load[waiting]; l.NowKnown {
			sum += l.Now
			longest = max(longest, l.Now)
			known++
		}
	}
	if known == 0 {
		return withheld(NotReported)
	}
	return Figure{Value: longest / max(sum/float64(known), 1)}
}
