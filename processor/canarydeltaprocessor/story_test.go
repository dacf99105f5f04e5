// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canarydeltaprocessor

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// scrape feeds in what three replicas of version 1.0 show after so many minutes, of
// whose 100 requests a minute none fails, and three of 2.0, of whose 20 do.
func scrape(t *testing.T, stage *scenariotest.Stage[*Config], targets scenariotest.Targets, minute int) {
	t.Helper()
	at := time.Duration(minute)*time.Minute + stage.Config.Pane/2
	scenariotest.Wait(stage.Began.Add(at))
	for i, pod := range []string{"a", "b", "c", "d", "e", "f"} {
		version, failed := "1.0", 0
		if i >= 3 {
			version, failed = "2.0", 20*minute
		}
		body := fmt.Sprintf(`# TYPE vllm:request_success_total counter
			vllm:request_success_total{model_name="m",finished_reason="stop"} %d
			vllm:request_success_total{model_name="m",finished_reason="error"} %d`, 100*minute-failed, failed)
		stage.Consume(targets.Scrape(&scenariotest.Page{
			At: at, Target: map[string]string{"pod": pod, "engine_version": version}, Lines: scenariotest.Lines(t, body, 1)[0],
		}, stage.Began))
	}
}

// failed tells whether the canary has failed by then.
func failed(told scenariotest.Told, at time.Duration) bool {
	return slices.ContainsFunc(told[at], func(p scenariotest.Point) bool {
		return p.Name == emit.CanaryVerdict && p.Labels["measure"] == "overall" && p.Labels["verdict"] == "fail" && p.Value == 1
	})
}

// TestVerdictOutlivesACrash: a verdict is saved in the pane that gives it, so that
// a collector that ends without being asked to still knows it. Of 300 requests of
// the canary 60 fail in the third pane in which there are any, and of as many of
// its baseline none: with p = 60/600 of both, the evidence for twice the odds alone
// is 2^60/1.1^300 = 4.4e5, an eighth of which counts, and 20 are enough.
func TestVerdictOutlivesACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := subject.Stored(t)
		config.Watch, config.Canary.Match = []string{"errors"}, map[string]string{"engine_version": "2.0"}
		shelf, targets := &scenariotest.Shelf{}, scenariotest.Targets{}
		stage := subject.Stage(t, config)
		stage.Host[*config.Storage] = shelf
		stage.Raise()
		for minute := range 2 {
			scrape(t, stage, targets, minute)
		}
		scenariotest.Wait(stage.Began.Add(2*time.Minute + 30*time.Second - time.Nanosecond))
		assert.Zero(t, shelf.Writes.Load(), "nothing has turned")
		scrape(t, stage, targets, 2)
		scenariotest.Wait(stage.Began.Add(3*time.Minute + config.Lateness + time.Millisecond))
		require.EqualValues(t, 1, shelf.Writes.Load())
		survives := &scenariotest.Shelf{Value: slices.Clone(shelf.Value)}
		stage.Shutdown()
		told := stage.Told(t)
		assert.False(t, failed(told, 2*time.Minute))
		assert.True(t, failed(told, 3*time.Minute))

		after := subject.Stage(t, config)
		after.Began, after.Host[*config.Storage] = stage.Began, survives
		after.Raise()
		scrape(t, after, targets, 3)
		scenariotest.Wait(after.Began.Add(4*time.Minute + config.Lateness + time.Millisecond))
		after.Shutdown()
		assert.True(t, failed(after.Told(t), 4*time.Minute))
	})
}
