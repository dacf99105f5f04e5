// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/internal/judge/outlier"
	"github.com/llmfleet/llmfleet/internal/window"
)

// bareJudgement is the alarm without a collector: it is given the pages that a collector was given, and afterwards judges
// what the collector judged, as far as it had read by then.
type bareJudgement struct {
	lateness time.Duration
	pages    []readPages
	stops    []time.Time // of collectors, one after the other
}

// readPages are pages that a collector had read by then.
type readPages struct {
	at    time.Time
	pages pmetric.Metrics
}

func (b *bareJudgement) read(pages pmetric.Metrics) {
	b.pages = append(b.pages, readPages{time.Now(), pages})
}

func (b *bareJudgement) stop() { b.stops = append(b.stops, time.Now()) }

// turn is a replica's flag that turned on or off.
type turn struct {
	at      time.Time
	replica string
	on      bool
}

// flags are those that are known, by replica.
type flags map[string]bool

// note notes one, and tells whether it turned.
func (f flags) note(replica string, on bool) (turned bool) {
	turned = f[replica] != on
	f[replica] = on
	return turned
}

// judged is a replica at the end of a pane.
type judged struct {
	end     time.Time
	replica string
}

// judge evaluates the panes that ended at these times, which ascend, and returns which flags turned and what the evidence
// was.
func (b *bareJudgement) judge(t *testing.T, ends []time.Time) (turns []turn, evidence map[judged]float64) {
	t.Helper()
	evidence = make(map[judged]float64)
	known := make(flags)
	pages := b.pages
	var saved []byte
	for _, stop := range b.stops {
		alarm, registry, reader := newJudgement(ends[0])
		if saved != nil {
			require.NoError(t, alarm.Load(saved, window.Instant(ends[0].UnixNano())))
		}
		for ; len(ends) > 0 && !ends[0].After(stop); ends = ends[1:] {
			end := ends[0]
			when := end.Add(b.lateness)
			if when.After(stop) {
				when = stop // what is closed is judged before a collector ends
			}
			for ; len(pages) > 0 && !pages[0].at.After(when); pages = pages[1:] {
				reader.Read(pages[0].pages)
			}
			alarm.Begin()
			registry.Close(window.Instant(end.UnixNano()), noiseAsk, func(f *fleet.Frame) {
				for i, v := range alarm.Judge(f).Replicas {
					replica := f.Members[i].Identity.Replica
					evidence[judged{end, replica}] = v.Evidence.Value
					if v.Outlier.Withheld == outlier.Given && known.note(replica, v.Outlier.Value == 1) {
						turns = append(turns, turn{end, replica, v.Outlier.Value == 1})
					}
				}
			})
		}
		saved = alarm.Save()
	}
	return turns, evidence
}

// noiseAsk is what an alarm with a pane of 2 s is judged from.
var noiseAsk = fleet.Ask{
	Signals: []fleet.Signal{fleet.TTFT, fleet.ITL, fleet.Errors, fleet.Finished},
	Recent:  4,
	Pane: func(end window.Instant, _ time.Duration) time.Duration {
		if int64(end)%int64(2*time.Second) != 0 {
			return 0
		}
		return 2 * time.Second
	},
}

// newJudgement is what noiseConfig makes of the processor, opened before the pane that ends at first.
func newJudgement(first time.Time) (*outlier.Alarm, *fleet.Registry, *intake.Reader) {
	registry := fleet.NewRegistry(fleet.Options{
		Grids:       []window.Grid{window.NewGrid(time.Second, 10*time.Second, time.Second)},
		Lateness:    time.Second,
		MaxReplicas: noiseReplicas,
	})
	registry.Open(window.Instant(first.UnixNano()))
	reader := intake.NewReader(intake.Options{
		Dialects: dialect.Builtin(), Signals: noiseAsk.Signals, GroupBy: []string{"model_name"},
	}, registry)
	alarm := outlier.NewAlarm(outlier.AlarmOptions{
		FalseAlarmsPerWeek: 1, Tolerance: 1.25, Signals: []fleet.Signal{fleet.TTFT, fleet.ITL},
		ClearAfter: 10 * time.Second, Warmup: 20 * time.Second,
	})
	return alarm, registry, reader
}
