// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetidentityprocessor

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// FuzzConsume feeds metrics, spans, and the metrics once more, with all that can
// be switched on. Whatever attributes they have, it must not panic, nothing that
// was there may change (stage checks that of all that passes), and no more may be
// known than there is room for. The pages and spans of the scenarios are the
// seeds.
func FuzzConsume(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, metrics, traces []byte) {
		if bytes.Contains(metrics, []byte(scopeName)) {
			return // what looks like ours is taken for ours
		}
		md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(metrics)
		if err != nil {
			return
		}
		td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(traces)
		if err != nil {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			config := createDefaultConfig().(*Config)
			config.Points, config.EmitCanonical, config.MaxReplicas = pointsAll, true, 3
			config.ModelAliases = map[string]string{"chat": "m"}
			stage := newStage(t, config)
			stage.raise()
			for range 2 {
				again := pmetric.NewMetrics()
				md.CopyTo(again)
				stage.consumeMetrics(again)
				spans := ptrace.NewTraces()
				td.CopyTo(spans)
				stage.consumeTraces(spans)
				stage.wait(config.Interval + time.Second)
			}
			require.LessOrEqual(t, stage.counts()["members"], 3.0)
			stage.shutdown()
		})
	})
}

// seed adds the pages of every scenario, and its spans.
func seed(f *testing.F) {
	f.Helper()
	for _, archive := range scenariotest.Archives(f) {
		md, td, targets := pmetric.NewMetrics(), ptrace.NewTraces(), scenariotest.Targets{}
		for _, s := range readScenario(f, archive).steps {
			switch s.Action {
			case "":
				targets.Scrape(&s.Page, scenariotest.Epoch).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
			case "spans":
				traces(&s).ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
			}
		}
		metrics, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
		require.NoError(f, err)
		traces, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
		require.NoError(f, err)
		f.Add(metrics, traces)
	}
}
