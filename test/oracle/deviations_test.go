// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/llmfleet/llmfleet/test/prometheustest"
)

// The worlds of this file are small enough to be worked out by hand; docs/exactness.md tells the same stories. Their
// buckets end at 0.1 s, 0.5 s, 1 s and +Inf.
var handBounds = []float64{0.1, 0.5, 1}

// scrapeEvery is how often the pods of this file are visited, on the grid.
const scrapeEvery = 30 * time.Second

// handPod is a pod whose pages are given: at the i-th visit it stands at pages(i), and shows no page where that is nil.
func handPod(name string, visits int, pages func(visit int) []uint64) pod {
	p := pod{name: name, model: "hand"}
	for i := range visits {
		if buckets := pages(i); buckets != nil {
			p.scrapes = append(p.scrapes, scrape{at: epoch.Add(time.Duration(i) * scrapeEvery), buckets: buckets})
		}
	}
	return p
}

func handHistory(pods ...pod) history {
	return history{class: "by hand", bounds: handBounds, models: []string{"hand"}, pods: pods, length: historyLength}
}

// busy answers ten requests between two visits: five within 0.1 s, five within 0.5 s.
func busy(visit int) []uint64 {
	n := uint64(visit)
	return []uint64{5 * n, 10 * n, 10 * n, 10 * n}
}

// fleetLatencyAt returns what both say of the fleet's 0.95 quantile at an instant.
func fleetLatencyAt(t *testing.T, h history, at time.Duration) (prometheusSays, fleetOutlierSays float64) {
	t.Helper()
	p := prometheustest.New(t)
	load(p, []history{h})
	instant := epoch.Add(at).UnixMilli()
	key := figure{fleetLatency, "hand", ""}
	want, wanted := expectation(p, h.form)[instant][key]
	got, given := process(t, &h)[instant][key]
	assert.True(t, wanted && given, "at %s one of the two says nothing", at)
	return want, got
}

// TestWholeHistogramReset: a pod stands at 10, 20, 30, 30, restarts, and is next seen at 12, 15, 15, 15. The total fell,
// so the histogram began anew and all 15 observations are new: rank 14.25 lies between 12 and 15, at
// 0.1 + 0.4 x 2.25/3 = 0.4 s. Prometheus looks at each bucket alone, takes the lowest, which rose, for one that grew by
// 2, and puts 13 observations into the next: 0.1 + 0.4 x 12.25/13 s.
func TestWholeHistogramReset(t *testing.T) {
	const restart = 20
	h := handHistory(handPod("restarted", 40, func(visit int) []uint64 {
		if visit < restart {
			return []uint64{10, 20, 30, 30}
		}
		return []uint64{12, 15, 15, 15}
	}))
	per, whole := fleetLatencyAt(t, h, restart*scrapeEvery)
	assert.InEpsilon(t, 0.4, whole, tolerance)
	assert.InEpsilon(t, 0.1+0.4*12.25/13, per, tolerance)
}

// TestLongGap: one pod is busy; the other was silent and comes back with 100 more observations between 0.5 s and 1 s.
//
// After 5 minutes of silence these count: 50, 100, 200, 200 in the window, rank 190, 0.5 + 0.5 x 90/100 = 0.95 s.
// After 5.5 minutes nobody can say that they belong to this window, and they are left out: 50, 100, 100, 100, rank 95,
// 0.1 + 0.4 x 45/50 = 0.46 s. Prometheus still counts them, until the page before the silence has left its lookback.
func TestLongGap(t *testing.T) {
	const lastPage = 12
	for _, c := range []struct {
		name             string
		gap              time.Duration
		promSays, weSays float64
	}{
		{name: "five minutes", gap: 5 * time.Minute, promSays: 0.95, weSays: 0.95},
		{name: "more than five minutes", gap: 5*time.Minute + 30*time.Second, promSays: 0.95, weSays: 0.46},
	} {
		t.Run(c.name, func(t *testing.T) {
			back := lastPage + int(c.gap/scrapeEvery)
			silent := handPod("silent", 60, func(visit int) []uint64 {
				switch {
				case visit <= lastPage:
					return []uint64{7, 7, 7, 7}
				case visit < back:
					return nil
				default:
					return []uint64{7, 7, 107, 107}
				}
			})
			at := time.Duration(back) * scrapeEvery
			per, here := fleetLatencyAt(t, handHistory(silent, handPod("busy", 60, busy)), at)
			assert.InEpsilon(t, c.promSays, per, tolerance)
			assert.InEpsilon(t, c.weSays, here, tolerance)
		})
	}
}

// TestFinerBucketsAfterRestart: a pod stands at 10 observations in (1, 2], restarts with buckets of half that width, and is
// next seen with 20 in (1, 2^0.5]. Nothing else is in the window of ten pages, so the 0.95 quantile is there, at 2^0.475.
// But Prometheus starts from the page before the window, whose buckets are wide, and puts all into (1, 2]: 2^0.95.
func TestFinerBucketsAfterRestart(t *testing.T) {
	const restart = 20
	p := handPod("restarted", 40, func(int) []uint64 { return []uint64{} })
	for i := range p.scrapes {
		x := &exponentialPage{schema: 0, counts: []uint64{10}}
		if i >= restart {
			x = &exponentialPage{schema: 1, counts: []uint64{20}}
		}
		p.scrapes[i].exponential = x
	}
	h := handHistory(p)
	h.form = exponential
	per, here := fleetLatencyAt(t, h, (restart+9)*scrapeEvery)
	assert.InEpsilon(t, math.Exp2(0.475), here, tolerance)
	assert.InEpsilon(t, math.Exp2(0.95), per, tolerance)
}
