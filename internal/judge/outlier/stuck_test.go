// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// serving is a replica that tells of tokens as they are made, and has had
// requests in its batch for the newest three panes. Its last token came so many
// panes before the newest.
func serving(stalled int) fleet.MemberFrame {
	tokens := distribution(nil, 360_000)
	tokens.Stalled, tokens.Ever = stalled, true
	m := fleet.MemberFrame{
		Identity: &fleet.Identity{Engine: "vllm"}, Realtime: true,
		Told: []fleet.Distribution{tokens, {}},
	}
	m.Load[fleet.LoadOf(fleet.Waiting)] = fleet.Load{Mean: 12, MeanKnown: true, Busy: 3}
	m.Load[fleet.LoadOf(fleet.Running)] = fleet.Load{Mean: 32, MeanKnown: true, Busy: 3}
	return m
}

// stuckOf judges one replica.
func stuckOf(t *testing.T, m fleet.MemberFrame, keys ...fleet.Label) Figure {
	t.Helper()
	f := frameOf(t, m)
	f.Signals = StuckSignals
	f.Fleet = &fleet.Fleet{Keys: keys}
	var judge Judge
	return judge.Judge(f, &Options{}).Replicas[0].Stuck
}

func TestStuck(t *testing.T) {
	yes, no := Figure{Value: 1}, Figure{}
	with := func(stalled int, change func(*fleet.MemberFrame)) fleet.MemberFrame {
		m := serving(stalled)
		change(&m)
		return m
	}
	load := func(m *fleet.MemberFrame, waiting, running int) {
		m.Load[fleet.LoadOf(fleet.Waiting)].Busy = waiting
		m.Load[fleet.LoadOf(fleet.Running)].Busy = running
	}
	latency := func(stalled int) fleet.Distribution {
		d := distribution(latencies, 9, 0, 0, 0, 0)
		d.Stalled, d.Ever = stalled, true
		return d
	}
	for name, c := range map[string]struct {
		replica fleet.MemberFrame
		want    Figure
	}{
		"tokens come":                {serving(0), no},
		"none in the newest pane":    {serving(1), no},
		"none in two panes":          {serving(2), yes},
		"none for long":              {serving(9), yes},
		"nobody ever made a token":   {with(9, func(m *fleet.MemberFrame) { m.Told[0].Ever = false }), withheld(NotReported)},
		"nothing to do":              {with(9, func(m *fleet.MemberFrame) { load(m, 0, 0) }), no},
		"work for one pane":          {with(9, func(m *fleet.MemberFrame) { load(m, 1, 1) }), no},
		"only a queue":               {with(9, func(m *fleet.MemberFrame) { load(m, 2, 0) }), yes},
		"only a batch":               {with(9, func(m *fleet.MemberFrame) { load(m, 0, 2) }), yes},
		"work is not told":           {with(9, func(m *fleet.MemberFrame) { m.Load = [loads]fleet.Load{} }), withheld(NotReported)},
		"tokens, and work not told":  {with(0, func(m *fleet.MemberFrame) { m.Load = [loads]fleet.Load{} }), no},
		"a gap between tokens came":  {with(9, func(m *fleet.MemberFrame) { m.Told[1] = latency(0) }), no},
		"neither tokens nor gaps":    {with(9, func(m *fleet.MemberFrame) { m.Told[1] = latency(2) }), yes},
		"only gaps are told":         {with(0, func(m *fleet.MemberFrame) { m.Told[0] = fleet.Distribution{}; m.Told[1] = latency(2) }), yes},
		"no tokens are told":         {with(9, func(m *fleet.MemberFrame) { m.Told[0] = fleet.Distribution{} }), withheld(NotReported)},
		"two processes":              {with(9, func(m *fleet.MemberFrame) { m.Told[0].Unreliable = true }), withheld(Unreliable)},
		"tokens at a request's end":  {with(9, func(m *fleet.MemberFrame) { m.Realtime = false }), withheld(TokensAtEnd)},
		"unreachable":                {with(9, func(m *fleet.MemberFrame) { m.Unreachable = true }), withheld(NotReported)},
		"young":                      {with(2, func(m *fleet.MemberFrame) { m.Warming = true }), yes},
		"silent":                     {with(0, func(m *fleet.MemberFrame) { m.Silent = true }), yes},
		"silent, and tells no token": {with(0, func(m *fleet.MemberFrame) { m.Silent, m.Realtime, m.Told[0].Layout = true, false, nil }), yes},
	} {
		assert.Equal(t, c.want, stuckOf(t, c.replica), name)
	}
	assert.Equal(t, withheld(NotReported), stuckOf(t, serving(9), fleet.Label{Name: "role", Value: "prefill"}), "its tokens are made by decode replicas")
	assert.Equal(t, yes, stuckOf(t, serving(9), fleet.Label{Name: "role", Value: "decode"}))

	f := frameOf(t, serving(9))
	f.Signals = []fleet.Signal{fleet.TTFT, fleet.E2E}
	var judge Judge
	assert.Equal(t, withheld(NotAsked), judge.Judge(f, &Options{}).Replicas[0].Stuck)
}

