// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// gauges are a replica's waiting and running requests and its usage, the same
// all the time.
func gauges(waiting, running, usage float64) fleet.MemberFrame {
	m := replica(fleet.Distribution{})
	for i, v := range []float64{waiting, running, usage} {
		m.Load[i] = fleet.Load{Mean: v, MeanKnown: true, Now: v, NowKnown: true}
	}
	return m
}

func TestLoadOfAFleet(t *testing.T) {
	silent := replica(fleet.Distribution{})
	var judge Judge
	report := judge.Judge(frameOf(t, gauges(6, 10, 0.9), gauges(0, 20, 0.3), gauges(3, 30, 0.6), silent), options(0.95))

	given(t, 9, report.Load[fleet.LoadOf(fleet.Waiting)], "requests are a sum")
	given(t, 60, report.Load[fleet.LoadOf(fleet.Running)])
	given(t, 0.6, report.Load[fleet.LoadOf(fleet.KVUsage)], "usage is a mean of those who tell it")
	for i, want := range [][3]float64{{2, 0.5, 1.5}, {0, 1, 0.5}, {1, 1.5, 1}} {
		for l := range want {
			got := report.Replicas[i].LoadRatio[l]
			assert.Equal(t, Given, got.Withheld)
			assert.InDelta(t, want[l], got.Value, 1e-9, "replica %d, load %d", i, l)
		}
	}
	for l := range loads {
		refused(t, NotReported, report.Replicas[3].Load[l])
		refused(t, NotReported, report.Replicas[3].LoadRatio[l])
	}
}

func TestAmongEmptyQueuesOneRequestIsNoImbalance(t *testing.T) {
	var judge Judge
	report := judge.Judge(frameOf(t, gauges(1, 0, 0), gauges(0, 0, 0), gauges(0, 0, 0), gauges(0, 0, 0)), options(0.95))
	given(t, 1, report.Replicas[0].LoadRatio[fleet.LoadOf(fleet.Waiting)], "the mean is taken as 1")
	refused(t, ZeroBaseline, report.Replicas[0].LoadRatio[fleet.LoadOf(fleet.Running)])
	refused(t, ZeroBaseline, report.Replicas[0].LoadRatio[fleet.LoadOf(fleet.KVUsage)])
	given(t, 1, report.WaitingImbalance)
}

func TestWaitingImbalance(t *testing.T) {
	// max(waiting) / clamp_min(avg(waiting), 1), at this instant.
	for name, tc := range map[string]struct {
		now  []float64
		want float64
	}{
		"even":          {[]float64{4, 4}, 1},
		"one is behind": {[]float64{12, 0, 0}, 3},
		"few requests":  {[]float64{2, 0, 0, 0}, 2},
		"none":          {[]float64{0, 0}, 0},
		"one replica":   {[]float64{7}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var members []fleet.MemberFrame
			for _, now := range tc.now {
				m := gauges(now, 0, 0)
				m.Load[fleet.LoadOf(fleet.Waiting)].Mean = 100 // of the window: another figure
				members = append(members, m)
			}
			unknown := gauges(50, 0, 0)
			unknown.Load[fleet.LoadOf(fleet.Waiting)].NowKnown = false
			var judge Judge
			report := judge.Judge(frameOf(t, append(members, unknown)...), options(0.95))
			assert.Equal(t, Figure{Value: tc.want}, report.WaitingImbalance)
		})
	}
}

func TestLoadThatNobodyTells(t *testing.T) {
	var judge Judge
	report := judge.Judge(frameOf(t, replica(fleet.Distribution{})), options(0.95))
	for l := range loads {
		refused(t, NotReported, report.Load[l])
	}
	refused(t, NotReported, report.WaitingImbalance)
}
