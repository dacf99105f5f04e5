// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build captures

package captures

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// TestStartupLog: of a real start of vLLM, with a cold compilation, each boundary is found once and in order, and nothing
// of the minutes in which it served. The clock was eight hours ahead of UTC.
func TestStartupLog(t *testing.T) {
	type boundary struct {
		name lifecycle.Name
		at   string
		took time.Duration
	}
	near, err := time.Parse(time.RFC3339, "2026-08-05T00:45:00Z")
	assert.NoError(t, err)
	startup := dialect.NewStartup(dialect.Builtin())
	var got []boundary
	for _, path := range pages(t, "vllm-startup-*.log") {
		for line := range strings.Lines(string(read(t, path))) {
			m, ok := startup.Line(line)
			if !ok {
				continue
			}
			assert.Equal(t, "vllm", m.Engine)
			assert.NotEmpty(t, m.Copy)
			b := boundary{name: m.Name, took: m.Took}
			if !m.Stamp.IsZero() {
				// A log is read as it is written: what the last line told is near this one.
				at := m.Stamp.At(window.Instant(near.UnixNano()))
				near = time.Unix(0, int64(at)).UTC()
				b.at = near.Format(time.DateTime)
			}
			got = append(got, b)
		}
	}
	assert.Equal(t, []boundary{
		{lifecycle.EngineInitializing, "2026-08-05 00:41:37", 0},
		{lifecycle.WeightsStarted, "2026-08-05 00:41:53", 0},
		{lifecycle.WeightsFinished, "2026-08-05 00:42:30", 0},
		{lifecycle.CompileFinished, "2026-08-05 00:43:35", 63900 * time.Millisecond},
		{lifecycle.ProfileFinished, "2026-08-05 00:43:37", 1990 * time.Millisecond},
		{lifecycle.KVCacheFinished, "2026-08-05 00:43:56", 0},
		{lifecycle.GraphsFinished, "2026-08-05 00:46:16", 128 * time.Second},
		{lifecycle.WarmupFinished, "2026-08-05 00:50:34", 0},
		{lifecycle.EngineReady, "2026-08-05 00:50:39", 0},
		{lifecycle.EngineReady, "", 0}, // uvicorn writes no time
	}, got)
}