// scraped folds one page of a replica in: 32 requests run and 12 wait, and so many
// tokens were made until then.
func scraped(t *testing.T, registry *fleet.Registry, replica int, at window.Instant, tokens uint64) {
	t.Helper()
	target, err := registry.Acquire(fleet.ID(replica+1), true)
	require.NoError(t, err)
	defer target.Unlock()
	identity := &fleet.Identity{Replica: fmt.Sprint(replica), Engine: "vllm"}
	for signal, value := range map[fleet.Signal]uint64{fleet.GenerationTokens: tokens, fleet.Running: 32, fleet.Waiting: 12, fleet.Finished: 0} {
		id := fleet.ID(signal)
		series := target.Series(id)
		if series == nil {
			series, err = target.Join(id, identity, signal, fleet.Spelling{Realtime: signal == fleet.GenerationTokens})
			require.NoError(t, err)
		}
		series.Touch(at)
		var outcome window.Outcome
		if signal.Kind() == fleet.Gauge {
			outcome, _ = series.ObserveGauge(at, float64(value))
		} else {
			outcome, _ = series.ObserveHistogram(nil, &window.Sample{At: at, Counts: []uint64{value}})
		}
		require.Contains(t, []window.Outcome{window.Accepted, window.First}, outcome)
	}
	target.Heard(true, at)
}

// TestReasoning: eight replicas think for a quarter of an hour. Nothing ends, and
// none of them is stuck, until one makes no token any more.
func TestReasoning(t *testing.T) {
	const (
		pane     = 30 * time.Second
		replicas = 8
		hung     = 3
		hours    = window.Instant(1000 * time.Hour)
	)
	registry := fleet.NewRegistry(fleet.Options{Grids: []window.Grid{window.NewGrid(pane, 5*time.Minute, 0)}, MaxReplicas: replicas})
	registry.Open(hours + 1)
	var judge Judge
	var tokens [replicas]uint64
	ask := fleet.Ask{Signals: append([]fleet.Signal{fleet.Finished}, StuckSignals...)}
	for n := 1; n <= 34; n++ { // 15 minutes are 30 panes
		for part := range 2 {
			at := hours.Add(time.Duration(2*n-1+part) * pane / 2)
			for i := range replicas {
				if i != hung || n <= 30 {
					tokens[i] += 1200 * 15
				}
				scraped(t, registry, i, at, tokens[i])
			}
		}
		registry.Close(hours.Add(time.Duration(n)*pane), ask, func(f *fleet.Frame) {
			report := judge.Judge(f, &Options{})
			for i := range report.Replicas {
				switch stuck := report.Replicas[i].Stuck; {
				case i == hung && n >= 32:
					assert.Equal(t, Figure{Value: 1}, stuck, "%d panes after the last token", n-30)
				default:
					assert.Equal(t, Figure{}, stuck, "replica %d, pane %d", i, n)
				}
			}
			require.Len(t, report.Replicas, replicas)
		})
	}
}
