// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"golang.org/x/tools/txtar"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// FuzzConsume feeds two requests, and the first one once more, into a processor
// whose panes are judged meanwhile. Whatever they hold, it must not panic, tell
// nothing that breaks what is true of every output (checkOutput), and follow no
// more than it may. The pages of the scenarios are the seeds.
func FuzzConsume(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, first, second []byte) {
		unmarshaler := pmetric.ProtoUnmarshaler{}
		a, err := unmarshaler.UnmarshalMetrics(first)
		if err != nil || isDerived(a) {
			return
		}
		b, err := unmarshaler.UnmarshalMetrics(second)
		if err != nil || isDerived(b) {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			stage := newStage(t, anyConfig())
			stage.raise()
			for _, s := range []struct {
				at time.Duration
				md pmetric.Metrics
			}{{10 * time.Second, a}, {31 * time.Second, b}, {33 * time.Second, a}} {
				wait(began.Add(s.at))
				stage.consume(s.md)
			}
			wait(began.Add(time.Minute))
			counts := readTelemetry(t, stage.telemetry)
			assert.LessOrEqual(t, counts["members"], float64(stage.config.MaxReplicas))
			stage.shutdown()
			checkOutput(t, began, nil, stage.derived)
		})
	})
}

// seed adds the pages of every scenario: those until 10s, and those until 30s.
func seed(f *testing.F) {
	f.Helper()
	files, err := filepath.Glob("testdata/scenarios/*.txtar")
	require.NoError(f, err)
	began := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // when simulated time begins
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		require.NoError(f, err)
		first, second, targets := pmetric.NewMetrics(), pmetric.NewMetrics(), scenariotest.Targets{}
		for _, s := range readScenario(f, archive).steps {
			into := first
			if s.at > 10*time.Second {
				into = second
			}
			if s.action == "" && s.at <= 30*time.Second {
				targets.Scrape(&s.page, began).ResourceMetrics().MoveAndAppendTo(into.ResourceMetrics())
			}
		}
		f.Add(marshal(f, first), marshal(f, second))
	}
}
