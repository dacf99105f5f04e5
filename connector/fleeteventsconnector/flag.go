// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleeteventsconnector

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
)

// state is what a flag shows.
type state uint8

const (
	off state = iota // or nothing: its series is not there
	on
	inconclusive // a verdict, as the next two
	pass
	fail
	ended // its series did. A point shows it, no flag stays in it
)

var stateNames = []string{off: "off", on: "on", inconclusive: "inconclusive", pass: "pass", fail: "fail", ended: "ended"}

// String is the state's name in storage and, of a verdict, in its attribute.
func (s state) String() string { return stateNames[s] }

// flag is something that is in one state at a time, and is told when it turns.
type flag interface {
	// shows is what a point of the flag's metric says, by the attributes that tell
	// it from its siblings: which flag it is of, "" where there is but one, and its
	// state. False: it says nothing.
	shows(own [2]string, valued bool, value float64) (of string, s state, says bool)
	// rule is what is told of a turn, once all of its evaluation was seen. False:
	// nothing is.
	rule(s *subject, t turn) (turn, bool)
	// event is how that is told. inFleet may be nil.
	event(t turn, rd, inFleet *reading) event
}

// flags are those that are followed, by their metrics.
var flags = map[string]flag{
	emit.ReplicaOutlier: alarm{emit.ReplicaOutlier, plog.SeverityNumberWarn, "an outlier", outlierNumbers},
	emit.ReplicaStuck:   alarm{emit.ReplicaStuck, plog.SeverityNumberError, "stuck", stuckNumbers},
	emit.NodeOutlier:    alarm{emit.NodeOutlier, plog.SeverityNumberWarn, "an outlier", nodeNumbers},
	emit.TenantNoisy:    alarm{emit.TenantNoisy, plog.SeverityNumberWarn, "a noisy neighbour", noisyNumbers},
	emit.CanaryVerdict:  verdict{},
	emit.CanaryReason:   standing{},
}

// alarm is a flag that turns on and off: a metric that is 1 while it is on. Each
// turn is told.
type alarm struct {
	metric   string
	severity plog.SeverityNumber // of an onset
	is       string              // what a replica, node or tenant is while it is on
	numbers  numbers
}

// numbers are the parts of the sentence that tell why an alarm turned on, or how
// things are now that it is off. inFleet may be nil.
type numbers func(rd, inFleet *reading, shows state) []string

func (alarm) shows(_ [2]string, valued bool, value float64) (string, state, bool) {
	switch {
	case !valued:
		return "", ended, true
	case value != 0:
		return "", on, true
	default:
		return "", off, true
	}
}

func (alarm) rule(_ *subject, t turn) (turn, bool) { return t, true }

func (a alarm) event(t turn, rd, inFleet *reading) event {
	if t.is == on {
		return event{name: a.metric + suffixOnset, severity: a.severity, body: onsetSentence(&a, rd, inFleet), of: rd}
	}
	return event{
		name: a.metric + suffixClear, severity: plog.SeverityNumberInfo, body: clearSentence(&a, rd, inFleet, t.why, t.lasted), of: rd,
	}
}

// outlierNumbers tell of each signal that raised the alarm. Where none is said
// to have, they tell of the one that is furthest from its peers.
func outlierNumbers(rd, inFleet *reading, _ state) (parts []string) {
	raised := rd.chosen(emit.ReplicaOutlierSignal)
	if len(raised) == 0 {
		raised = rd.furthest()
	}
	for _, signal := range raised {
		if signal == fleet.Errors.String() {
			parts = append(parts, errorNumbers(rd, inFleet))
			continue
		}
		parts = append(parts, latencyNumbers(rd, signal)...)
	}
	if evidence, ok := rd.find(emit.ReplicaOutlierEvidence); ok {
		parts = append(parts, "evidence "+number(evidence))
	}
	for _, cause := range rd.chosen(emit.ReplicaOutlierCause) {
		parts = append(parts, "likely cause: "+words(cause))
	}
	return parts
}

// furthest is the signal with the highest ratio, if there is any.
func (rd *reading) furthest() []string {
	highest, signal := -1.0, []string(nil)
	for _, f := range rd.figures {
		if f.metric.Name == emit.ReplicaLatencyRatio && f.value > highest {
			highest, signal = f.value, []string{f.own[0]}
		}
	}
	return signal
}

