// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"time"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// unattributed is the stage of time that no stage accounts for.
const unattributed = "unattributed"

// criticalTimes are how long a start waited for each of its stages: from its end
// backwards, the time belongs to the stage that covers it and ends last, among
// those that end together to the one that began last, back to where that one
// began. Stages count under the name that is given to them, those without one not;
// what none covers is unattributed.
func criticalTimes(truth *fleetsim.ColdStart, name func(*fleetsim.TrueStage) string) map[string]time.Duration {
	times := map[string]time.Duration{}
	for t := truth.Ready; t > truth.Began; {
		var on *fleetsim.TrueStage
		next := truth.Began // the last end before t
		for i := range truth.Stages {
			s := &truth.Stages[i]
			switch {
			case name(s) == "" || s.Start >= t || s.End <= s.Start:
			case s.End < t:
				next = max(next, s.End)
			case on == nil || s.End > on.End || s.End == on.End && s.Start > on.Start:
				on = s
			}
		}
		stage := unattributed
		if on != nil {
			stage, next = name(on), max(on.Start, truth.Began)
		}
		times[stage] += t.Sub(next)
		t = next
	}
	return times
}

// longest is the stage with the most time.
func longest(times map[string]time.Duration) (stage string) {
	for s, t := range times {
		if stage == "" || t > times[stage] || t == times[stage] && s < stage {
			stage = s
		}
	}
	return stage
}

// truly is what a stage was.
func truly(s *fleetsim.TrueStage) string { return s.Stage }

// asKnown is what a stage can be known as: if one of its boundaries was not told,
// what it is a part of.
func asKnown(s *fleetsim.TrueStage) string {
	if s.Told {
		return s.Stage
	}
	return s.Of
}

// stageKey tells stages of a start apart: what happened between which pods'
// boundaries, in pieces or in one.
type stageKey struct {
	stage, pod, container string
	attempt               int
}

// keyOf is the key of a stage. Whose container it was matters before an engine is
// there, which attempt from there on.
func keyOf(stage, pod, container string, attempt int) stageKey {
	k := stageKey{stage: stage, pod: pod}
	switch stage {
	case "image.pull_wait", "image.pull", "image.pull_back_off", "container.init":
		k.container = container
	case "container.create":
		k.container, k.attempt = container, attempt
	case "engine.boot", "weights.load", "compile", "kv_cache.init", "graph.capture", "warmup":
		k.attempt = attempt
	}
	return k
}

// knownStage is how long a stage truly took whose boundaries were all told, and how
// long as they were told. One that is in pieces is what other stages leave of a
// whole, which may be nothing.
type knownStage struct {
	truly, asTold time.Duration
	pieces        bool
}

// knownStages are the stages of a start all of whose boundaries were told, with all
// of their pieces.
func knownStages(truth *fleetsim.ColdStart) map[stageKey]knownStage {
	known := map[stageKey]knownStage{}
	partly := map[stageKey]bool{}
	for i := range truth.Stages {
		s := &truth.Stages[i]
		k := keyOf(s.Stage, s.Pod, s.Container, s.Attempt)
		partly[k] = partly[k] || !s.Told
		known[k] = knownStage{known[k].truly + s.End.Sub(s.Start), known[k].asTold + s.AsTold, s.Of == s.Stage}
	}
	for k := range partly {
		if partly[k] {
			delete(known, k)
		}
	}
	return known
}
