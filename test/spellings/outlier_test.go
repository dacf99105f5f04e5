// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package spellings

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/llmfleet/llmfleet/processor/fleetoutlierprocessor"
)

// epoch is when the clock of a testing/synctest bubble begins.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Time of all tests: windows of three panes, two scrapes a pane.
const (
	interval = 10 * time.Second
	window   = 3 * interval
	pace     = 5 * time.Second
	offset   = 2 * time.Second // of the first scrape
	length   = 7 * interval    // of a whole test: four windows that nobody is warming in
	lateness = 5 * time.Second
)

// delivery is what the receiver hands on at a time since the epoch.
type delivery struct {
	at      time.Duration
	metrics pmetric.Metrics
}

// scrape calls page for every scrape of one target, in order of time, and returns what the receiver makes of the pages,
// which are plain text.
func (s source) scrape(t *testing.T, page func(at time.Duration) []byte) []delivery {
	t.Helper()
	var all []delivery
	for at := offset; at < length; at += pace {
		all = append(all, delivery{at, s.receive(t, page(at), plainText, epoch.Add(at))})
	}
	return all
}

// findings are what is derived: each series with its value at each evaluation. A series that ends has the value NaN.
type findings struct {
	points map[point]float64
	// told is what fleet_outlier counts of itself, by name and labels.
	told map[string]int64
}

type point struct {
	at     time.Duration
	metric string
	labels string // name=value, sorted
}

func (p point) String() string { return fmt.Sprintf("%s %s{%s}", p.at, p.metric, p.labels) }

// outlier sends deliveries through fleet_outlier, whose own clock ticks. Settings go beside those of time.
func outlier(t *testing.T, settings map[string]any, deliveries ...[]delivery) *findings {
	t.Helper()
	all := slices.Concat(deliveries...)
	slices.SortStableFunc(all, func(a, b delivery) int { return int(a.at - b.at) })
	f := &findings{points: make(map[point]float64)}
	synctest.Test(t, func(t *testing.T) {
		factory := fleetoutlierprocessor.NewFactory()
		config := factory.CreateDefaultConfig()
		merged := map[string]any{"interval": interval.String(), "window": window.String(), "lateness": lateness.String()}
		maps.Copy(merged, settings)
		require.NoError(t, confmap.NewFromStringMap(merged).Unmarshal(config))
		telemetry := componenttest.NewTelemetry()
		defer func() { require.NoError(t, telemetry.Shutdown(context.Background())) }()
		set := processortest.NewNopSettings(factory.Type())
		set.TelemetrySettings = telemetry.NewTelemetrySettings()
		next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
			f.keep(md)
			return nil
		})
		require.NoError(t, err)
		processor, err := factory.CreateMetrics(t.Context(), set, config, next)
		require.NoError(t, err)
		require.NoError(t, processor.Start(t.Context(), componenttest.NewNopHost()))
		for _, d := range all {
			time.Sleep(time.Until(epoch.Add(d.at)))
			require.NoError(t, processor.ConsumeMetrics(t.Context(), d.metrics))
		}
		time.Sleep(time.Until(epoch.Add(length + lateness + time.Second)))
		synctest.Wait()
		f.told = counts(t, telemetry)
		require.NoError(t, processor.Shutdown(t.Context()))
	})
	return f
}

// keep notes what is derived; pages that pass by are not.
func (f *findings) keep(md pmetric.Metrics) {
	for _, rm := range md.ResourceMetrics().All() {
		if name, _ := rm.Resource().Attributes().Get("service.name"); name.AsString() != "llmfleet" {
			continue
		}
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				for _, p := range m.Gauge().DataPoints().All() {
					value := p.DoubleValue()
					if p.Flags().NoRecordedValue() {
						value = math.NaN()
					}
					f.points[point{p.Timestamp().AsTime().Sub(epoch), m.Name(), text(p.Attributes())}] = value
				}
			}
		}
	}
}

// text writes labels. Replicas go by their pods' names, wherever they run: behind Ray's agent, which is a pod of its own,
// too.
func text(attributes pcommon.Map) string {
	var all []string
	for name, value := range attributes.All() {
		if name != "pod" {
			all = append(all, name+"="+strings.TrimPrefix(value.AsString(), "default/"))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

// counts reads self-telemetry.
func counts(t *testing.T, telemetry *componenttest.Telemetry) map[string]int64 {
	t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(t, telemetry.Reader.Collect(t.Context(), &rm))
	told := make(map[string]int64)
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			var points []metricdata.DataPoint[int64]
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				points = data.DataPoints
			case metricdata.Gauge[int64]:
				points = data.DataPoints
			}
			for _, p := range points {
				name := strings.TrimPrefix(m.Name, "otelcol_processor_fleet_outlier_")
				for _, kv := range p.Attributes.ToSlice() {
					name += " " + string(kv.Key) + "=" + kv.Value.AsString()
				}
				told[name] = p.Value
			}
		}
	}
	return told
}

// tolerance is how far equal values may be apart, relative to them: the order of additions differs.
const tolerance = 1e-9

// differences lists how others differ from f, nil if they do not.
func (f *findings) differences(other *findings) []string {
	var all []string
	for p, want := range f.points {
		got, ok := other.points[p]
		switch {
		case !ok:
			all = append(all, fmt.Sprintf("%s is missing, was %v", p, want))
		case math.IsNaN(got) != math.IsNaN(want), math.Abs(got-want) > tolerance*math.Abs(want):
			all = append(all, fmt.Sprintf("%s is %v, was %v", p, got, want))
		}
	}
	for p, got := range other.points {
		if _, ok := f.points[p]; !ok {
			all = append(all, fmt.Sprintf("%s is new, %v", p, got))
		}
	}
	slices.Sort(all)
	return all
}

// withheld are the counts of figures that were not given, by reason.
func (f *findings) withheld() map[string]int64 { return f.counted("withheld reason=") }

// ignored are the counts of points that were not used, by reason.
func (f *findings) ignored() map[string]int64 { return f.counted("ignored reason=") }

func (f *findings) counted(prefix string) map[string]int64 {
	all := make(map[string]int64)
	for name, n := range f.told {
		if reason, ok := strings.CutPrefix(name, prefix); ok && n > 0 {
			all[reason] = n
		}
	}
	return all
}

// where returns the points that match, in no order.
func (f *findings) where(match func(p point) bool) map[point]float64 {
	found := maps.Clone(f.points)
	maps.DeleteFunc(found, func(p point, _ float64) bool { return !match(p) })
	return found
}

// of is a match for one metric whose labels have all these texts.
func of(metric string, labels ...string) func(point) bool {
	return func(p point) bool {
		return p.metric == metric && !slices.ContainsFunc(labels, func(l string) bool {
			return !slices.Contains(strings.Split(p.labels, ","), l)
		})
	}
}
