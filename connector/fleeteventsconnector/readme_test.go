// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleeteventsconnector

import (
	"cmp"
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"golang.org/x/tools/txtar"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/judge/canary"
	"github.com/llmfleet/llmfleet/internal/scenariotest"
	"github.com/llmfleet/llmfleet/internal/settingstest"
	"github.com/llmfleet/llmfleet/internal/window"
)

var jsonBlock = regexp.MustCompile("(?s)```json\n(.*?)```")

func readReadme(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(readme)
}

// TestReadmeBlocks: every configuration of this connector in its README works.
func TestReadmeBlocks(t *testing.T) {
	settingstest.Shown[*Config](t, NewFactory(), "connectors", readReadme(t))
}

// TestReadmeTables: every setting and every event has a row.
func TestReadmeTables(t *testing.T) {
	readme := readReadme(t)
	conf := confmap.New()
	require.NoError(t, conf.Marshal(createDefaultConfig()))
	for key := range conf.ToStringMap() {
		assert.Contains(t, readme, "\n| `"+key+"` |")
	}
	assert.Contains(t, readme, "\n| `"+variantChange+"` |")
	for metric, f := range flags {
		if a, ok := f.(alarm); ok {
			assert.Equal(t, metric, a.metric)
			assert.Contains(t, readme, "\n| `"+metric+suffixOnset+"` | "+strings.ToUpper(a.severity.String())+" |")
			assert.Contains(t, readme, "\n| `"+metric+suffixClear+"` | INFO |")
		}
	}
	for v := range canary.VerdictCount {
		severity := map[canary.Verdict]string{canary.Fail: "WARN"}[v]
		assert.Contains(t, readme, "\n| `"+emit.CanaryVerdict+"."+v.String()+"` | "+cmp.Or(severity, "INFO")+" |")
	}
	assert.Contains(t, readme, "\n| `"+emit.CanaryVerdict+suffixEnd+"` | INFO |")
}

var quoted = regexp.MustCompile("(?m)(?:^> .*\n)+")

// TestReadmeSentences: the sentences that the README quotes are told in stories.
func TestReadmeSentences(t *testing.T) {
	var told strings.Builder
	for _, archive := range scenariotest.Archives(t) {
		told.Write(txtar.Format(archive))
	}
	quotes := quoted.FindAllString(readReadme(t), -1)
	require.Len(t, quotes, 2)
	for _, q := range quotes {
		sentence := strings.ReplaceAll(strings.TrimSpace(strings.TrimPrefix(q, "> ")), "\n> ", " ")
		assert.Contains(t, told.String(), "\n"+sentence+"\n")
	}
}

// TestReadmeRecord: the record that the README shows is what is told of an
// outlier at the first minute of 2000, five seconds later.
func TestReadmeRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, createDefaultConfig().(*Config))
		s.settings.BuildInfo.Version = "0.1.0"
		s.raise()
		w := emit.NewWriter(emit.Options{Component: "fleet_outlier", Instance: "gateway-0", Next: func(_ context.Context, md pmetric.Metrics) error {
			s.consume(md)
			return nil
		}})
		ttft := fleet.Label{Name: "signal", Value: "ttft"}
		p95 := fleet.Label{Name: "quantile", Value: "0.95"}
		figures := []struct {
			slot  emit.Slot
			value float64
		}{
			{w.Slot(emit.ReplicaOutlier), 1},
			{w.Slot(emit.ReplicaOutlierEvidence), 1.08},
			{w.Slot(emit.ReplicaOutlierCause, fleet.Label{Name: "cause", Value: "hardware"}), 1},
			{w.Slot(emit.ReplicaOutlierCause, fleet.Label{Name: "cause", Value: "routing"}), 0},
			{w.Slot(emit.ReplicaOutlierSignal, ttft), 1},
			{w.Slot(emit.ReplicaOutlierSignal, fleet.Label{Name: "signal", Value: "itl"}), 0},
			{w.Slot(emit.ReplicaLatency, ttft, p95), 1.91},
			{w.Slot(emit.ReplicaLatencyRatio, ttft, p95), 1.82},
			{w.Slot(emit.ReplicaObservations, ttft), 312},
			{w.Slot(emit.ReplicaRequests, fleet.Label{Name: "state", Value: "running"}), 24.5},
		}
		outliers := w.Slot(emit.FleetOutliers)
		at := time.Now().Add(time.Minute)
		time.Sleep(time.Minute + 5*time.Second)
		w.Begin(window.Instant(at.UnixNano()))
		keys := []fleet.Label{{Name: "namespace", Value: "prod"}, {Name: "model_name", Value: "qwen3-8b"}, {Name: "engine_name", Value: "vllm"}}
		w.About(t.Context(), append(keys[:3:3],
			fleet.Label{Name: "replica", Value: "0f7c"}, fleet.Label{Name: "pod", Value: "qwen-3"}, fleet.Label{Name: "engine_version", Value: "0.10.0"}))
		for _, f := range figures {
			w.Set(f.slot, f.value)
		}
		w.About(t.Context(), keys)
		w.Set(outliers, 1)
		require.NoError(t, w.End(t.Context()))
		s.shutdown()
		require.Len(t, s.told, 1)
		got, err := (&plog.JSONMarshaler{}).MarshalLogs(s.told[0])
		require.NoError(t, err)
		assert.JSONEq(t, jsonBlock.FindStringSubmatch(readReadme(t))[1], string(got))
	})
}
