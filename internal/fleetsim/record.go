// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"net/http"
	"slices"
	"time"
)

// RequestRecord is one request that has ended, as what stands before the engines
// and beside them could tell of it.
type RequestRecord struct {
	// Number of the request in its fleet, from 1, in order of arrival.
	Number uint64
	// Fleet, Engine and Model that it was for.
	Fleet  string
	Engine EngineKind
	Model  string
	// Replica that it was sent to; empty if it was turned away.
	Replica string
	// Tenant who sent it and the tenant's tier; empty if that is not known.
	Tenant, Tier string
	// Status is 200, 500 for an error of the engine, 503 if the engine was lost
	// or not there, and 429 if the tenant's rate limit turned it away.
	Status int
	// Arrived and Ended are always told. Scheduled and FirstToken are zero if it
	// did not come to that.
	Arrived, Scheduled, FirstToken, Ended time.Time
	// Prompt is all tokens of the prompt, and Cached those of them found in the
	// prefix cache. Output is the tokens made, MaxTokens the most that it asked
	// for.
	Prompt, Cached, Output, MaxTokens int
}

// playStep is how far the simulation plays before it hands out what ended.
const playStep = time.Second

// requestLog collects the requests that end, for those who watch.
type requestLog struct {
	start    time.Time
	watchers []func([]RequestRecord)
	ended    []RequestRecord
}

// Watch calls f with the requests that ended, in order of time, within every
// AdvanceTo and at least once for every second that it plays. The records may be
// read until f returns, and f must not call the simulation. Watch before the
// simulation is played or served.
func (s *Simulation) Watch(f func([]RequestRecord)) { s.log.watchers = append(s.log.watchers, f) }

func (l *requestLog) watched() bool { return len(l.watchers) > 0 }

// at turns seconds since the beginning into a time; negative ones into none.
func (l *requestLog) at(seconds float64) time.Time {
	if seconds < 0 {
		return time.Time{}
	}
	return l.start.Add(time.Duration(seconds * float64(time.Second)))
}

// handOut gives the watchers what ended until then.
func (l *requestLog) handOut(until time.Duration) {
	slices.SortStableFunc(l.ended, func(x, y RequestRecord) int { return x.Ended.Compare(y.Ended) })
	end := l.start.Add(until)
	due, _ := slices.BinarySearchFunc(l.ended, end, func(r RequestRecord, end time.Time) int {
		if r.Ended.After(end) {
			return 1
		}
		return -1
	})
	if due == 0 {
		return
	}
	for _, f := range l.watchers {
		f(l.ended[:due:due])
	}
	l.ended = slices.Delete(l.ended, 0, due)
}

// tell notes that a request ended at a time with a status.
func (f *fleetRun) tell(r *request, replica string, status int, ended float64) {
	if !f.log.watched() {
		return
	}
	f.log.ended = append(f.log.ended, RequestRecord{
		Number: r.number, Fleet: f.fleet.Name, Engine: f.fleet.Engine, Model: f.fleet.ModelName, Replica: replica,
		Tenant: f.roster.name(r.tenant), Tier: f.roster.tier(r.tenant),
		Status:  status,
		Arrived: f.log.at(r.arrived), Scheduled: f.log.at(r.scheduled), FirstToken: f.log.at(r.first), Ended: f.log.at(ended),
		Prompt: r.prompt, Cached: r.cached, Output: r.made, MaxTokens: r.limit,
	})
}

// turnAway ends a request that the gateway does not let through.
func (f *fleetRun) turnAway(a arrival) {
	f.tell(newRequest(f.fleet, a), "", http.StatusTooManyRequests, a.at)
}