// latencyNumbers tell of the highest quantile of a signal that has a ratio, else
// of the highest that has a value.
func latencyNumbers(rd *reading, signal string) []string {
	quantile := rd.highestQuantile(emit.ReplicaLatencyRatio, signal)
	if quantile == "" {
		quantile = rd.highestQuantile(emit.ReplicaLatency, signal)
	}
	text := signal
	if quantile != "" {
		text += " " + percentile(quantile)
	}
	told := false
	if value, ok := rd.find(emit.ReplicaLatency, signal, quantile); ok {
		text, told = text+" "+seconds(value, coarse), true
	}
	if ratio, ok := rd.find(emit.ReplicaLatencyRatio, signal, quantile); ok {
		if told {
			text += ","
		}
		text, told = text+" "+number(ratio)+" times that of its peers", true
	}
	if observations, ok := rd.find(emit.ReplicaObservations, signal); ok {
		text, told = text+fmt.Sprintf(", on %.0f observations", observations), true
	}
	if !told {
		text += " is far from that of its peers"
	}
	return []string{text}
}

func (rd *reading) highestQuantile(metric, signal string) (highest string) {
	for _, f := range rd.figures {
		if f.metric.Name == metric && f.own[0] == signal && share(f.own[1]) > share(highest) {
			highest = f.own[1]
		}
	}
	return highest
}

// errorNumbers tell of the error ratio, whose metrics are off by default.
func errorNumbers(rd, inFleet *reading) string {
	ratio, ok := rd.find(emit.ReplicaErrorRatio)
	if !ok {
		return "more of its requests fail than in its fleet"
	}
	text := percent(ratio) + " of its requests fail"
	if ratio, ok := inFleet.find(emit.FleetErrorRatio); ok {
		text += ", " + percent(ratio) + " in its fleet"
	}
	return text
}

func stuckNumbers(rd, _ *reading, shows state) []string {
	running, runs := rd.find(emit.ReplicaRequests, fleet.Running.String())
	waiting, waits := rd.find(emit.ReplicaRequests, fleet.Waiting.String())
	told := fmt.Sprintf("%s requests running and %s waiting", number(running), number(waiting))
	switch {
	case runs && waits && shows == off:
		return []string{told}
	case runs && waits && running+waiting > 0:
		return []string{told + ", and no token made"}
	case shows == on:
		return []string{"it has work and makes no token, or answers without any engine metric"}
	}
	return nil
}

func nodeNumbers(_, _ *reading, shows state) []string {
	if shows == on {
		return []string{"replicas of two models and more on it are outliers at once"}
	}
	return nil
}

// noisyNumbers tell of a tenant's share of what has to be computed, and of the
// latency with what it sends beyond its usual and without. The excess is of some
// panes, the latency of the newest: without it, none is below the usual.
func noisyNumbers(rd, inFleet *reading, shows state) (parts []string) {
	for _, input := range [][2]string{{"input_uncached", "uncached input"}, {"input", "input"}} { // the latter where caches are not told
		share, ok := rd.find(emit.TenantTokenShare, input[0])
		if !ok {
			continue
		}
		text := percent(share) + " of the " + input[1]
		if usual, ok := rd.find(emit.TenantUsualShare); ok {
			text += ", usually " + percent(usual)
		}
		parts = append(parts, text)
		break
	}
	if itl, ok := inFleet.find(emit.FleetITL); ok {
		text := "inter-token latency " + seconds(itl, coarse)
		excess, attributed := rd.find(emit.TenantITLExcess)
		usual, known := inFleet.find(emit.FleetUsualITL)
		if attributed && known && shows == on {
			text += ", " + seconds(max(usual, itl-excess*usual), coarse) + " without what it sends beyond its usual"
		}
		parts = append(parts, text)
	}
	if lasts, ok := rd.find(emit.TenantNoisyDuration); ok && shows == on {
		began := rd.at.AsTime().Add(-time.Duration(lasts * float64(time.Second)))
		parts = append(parts, "since "+began.Format(time.TimeOnly)+" UTC")
	}
	return parts
}
