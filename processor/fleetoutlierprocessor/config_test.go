// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
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
	"unknown_key":                    {"windw", "use one of", "window"},
	"unknown_key_in_override":        {"overrides[0]", "quantile", "use one of", "min_observations"},
	"unknown_key_in_metric":          {"llmfleet.replica.latency", "enable", "use one of", "enabled"},
	"window_without_unit":            {`window: 300ns is under a second; a number without a unit is read as nanoseconds: write the unit, as in "300s"`},
	"window_zero":                    {`window: must not be 0s: use a span of time of at least 1s, as in "30s"`},
	"window_negative":                {`window: -5s is negative: use a positive span of time, as in "5s"`},
	"window_not_a_multiple":          {`window: 1m40s is not a multiple of interval (30s): use "1m30s" or "2m0s"`},
	"window_shorter_than_interval":   {`window: 10s is shorter than interval (30s): use "30s" or a multiple of it, or a shorter interval`},
	"override_changes_nothing":       {"overrides[0]: changes nothing: use window, compare_to, min_observations or min_replicas"},
	"window_with_too_many_panes":     {"window: 24h0m0s has 2880 intervals of 30s, more than 720: use a longer interval or a shorter window"},
	"interval_without_unit":          {`interval: 30ns is under a second; a number without a unit is read as nanoseconds: write the unit, as in "30s"`},
	"interval_zero":                  {`interval: must not be 0s: use a span of time of at least 1s, as in "30s"`},
	"interval_negative":              {`interval: -5s is negative: use a positive span of time, as in "5s"`},
	"interval_too_long":              {`interval: 2562047h0m0s is too long: use at most "1h0m0s"`},
	"lateness_zero":                  {`lateness: must not be 0s: use a span of time of at least 1s`},
	"lateness_longer_than_interval":  {"lateness: 31s is longer than interval (30s): use at most the interval"},
	"quantile_above_one":             {"quantiles: 1.5 is not between 0 and 1: use a share, as in 0.95"},
	"quantile_one":                   {"quantiles: 1 is not between 0 and 1: use a share, as in 0.95"},
	"quantile_zero":                  {"quantiles: 0 is not between 0 and 1: use a share, as in 0.95"},
	"quantile_nan":                   {"quantiles: NaN is not between 0 and 1: use a share, as in 0.95"},
	"quantile_twice":                 {"quantiles: 0.5 is there twice: remove one"},
	"quantiles_empty":                {"quantiles: there are none: use one or more, as in [0.5, 0.95]"},
	"signal_unknown":                 {`signals: unknown latency signal "ttfb": use ttft, itl, tpot, e2e or queue_time`},
	"signal_no_latency":              {`signals: unknown latency signal "waiting": use ttft, itl, tpot, e2e or queue_time`},
	"signal_twice":                   {"signals: ttft is there twice: remove one"},
	"signals_empty":                  {"signals: there are none: use one or more, as in [ttft, itl]"},
	"compare_to_unknown":             {`compare_to: unknown baseline "mode": use "peers", "fleet" or "median"`},
	"group_by_empty":                 {"group_by: there are no keys, so everything would be one fleet: use at least [model_name]"},
	"group_by_taken":                 {`group_by: "signal" cannot be a key, derived points use it otherwise: use attributes that a fleet has in common`},
	"group_by_instance":              {`group_by: "instance" cannot be a key`, "use attributes that a fleet has in common"},
	"group_by_blank":                 {`group_by: "" is no name of a label: use letters`},
	"group_by_twice":                 {"group_by: model_name is there twice: remove one"},
	"min_observations_negative":      {"min_observations: -1 is negative: use 1 or more, or leave it out for ceil(3/(1-q))"},
	"override_min_observations":      {"overrides[0].min_observations: -2 is negative: use 1 or more"},
	"min_replicas_zero":              {"min_replicas: 0 is too few: use 1 or more"},
	"max_replicas_zero":              {"max_replicas: 0 is out of range: use 1 to 1000000"},
	"max_replicas_overflows":         {"max_replicas: 9223372036854775807 is out of range: use 1 to 1000000"},
	"group_by_reserved":              {`group_by: "__name__" is no name of a label: use letters, digits, underscores and dots`},
	"group_by_same_label":            {"group_by: model_name is there twice: remove one"},
	"departed_after_zero":            {`departed_after: must not be 0s: use a span of time of at least 1s, as in "30s"`},
	"departed_after_without_unit":    {`departed_after: 90ns is under a second; a number without a unit is read as nanoseconds: write the unit, as in "90s"`},
	"override_without_match":         {"overrides[0].match: there is none: name the fleets, as in {model_name: llama}"},
	"override_match_no_key":          {"overrides[1].match: zone is no key of a fleet: use one of group_by (model_name, role)"},
	"override_window_not_a_multiple": {`overrides[0].window: 45s is not a multiple of interval (30s): use "30s" or "1m0s"`},
	"override_window_without_unit":   {`overrides[0].window: 60ns is under a second`, `as in "60s"`},
	"override_window_zero":           {`overrides[0].window: must not be 0s`, "use a span of time of at least 1s"},
	"override_compare_to_unknown":    {`overrides[0].compare_to: unknown baseline "mean": use "peers", "fleet" or "median"`},
	"override_min_replicas_negative": {"overrides[0].min_replicas: -1 is too few: use 1 or more"},
	"metric_unknown":                 {`metrics: fleet_outlier emits no metric "llmfleet.replica.latencies": use one of llmfleet.replica.latency`},
	"unknown_key_in_alarm":           {"alarm.for: unknown key: use one of clear_after, false_alarms_per_week, pane, signals, tolerance, warmup"},
	"alarm_pane_without_unit":        {`alarm.pane: 60ns is under a second; a number without a unit is read as nanoseconds: write the unit, as in "60s"`},
	"alarm_clear_after_zero":         {`alarm.clear_after: must not be 0s: use a span of time of at least 1s`},
	"alarm_warmup_negative":          {`alarm.warmup: -1h0m0s is negative: use a positive span of time, as in "1h0m0s"`},
	"alarm_budget_zero":              {"alarm.false_alarms_per_week: 0 is out of range: use more than 0 and at most 10000, as in 1, or `alarm: null` for no alarm"},
	"alarm_budget_negative":          {"alarm.false_alarms_per_week: -1 is out of range", "or `alarm: null` for no alarm"},
	"alarm_budget_too_large":         {"alarm.false_alarms_per_week: 1e+09 is out of range", "at most 10000"},
	"alarm_tolerance_nan":            {"alarm.tolerance: NaN is out of range: use 1.1 to 10 times slower, as in 1.25"},
	"alarm_tolerance_infinite":       {"alarm.tolerance: +Inf is out of range: use 1.1 to 10 times slower, as in 1.25"},
	"alarm_tolerance_too_small":      {"alarm.tolerance: 1.05 is out of range: use 1.1 to 10 times slower, as in 1.25"},
	"alarm_signal_unknown":           {`alarm.signals: unknown latency signal "errors": use ttft, itl, tpot, e2e or queue_time`},
	"alarm_signal_twice":             {"alarm.signals: itl is there twice: remove one"},
	"alarm_signals_empty":            {"alarm.signals: there are none: use one or more, as in [ttft, itl]"},
	"storage_no_name":                {"storage", "id must not be empty"},
}

