// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// The race detector makes minutes of this hour. It sees the same goroutines in
// the processor's own tests.
//go:build !race

package main_test

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.yaml.in/yaml/v3"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/judge/outlier"
	"github.com/llmfleet/llmfleet/internal/scrapetest"
	"github.com/llmfleet/llmfleet/processor/fleetoutlierprocessor"
)

// scrapeInterval is longer than the demo's: it saves time, and two scrapes make
// a pane of the alarm.
const scrapeInterval = 2500 * time.Millisecond

// TestOnlyTheSlowReplicaIsFlaggedInAnHour plays the demo's fleets and settings
// for an hour of simulated time.
func TestOnlyTheSlowReplicaIsFlaggedInAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scenario, err := fleetsim.Load("fleet.yaml")
		require.NoError(t, err)
		start := time.Now()
		sim, err := fleetsim.New(scenario, start)
		require.NoError(t, err)
		config, told, pages := settings(t), newVerdicts(), pageReader{}
		factory := fleetoutlierprocessor.NewFactory()
		p, err := factory.CreateMetrics(t.Context(), processortest.NewNopSettings(factory.Type()), config, told)
		require.NoError(t, err)
		require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
		for at := scrapeInterval; at <= time.Hour; at += scrapeInterval {
			time.Sleep(scrapeInterval)
			sim.AdvanceTo(at)
			for _, target := range sim.Targets() {
				require.NoError(t, p.ConsumeMetrics(t.Context(), pages.scrape(t, target)))
			}
		}
		require.NoError(t, p.Shutdown(t.Context()))

		assert.Len(t, told.warmedUp, len(sim.Engines()), "all are judged")
		require.Equal(t, []string{"qwen-3"}, slices.Sorted(maps.Keys(told.flagged)))
		assert.LessOrEqual(t, told.flagged["qwen-3"].Sub(start), config.Alarm.Warmup+10*config.Alarm.Pane)
		assert.Equal(t, map[string]bool{"hardware": true}, told.causes)
		assert.Empty(t, told.stuck)
	})
}

// settings are those of fleet_outlier in config.yaml.
func settings(t *testing.T) *fleetoutlierprocessor.Config {
	t.Helper()
	text, err := os.ReadFile("config.yaml")
	require.NoError(t, err)
	var raw map[string]any
	require.NoError(t, yaml.Unmarshal(text, &raw))
	section, err := confmap.NewFromStringMap(raw).Sub("processors::fleet_outlier")
	require.NoError(t, err)
	config := fleetoutlierprocessor.NewFactory().CreateDefaultConfig().(*fleetoutlierprocessor.Config)
	require.NoError(t, section.Unmarshal(config))
	require.NoError(t, config.Validate())
	return config
}

// verdicts are what came out of the processor, by pod.
type verdicts struct {
	warmedUp, stuck map[string]bool
	flagged         map[string]time.Time // for the first time
	causes          map[string]bool
}

func newVerdicts() *verdicts {
	return &verdicts{warmedUp: map[string]bool{}, stuck: map[string]bool{}, flagged: map[string]time.Time{}, causes: map[string]bool{}}
}

func (*verdicts) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (v *verdicts) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if strings.HasPrefix(m.Name(), "llmfleet.replica.") && m.Type() == pmetric.MetricTypeGauge {
					for _, point := range m.Gauge().DataPoints().All() {
						v.note(m.Name(), point)
					}
				}
			}
		}
	}
	return nil
}

func (v *verdicts) note(metric string, point pmetric.NumberDataPoint) {
	pod, on := attribute(point, "pod"), point.DoubleValue() == 1
	switch metric {
	case emit.ReplicaOutlier:
		v.warmedUp[pod] = true
		if _, known := v.flagged[pod]; on && !known {
			v.flagged[pod] = point.Timestamp().AsTime()
		}
	case emit.ReplicaOutlierCause:
		if on {
			v.causes[attribute(point, emit.AttributeCause)] = true
		}
	case emit.ReplicaStuck:
		if on {
			v.stuck[pod] = true
		}
	}
}

func attribute(point pmetric.NumberDataPoint, key string) string {
	value, ok := point.Attributes().Get(key)
	if !ok {
		value = pcommon.NewValueEmpty()
	}
	return value.AsString()
}

// pageReader leaves of pages what is judged, by name: the rest, most of it,
// would only take time to be parsed.
type pageReader map[string]bool

func (r pageReader) scrape(t *testing.T, target *fleetsim.Target) pmetric.Metrics {
	t.Helper()
	page, _ := target.AppendPage(nil)
	var kept strings.Builder
	for line := range strings.Lines(string(page)) {
		family, isType := strings.CutPrefix(line, "# TYPE ")
		if (isType || !strings.HasPrefix(line, "#")) && r.wants(family[:strings.IndexAny(family, "{ ")]) {
			kept.WriteString(line)
		}
	}
	md, err := scrapetest.Metrics(kept.String(), scrapetest.Target{Instance: target.Name(), At: time.Now()})
	require.NoError(t, err)
	resource := md.ResourceMetrics().At(0).Resource().Attributes()
	for key, value := range target.Labels() {
		resource.PutStr(key, value)
	}
	return md
}

func (r pageReader) wants(family string) bool {
	if wanted, known := r[family]; known {
		return wanted
	}
	base := family
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		base = strings.TrimSuffix(base, suffix)
	}
	r[family] = slices.ContainsFunc(dialect.Builtin().Match(base), func(m dialect.Match) bool {
		return m.Entry.Dialect.Component == dialect.GPU || slices.Contains(judged, m.Entry.Signal)
	})
	return r[family]
}

var judged = append([]fleet.Signal{
	fleet.TTFT, fleet.ITL, fleet.Errors, fleet.Finished, fleet.Waiting, fleet.Running, fleet.GenerationTokens,
}, outlier.CauseSignals...)
