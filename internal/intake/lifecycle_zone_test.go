// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// TestZones: by how far a clock without a zone is ahead of UTC as it is read.
func TestZones(t *testing.T) {
	for ahead, want := range map[time.Duration]time.Duration{
		0:                              0,
		-time.Second:                   0,
		30 * time.Second:               0, // the clocks are off
		2*time.Hour - time.Second:      2 * time.Hour,
		2 * time.Hour:                  2 * time.Hour,
		110 * time.Minute:              2 * time.Hour, // read ten minutes late
		330*time.Minute - time.Second:  330 * time.Minute,
		-7*time.Hour - 3*time.Second:   -7 * time.Hour,
		-210*time.Minute - time.Second: -210 * time.Minute,
		-20 * time.Minute:              0, // UTC, read late: no zone is so far behind
		-75 * time.Minute:              0,
		-30 * time.Hour:                0,
		40 * time.Hour:                 0,
	} {
		assert.Equal(t, want, zoneOf(ahead), ahead.String())
	}
}

// TestLinesReadLate: a file is read from its beginning long after it was written:
// its lines stay as far apart as they are.
func TestLinesReadLate(t *testing.T) {
	for name, tc := range map[string]struct{ observed, loaded, captured string }{
		"in UTC":              {"2026-08-05T10:05:00Z", "2026-08-05T08:20:30Z", "2026-08-05T08:46:16Z"},
		"live, two hours off": {"2026-08-05T06:20:31Z", "2026-08-05T06:20:30Z", "2026-08-05T06:46:16Z"},
		"over new year":       {"2027-01-01T00:10:00Z", "2026-08-05T08:20:30Z", "2026-08-05T08:46:16Z"},
	} {
		t.Run(name, func(t *testing.T) {
			ld, add := logsOf(t, map[string]any{"k8s.pod.uid": "uid-1", "k8s.container.name": "engine"})
			for _, line := range []string{
				"(EngineCore pid=7) INFO 08-05 08:20:30 [gpu_model_runner.py:1] Model loading took 27.5 GiB memory and 20.1 seconds", graphsLine,
			} {
				record := add()
				record.SetObservedTimestamp(pcommon.Timestamp(when(t, tc.observed)))
				record.Body().SetStr(line)
				if name == "live, two hours off" && line == graphsLine {
					record.SetObservedTimestamp(pcommon.Timestamp(when(t, "2026-08-05T06:46:17Z")))
				}
			}
			facts := readLogs(lifecycleReader(), ld, 1)
			require.Len(t, facts, 2)
			assert.Equal(t, when(t, tc.loaded), facts[0].At)
			assert.Equal(t, when(t, tc.captured), facts[1].At)
		})
	}
}
