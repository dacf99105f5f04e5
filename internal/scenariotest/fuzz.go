// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package scenariotest

import (
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// FuzzConsume feeds two requests, and the first one once more, into a processor
// whose panes are judged meanwhile. Whatever they hold, it must not panic, tell
// nothing that breaks what is true of every output, and keep within the bounds of
// its configuration, which check reads from its counts. The pages of the stories
// are the seeds.
func (d *Deriver[C]) FuzzConsume(f *testing.F, configure func() C, check func(T, C, Counts)) {
	f.Helper()
	d.seed(f)
	f.Fuzz(func(t *testing.T, first, second []byte) {
		a, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(first)
		if err != nil || d.Derived(a) {
			return
		}
		b, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(second)
		if err != nil || d.Derived(b) {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			stage := d.Stage(t, configure())
			stage.Raise()
			for _, s := range []struct {
				at time.Duration
				md pmetric.Metrics
			}{{10 * time.Second, a}, {31 * time.Second, b}, {33 * time.Second, a}} {
				Wait(stage.Began.Add(s.at))
				stage.Consume(s.md)
			}
			Wait(stage.Began.Add(time.Minute))
			check(t, stage.Config, stage.Counts())
			stage.Shutdown()
			stage.Told(t)
		})
	})
}

// seed adds the pages of every story: those until 10s, and those until 30s.
func (d *Deriver[C]) seed(f *testing.F) {
	f.Helper()
	for _, archive := range Archives(f) {
		first, second, targets := pmetric.NewMetrics(), pmetric.NewMetrics(), Targets{}
		for _, s := range d.read(f, archive).steps {
			into := first
			if s.At > 10*time.Second {
				into = second
			}
			if s.Action == "" && s.At <= 30*time.Second {
				targets.Scrape(&s.Page, Epoch).ResourceMetrics().MoveAndAppendTo(into.ResourceMetrics())
			}
		}
		f.Add(marshal(f, first), marshal(f, second))
	}
}
