// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleeteventsconnector

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/judge/canary"
)

// suffixEnd is of the event that a comparison has ended; those of verdicts end
// in the verdict.
const suffixEnd = ".end"

// verdicts are the states of a verdict, by what the attribute says.
var verdicts = map[string]state{
	canary.Inconclusive.String(): inconclusive, canary.Pass.String(): pass, canary.Fail.String(): fail,
}

// verdict is the flag of what is said of a canary: of three series of each
// measure, and overall, one is 1. It is off while nothing is compared.
type verdict struct{}

func (verdict) shows(own [2]string, valued bool, value float64) (measure string, s state, says bool) {
	if !valued {
		return own[0], ended, true
	}
	s, known := verdicts[own[1]]
	return own[0], s, known && value != 0
}

// rule tells of every turn of the overall verdict, but not that a comparison
// begins. Of a measure it tells that it fails, unless the overall verdict turns to
// fail with it: then that record says so.
func (verdict) rule(s *subject, t turn) (turn, bool) {
	if t.of != canary.Overall {
		overall := s.flag(emit.CanaryVerdict, canary.Overall)
		return t, t.is == fail && (overall.shows != fail || overall.since != t.at)
	}
	promotion := s.flag(emit.CanaryReason, canary.Promoted.String())
	over := promotion.shows == on || promotion.since == t.at // that was told, or is
	switch t.is {
	case inconclusive:
		return t, t.was != off && !over
	case off:
		alone := t.was == inconclusive && s.flag(emit.CanaryReason, canary.NoBaseline.String()).shows == on
		return t, !alone && !over
	default:
		return t, true
	}
}

func (verdict) event(t turn, rd, _ *reading) event {
	e := event{
		name: emit.CanaryVerdict + suffixEnd, severity: plog.SeverityNumberInfo, body: verdictSentence(t, rd),
		of: rd.about(t.of), labels: []fleet.Label{{Name: emit.AttributeMeasure, Value: t.of}},
	}
	if t.is != off {
		e.name = emit.CanaryVerdict + "." + t.is.String()
		e.labels = append(e.labels, fleet.Label{Name: emit.AttributeVerdict, Value: t.is.String()})
	}
	if t.was != off {
		e.labels = append(e.labels, fleet.Label{Name: attributePrevious + emit.AttributeVerdict, Value: t.was.String()})
	}
	if t.is == fail {
		e.severity = plog.SeverityNumberWarn
	}
	return e
}

// standing is the flags of two reasons that say what the overall verdict is worth.
// Promoted: the comparison has ended, though its series may go on for a while;
// that is told as a turn of the verdict. No baseline: it has not begun.
type standing struct{ verdict }

// shows says nothing at the end of a series: that of the verdict may come after it.
func (standing) shows(own [2]string, valued bool, value float64) (reason string, s state, says bool) {
	if value != 0 {
		s = on
	}
	meant := own[1] == canary.Promoted.String() || own[1] == canary.NoBaseline.String()
	return own[1], s, valued && own[0] == canary.Overall && meant
}

// rule tells of a promotion.
func (standing) rule(s *subject, t turn) (turn, bool) {
	promotes := t.of == canary.Promoted.String() && t.is == on
	overall := s.flag(emit.CanaryVerdict, canary.Overall)
	return turn{overall.metric, overall.of, overall.shows, off, t.at, overall.lasted(), promoted}, promotes
}

// about is what a reading of a canary says of the whole, and of one measure:
// overall, of that which drives the verdict.
func (rd *reading) about(measure string) *reading {
	told := rd.driver(measure)
	some := *rd
	some.figures = slices.DeleteFunc(slices.Clone(rd.figures), func(f figure) bool {
		switch f.metric.Name {
		case emit.CanaryReason:
			return f.own[0] != measure && f.own[1] != canary.FewReplicas.String()
		case emit.CanaryVerdict:
			return f.own[0] == canary.Overall || f.own[1] != canary.Fail.String()
		default:
			return slices.Contains(f.metric.Attributes, emit.AttributeMeasure) && f.own[0] != told
		}
	})
	return &some
}

// driver is the measure whose numbers tell why a verdict is what it is.
func (rd *reading) driver(measure string) string {
	if measure != canary.Overall {
		return measure
	}
	for _, driver := range rd.chosen(emit.CanaryDriver) {
		return driver
	}
	return ""
}