func TestInvalidConfig(t *testing.T) { settingstest.Refused[*Config](t, NewFactory(), remedies) }

func TestAllErrorsAtOnce(t *testing.T) {
	config := createDefaultConfig().(*Config)
	config.Quantiles = []float64{1.5, -1}
	config.MinReplicas = 0
	err := config.Validate()
	for _, part := range []string{"1.5", "-1", "min_replicas"} {
		assert.ErrorContains(t, err, part)
	}
}

func TestEmptyBodyHasDocumentedDefaults(t *testing.T) {
	config, err := settingstest.Load[*Config](t, NewFactory(), "testdata/config/empty.yaml")
	require.NoError(t, err)
	assert.Equal(t, &Config{
		Interval:    30 * time.Second,
		Window:      5 * time.Minute,
		Lateness:    5 * time.Second,
		Quantiles:   []float64{0.5, 0.95},
		Signals:     []string{"ttft", "itl"},
		CompareTo:   "peers",
		GroupBy:     []string{"cluster", "namespace", "model_name", "role", "engine_name", "gpu_model"},
		MinReplicas: 2,
		MaxReplicas: 20_000,
		Alarm: &AlarmConfig{
			FalseAlarmsPerWeek: 1,
			Tolerance:          1.25,
			Signals:            []string{"ttft", "itl"},
			Pane:               time.Minute,
			ClearAfter:         10 * time.Minute,
			Warmup:             time.Hour,
		},
	}, config)
}

func TestEverySetting(t *testing.T) {
	config, err := settingstest.Load[*Config](t, NewFactory(), "testdata/config/full.yaml")
	require.NoError(t, err)
	departedAfter, window := 90*time.Second, 10*time.Minute
	storage := component.MustNewIDWithName("file_storage", "evidence")
	assert.Equal(t, &Config{
		Interval:        time.Minute,
		Window:          15 * time.Minute,
		Lateness:        10 * time.Second,
		Quantiles:       []float64{0.9},
		Signals:         []string{"ttft", "itl", "tpot", "e2e", "queue_time"},
		CompareTo:       "fleet",
		GroupBy:         []string{"model_name", "zone"},
		MinObservations: 100,
		MinReplicas:     3,
		DepartedAfter:   &departedAfter,
		MaxReplicas:     500,
		Alarm: &AlarmConfig{
			FalseAlarmsPerWeek: 0.5,
			Tolerance:          1.5,
			Signals:            []string{"ttft", "e2e"},
			Pane:               2 * time.Minute,
			ClearAfter:         20 * time.Minute,
			Warmup:             30 * time.Minute,
		},
		Storage: &storage,
		Overrides: []Override{{
			Match:           map[string]string{"model_name": "llama", "zone": "a"},
			Window:          &window,
			CompareTo:       "peers",
			MinObservations: 10,
			MinReplicas:     2,
		}},
		Metrics: emit.Switches{
			"llmfleet.replica.latency_low_ratio": {Enabled: true},
			"llmfleet.fleet.requests":            {Enabled: false},
		},
	}, config)
}

func TestAlarmCanBeSwitchedOff(t *testing.T) {
	config, err := settingstest.Load[*Config](t, NewFactory(), "testdata/config/alarm_null.yaml")
	require.NoError(t, err)
	without := createDefaultConfig().(*Config)
	without.Alarm = nil
	assert.Equal(t, without, config)
}

func TestAlarmKeepsTheDefaultsOfWhatIsNotSaid(t *testing.T) {
	config, err := settingstest.Load[*Config](t, NewFactory(), "testdata/config/alarm_part.yaml")
	require.NoError(t, err)
	with := createDefaultConfig().(*Config)
	with.Alarm.Warmup = 5 * time.Minute
	assert.Equal(t, with, config)
}
