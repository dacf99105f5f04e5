// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"strings"
	"time"
)

// The grid on which fleet_outlier evaluates, and the window of the queries of record.
const (
	interval = 30 * time.Second
	window   = 5 * time.Minute
	lateness = 5 * time.Second
)

// epoch is where every history begins: the instant at which a testing/synctest bubble starts its clock.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// outcome is what became of one scrape.
type outcome uint8

const (
	// scraped: the page was read.
	scraped outcome = iota
	// failed: the target did not answer; up is 0 and every series of the target gets a stale marker.
	failed
	// stillFailed: a failed scrape after a failed scrape; up is 0, the markers were written before.
	stillFailed
	// removed: the target left service discovery; every series gets a stale marker, up as well.
	removed
)

// scrape is one visit to a pod. Its instants are whole milliseconds, the resolution of Prometheus.
type scrape struct {
	at          time.Time
	delay       time.Duration // from at until the page reaches the processor; below lateness
	outcome     outcome
	buckets     []uint64         // cumulative counts, the last one +Inf; of exponential histograms none
	exponential *exponentialPage // nil of others
	sum         float64
	waiting     float64
	running     float64
}

// pod is one replica with its scrapes in order of time.
type pod struct {
	name    string
	model   string
	scrapes []scrape
}

// firstPage returns the instant of the pod's first page that was read.
func (p *pod) firstPage() time.Time {
	for _, s := range p.scrapes {
		if s.outcome == scraped {
			return s.at
		}
	}
	return epoch.Add(365 * 24 * time.Hour)
}

// history is one world: pods of one or two models and what scraping them gave.
type history struct {
	class  string
	form   form
	seed   uint64
	bounds []float64 // finite upper bounds, ascending; of exponential histograms they are not used
	models []string
	pods   []pod
	length time.Duration
}

// evaluations returns every instant T at which the history is judged.
func (h *history) evaluations() []time.Time {
	var instants []time.Time
	for at := interval; at <= h.length; at += interval {
		instants = append(instants, epoch.Add(at))
	}
	return instants
}

// describe prints what the pods of a model did in the window that ends at end and in the lookback before it, so that a
// disagreement can be worked out by hand.
func (h *history) describe(model string, end time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "bounds %v\n", h.bounds)
	for i := range h.pods {
		p := &h.pods[i]
		if p.model != model {
			continue
		}
		fmt.Fprintf(&b, "%s, first page %s\n", p.name, offset(p.firstPage()))
		for _, s := range p.scrapes {
			if s.at.Before(end.Add(-2*window)) || s.at.After(end.Add(lateness)) {
				continue
			}
			fmt.Fprintf(&b, "  %s %s %v %v waiting %g\n", offset(s.at), s.outcome, s.buckets, s.exponential, s.waiting)
		}
	}
	return b.String()
}

// offset is the time since the history began.
func offset(at time.Time) time.Duration { return at.Sub(epoch) }

func (o outcome) String() string {
	return [...]string{"scraped", "failed", "still failed", "removed"}[o]
}
