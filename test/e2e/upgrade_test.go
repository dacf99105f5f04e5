// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/binarytest"
)

// upgradeConfig has everything in the proportions of the defaults, two seconds for thirty; and a lateness as long as may
// be, so that one process ends and the next begins within it.
const upgradeConfig = `
receivers: {otlp: {protocols: {grpc: {endpoint: "{{ .Listen }}"}}}}
processors:
  fleet_identity: {interval: 2s}
  fleet_outlier:
    interval: 2s
    window: 20s
    lateness: 2s
    alarm: {pane: 4s, warmup: 20s, clear_after: 10s}
    storage: file_storage
connectors:
  fleet_events: {storage: file_storage}
exporters:
  file/metrics: {path: "{{ .Folder }}/metrics-{{ .Process }}", flush_interval: 100ms}
  file/events: {path: "{{ .Folder }}/events-{{ .Process }}", flush_interval: 100ms}
extensions:
  file_storage: {directory: "{{ .Folder }}/storage", create_directory: true}
service:
  telemetry: {metrics: {level: none}}
  extensions: [file_storage]
  pipelines:
    metrics: {receivers: [otlp], processors: [fleet_identity, fleet_outlier], exporters: [file/metrics, fleet_events]}
    logs/events: {receivers: [fleet_events], exporters: [file/events]}
`

const (
	upgradeInterval = 2 * time.Second
	flag            = "llmfleet.replica.outlier"
)

// TestUpgrade: one process follows another over one storage while a replica is flagged. The flag goes on after two
// intervals, or those that nobody ran for, no series has two values at one time, and nothing is told again.
func TestUpgrade(t *testing.T) {
	targets := startFleet(t, calm)
	for name, end := range map[string]func(*binarytest.Process, *testing.T){
		"stopped": (*binarytest.Process).Stop,
		"killed":  (*binarytest.Process).Kill,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := &upgrade{folder: t.TempDir(), address: freeAddress(t)}
			startAgent(t, targets, time.Second, u.address)
			old := u.start(t)
			require.Eventually(t, func() bool { return len(u.events(t)) > 0 }, 2*time.Minute, 200*time.Millisecond, "the slow replica is not found")
			// Right after the end of a pane: both processes run before its lateness has passed.
			time.Sleep(time.Until(time.Now().Truncate(upgradeInterval).Add(2*upgradeInterval + 200*time.Millisecond)))
			end(old, t)
			gone := time.Now()
			u.start(t)
			resumed := func() []numberOut { return u.metrics(t, 1, flag, "pod", slowReplica) }
			require.Eventually(t, func() bool { return len(resumed()) >= 12 }, time.Minute, 200*time.Millisecond, "the flag does not come back")

			before := u.metrics(t, 0, flag, "pod", slowReplica)
			last, first := before[len(before)-1].at, resumed()[0].at
			t.Logf("the flag paused from %s before the end of the first process to %s after it", gone.Sub(last), first.Sub(gone))
			assert.LessOrEqual(t, first.Sub(last), 2*upgradeInterval+u.listens.Sub(gone).Truncate(upgradeInterval))
			for _, p := range resumed() {
				assert.EqualValues(t, 1, p.value, "the flag at %s", p.at)
			}
			u.assertOneWriter(t)
			assert.Equal(t, []string{flag + ".onset"}, u.events(t), "told once")
		})
	}
}

// upgrade is processes that follow each other over one storage.
type upgrade struct {
	folder, address string
	processes       int
	listens         time.Time // the newest, since when
}

func (u *upgrade) start(t *testing.T) *binarytest.Process {
	t.Helper()
	config := render(t, upgradeConfig, map[string]any{"Listen": u.address, "Folder": u.folder, "Process": u.processes})
	u.processes++
	process := binarytest.Start(t, binarytest.Collector(t), "--config="+binarytest.WriteFile(t, "config.yaml", config))
	awaitListening(t, u.address)
	u.listens = time.Now()
	return process
}

// metrics are the points of one metric that a process wrote.
func (u *upgrade) metrics(t *testing.T, process int, metric string, attributes ...string) []numberOut {
	t.Helper()
	return file{filepath.Join(u.folder, fmt.Sprintf("metrics-%d", process))}.numbers(t, metric, attributes...)
}

// events are the names of all that was told of the slow replica, or anyone.
func (u *upgrade) events(t *testing.T) (names []string) {
	t.Helper()
	for process := range u.processes {
		for _, e := range (file{filepath.Join(u.folder, fmt.Sprintf("events-%d", process))}).events(t) {
			names = append(names, e.name)
		}
	}
	return names
}

// assertOneWriter: no two processes wrote a value of one series at one time.
func (u *upgrade) assertOneWriter(t *testing.T) {
	t.Helper()
	seen := map[string]int{}
	for process := range u.processes {
		for _, p := range (file{filepath.Join(u.folder, fmt.Sprintf("metrics-%d", process))}).metrics(t) {
			key := fmt.Sprint(p.metric, p.attributes, p.at.UnixNano())
			if former, told := seen[key]; told && former != process {
				assert.Fail(t, "two processes wrote one point", "%s %v at %s", p.metric, p.attributes, p.at)
			}
			seen[key] = process
		}
	}
	require.Greater(t, len(seen), 100)
}
