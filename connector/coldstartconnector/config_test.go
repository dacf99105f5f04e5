// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstartconnector

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/settingstest"
)

// remedies is what a user is told of each file in testdata/config/invalid: the
// key, and what to write instead.
var remedies = map[string][]string{
	"unknown_key":           {"intervall: unknown key: use one of dialects, duration, forget_after, interval, max_age"},
	"unknown_duration_key":  {"duration.bound: unknown key: use one of bounds, exponential"},
	"interval_without_unit": {`interval: 30ns is under a second; a number without a unit is read as nanoseconds: write the unit, as in "30s"`},
	"wait_zero":             {"wait: must not be 0s: use a span of time of at least 1s"},
	"wait_long":             {`wait: 2h0m0s is not shorter than ttl (2h0m0s): use at most "1h0m0s"`},
	"ttl_negative":          {"ttl: -2h0m0s is negative: use a positive span of time"},
	"ttl_too_long":          {`ttl: 25h0m0s is too long`, `use at most "24h0m0s"`},
	"max_age_zero":          {"max_age: must not be 0s"},
	"max_pods_zero":         {"max_pods: 0 is out of range: use 1 to 200000"},
	"max_pods_too_many":     {"max_pods: 200001 is out of range: use 1 to 200000"},
	"max_models_too_many":   {"max_models: 1001 is out of range: use 1 to 1000"},
	"window_short":          {`window: 5s is shorter than interval (10s): use at least "10s"`},
	"forget_after_short":    {`forget_after: 30m0s is shorter than window (1h0m0s): use at least "1h0m0s"`},
	"bounds_none":           {"duration.bounds: there are 0: use 1 to 160 upper bounds of buckets, in seconds"},
	"bounds_fall":           {"duration.bounds: 5 does not follow 10: use numbers of seconds above 0 that ascend"},
	"bounds_zero":           {"duration.bounds: 0 does not follow 0"},
	"bounds_infinite":       {"duration.bounds: +Inf does not follow 1"},
	"metrics_unknown":       {`metrics: cold_start emits no metric "llmfleet.fleet.latency": use one of llmfleet.coldstart.duration,`},
	"dialect_missing":       {"dialects[0]", "use the path of a file that the collector can read"},
}

func TestInvalidConfig(t *testing.T) { settingstest.Refused[*Config](t, NewFactory(), remedies) }

func TestAllErrorsAtOnce(t *testing.T) {
	err := (&Config{Duration: DurationConfig{Bounds: []float64{math.NaN()}}}).Validate()
	for _, key := range []string{
		"interval", "wait", "ttl", "max_age", "window", "forget_after", "max_pods", "max_models", "duration.bounds: NaN does not follow",
	} {
		assert.ErrorContains(t, err, key)
	}
}

func TestEmptyBodyHasDocumentedDefaults(t *testing.T) {
	config, err := settingstest.Load[*Config](t, NewFactory(), "testdata/config/empty.yaml")
	require.NoError(t, err)
	assert.Equal(t, &Config{
		Interval: 10 * time.Second, Wait: 30 * time.Second, TTL: 2 * time.Hour, MaxAge: 10 * time.Minute, MaxPods: 20_000,
		Window: time.Hour, MaxModels: 100, ForgetAfter: 24 * time.Hour,
		Duration: DurationConfig{Bounds: []float64{
			1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 420, 600, 900, 1200, 1800, 2700, 3600, 5400, 7200,
		}},
	}, config)
}

func TestEverySetting(t *testing.T) {
	config, err := settingstest.Load[*Config](t, NewFactory(), "testdata/config/full.yaml")
	require.NoError(t, err)
	storage := component.MustNewIDWithName("file_storage", "starts")
	assert.Equal(t, &Config{
		Interval: 5 * time.Second, Wait: time.Minute, TTL: 4 * time.Hour, MaxAge: 5 * time.Minute, MaxPods: 1000,
		Window: 30 * time.Minute, MaxModels: 10, ForgetAfter: 48 * time.Hour,
		Duration: DurationConfig{Bounds: []float64{30, 300, 3000}, Exponential: true},
		Storage:  &storage,
		Metrics:  emit.Switches{"llmfleet.coldstart.critical_ratio": {Enabled: false}},
	}, config)
}

// TestLimits: each is allowed.
func TestLimits(t *testing.T) {
	config := createDefaultConfig().(*Config)
	config.MaxPods, config.MaxModels, config.TTL = 200_000, 1000, 24*time.Hour
	config.Interval, config.Window, config.ForgetAfter = time.Second, 1000*time.Second, 1000*time.Second
	require.NoError(t, config.Validate())
	config.MaxPods, config.MaxModels = 1, 1
	config.Interval, config.Window, config.ForgetAfter = time.Second, time.Second, time.Second
	config.Wait, config.TTL, config.MaxAge = time.Second, 2*time.Second, time.Second
	require.NoError(t, config.Validate())
}
