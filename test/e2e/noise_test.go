// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/test/binarytest"
	"github.com/llmfleet/llmfleet/test/drawntest"
)

const noiseConfig = `
receivers:
  otlp: {protocols: {http: {endpoint: "{{ .OTLP }}"}}}
processors:
  fleet_outlier:
    interval: 1s
    window: 10s
    lateness: 1s
    alarm: {pane: 2s, warmup: 20s, clear_after: 10s}
    storage: file_storage
connectors:
  fleet_events: {storage: file_storage}
exporters:
  file/metrics: {path: "{{ .Folder }}/metrics", append: true, flush_interval: 100ms}
  file/events: {path: "{{ .Folder }}/events", append: true, flush_interval: 100ms}
extensions:
  file_storage: {directory: "{{ .Folder }}/storage", create_directory: true}
service:
  telemetry: {metrics: {level: none}}
  extensions: [file_storage]
  pipelines:
    metrics: {receivers: [otlp], processors: [fleet_outlier], exporters: [file/metrics, fleet_events]}
    logs/events: {receivers: [fleet_events], exporters: [file/events]}
`

const (
	noiseSeed     = 11
	noiseReplicas = 20
	noisePages    = 80 // one a second
	restartAfter  = 44 // pages
)

// slowFrom are the pages from which replicas are slow.
var slowFrom = map[int]int{3: 24, 7: 32, 11: 58}

// noisy is a fleet in which three replicas get slow: two of them are when the collector is restarted, of which one recovers
// later, and one gets slow after it.
func noisy(t *testing.T) *drawntest.Fleet {
	t.Helper()
	plan := drawntest.Plan(noiseReplicas, 60, 0.05)
	plan.Slowdowns = []fleetsim.Slowdown{
		{Replica: 3, From: slowFrom[3], To: 48, Factor: 2.2},
		{Replica: 7, From: slowFrom[7], To: math.MaxInt, Factor: 2.5},
		{Replica: 11, From: slowFrom[11], To: math.MaxInt, Factor: 2.5},
	}
	fleet, err := drawntest.New(plan, noiseSeed)
	require.NoError(t, err)
	return fleet
}

// TestNoise: what the built collector says of a noisy fleet, and when, is what the judgement by itself says of the same
// pages; each onset and each clear is told as one event; a restart in between changes nothing of that.
func TestNoise(t *testing.T) {
	t.Parallel()
	otlp, folder := binarytest.LoopbackAddress(binarytest.FreePort(t)), t.TempDir()
	config := binarytest.WriteFile(t, "config.yaml", render(t, noiseConfig, map[string]any{"OTLP": otlp, "Folder": folder}))
	start := func() *binarytest.Process {
		process := binarytest.Start(t, binarytest.Collector(t), "--config="+config)
		require.Eventually(t, func() bool {
			connection, err := net.Dial("tcp", otlp)
			return err == nil && connection.Close() == nil
		}, time.Minute, 50*time.Millisecond, "the collector does not listen")
		return process
	}
	collector := start()
	fleet, bare := noisy(t), bareJudgement{lateness: time.Second}
	first := time.Now().Truncate(time.Second).Add(1500 * time.Millisecond)
	var resumed time.Time
	for page := range noisePages {
		fleet.Next()
		at := first.Add(time.Duration(page) * time.Second)
		if at.Before(resumed) {
			continue // nobody was there to read it
		}
		time.Sleep(time.Until(at))
		pages := pagesOf(fleet, at)
		sendMetrics(t, otlp, pages)
		bare.read(pages)
		if page == restartAfter {
			bare.stop()
			collector.Stop(t)
			collector, resumed = start(), time.Now()
		}
	}
	bare.stop()
	collector.Stop(t)

	metrics := file{filepath.Join(folder, "metrics")}
	turns, evidence := saidOf(t, metrics)
	assertNoise(t, first, turns)
	expected, gathered := bare.judge(t, evaluations(t, metrics))
	assert.Equal(t, expected, turns)
	assert.Len(t, evidence, len(gathered))
	for key, want := range gathered {
		assert.InDelta(t, want, evidence[key], 1e-9, "evidence of %v", key)
	}
	assertTold(t, file{filepath.Join(folder, "events")}, turns, evidence)
}

// pagesOf are the pages of all replicas at one time.
func pagesOf(fleet *drawntest.Fleet, at time.Time) pmetric.Metrics {
	pages := pmetric.NewMetrics()
	for replica := range noiseReplicas {
		page := drawntest.Page()
		fleet.Tell(replica, page)
		resource, pod := page.ResourceMetrics().At(0).Resource().Attributes(), podOf(replica)
		resource.PutStr("k8s.namespace.name", "serving")
		resource.PutStr("k8s.pod.name", pod)
		describe := func(attributes pcommon.Map) {
			attributes.PutStr("model_name", "test/chat-8b")
			attributes.PutStr("namespace", "serving")
			attributes.PutStr("pod", pod)
		}
		for _, m := range page.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			switch m.Type() {
			case pmetric.MetricTypeHistogram:
				for _, p := range m.Histogram().DataPoints().All() {
					p.SetTimestamp(pcommon.NewTimestampFromTime(at))
					describe(p.Attributes())
				}
			default:
				for _, p := range m.Sum().DataPoints().All() {
					p.SetTimestamp(pcommon.NewTimestampFromTime(at))
					describe(p.Attributes())
				}
			}
		}
		page.ResourceMetrics().MoveAndAppendTo(pages.ResourceMetrics())
	}
	return pages
}

func podOf(replica int) string { return fmt.Sprintf("drawn-%d", replica) }

func replicaOf(replica int) string { return "serving/" + podOf(replica) }

// assertNoise: the replicas that got slow were found, within ten panes of the alarm, and nobody else was; the one that
// recovered was cleared.
func assertNoise(t *testing.T, first time.Time, turns []turn) {
	t.Helper()
	onsets, cleared := map[string]time.Time{}, []string{}
	for _, turned := range turns {
		if turned.on {
			require.NotContains(t, onsets, turned.replica, "flagged twice")
			onsets[turned.replica] = turned.at
		} else {
			cleared = append(cleared, turned.replica)
		}
	}
	require.Len(t, onsets, len(slowFrom))
	for replica, from := range slowFrom {
		delay := onsets[replicaOf(replica)].Sub(first.Add(time.Duration(from) * time.Second))
		t.Logf("%s was found after %s", replicaOf(replica), delay)
		assert.Positive(t, delay, replica)
		assert.LessOrEqual(t, delay, 10*2*time.Second, replica)
	}
	assert.Equal(t, []string{replicaOf(3)}, cleared)
}
