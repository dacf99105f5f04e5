// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantshareprocessor

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
	"unknown_key":                {"windw", "use one of", "window"},
	"unknown_key_in_metric":      {"llmfleet.fleet.itl", "enable", "use one of", "enabled"},
	"metric_unknown":             {`metrics: tenant_share emits no metric "llmfleet.tenant.shares": use one of llmfleet.tenant.token_share_ratio`},
	"pane_without_unit":          {`pane: 60ns is under a second; a number without a unit is read as nanoseconds: write the unit, as in "60s"`},
	"pane_zero":                  {"pane: must not be 0s: use a span of time of at least 1s"},
	"pane_too_long":              {`pane: 1h0m0s is too long: use at most "10m0s"`},
	"lateness_longer_than_pane":  {"lateness: 1m1s is longer than pane (1m0s): use at most the pane"},
	"window_not_a_multiple":      {`window: 2m30s is not a multiple of pane (1m0s): use "2m0s" or "3m0s"`},
	"window_shorter_than_pane":   {`window: 30s is shorter than pane (1m0s): use "1m0s" or a multiple of it, or a shorter pane`},
	"window_with_too_many_panes": {"window: 1h0m0s has 3600 panes of 1s, more than 720: use a longer pane or a shorter window"},
	"half_life_too_short":        {`half_life: 2m0s is out of range: use "5m0s" (5 panes) to "24h0m0s"`},
	"half_life_too_long":         {`half_life: 48h0m0s is out of range: use "5m0s" (5 panes) to "24h0m0s"`},
	"half_life_without_unit":     {`half_life: 1.8µs is under a second`, `as in "1800s"`},
	"departed_after_zero":        {"departed_after: must not be 0s: use a span of time of at least 1s"},
	"top_zero":                   {"top: 0 is out of range: use 1 to 1000"},
	"max_replicas_zero":          {"max_replicas: 0 is out of range: use 1 to 1000000"},
	"max_tenants_too_many":       {"max_tenants: 1000000 is out of range: use 1 to 100000"},
	"max_fleets_negative":        {"max_fleets: -1 is out of range: use 1 to 10000"},
	"min_score_nan":              {"min_score: NaN is out of range: use 1 to 100, as in 5"},
	"min_excess_zero":            {"min_excess: 0 is out of range: use 0.01 to 10 times the usual latency, as in 0.1"},
	"panes_zero":                 {"panes: 0 is out of range: use 1 to 60"},
	"group_by_empty":             {"group_by: there are no keys, so everything would be one fleet: use at least [model_name]"},
	"group_by_taken":             {`group_by: "tenant" cannot be a key, derived points use it otherwise: use attributes that a fleet has in common`},
	"group_by_blank":             {`group_by: "__name__" is no name of a label: use letters, digits, underscores and dots`},
	"group_by_twice":             {"group_by: model.name is there twice: remove one"},
	"source_unknown":             {`sources: there is no dialect "tenant_usages": use one of`, "tenant_usage", "or add it under dialects"},
	"source_twice":               {"sources: epp is there twice: remove one"},
	"tenant_labels_unknown":      {`tenant_labels: there is no dialect "gateway": use one of`, "litellm"},
	"tenant_labels_empty":        {"tenant_labels.litellm: a name is missing: use the labels that name tenants, as in [team]"},
	"model_aliases_chain":        {"model_aliases: a is another name of b, which is one of c: name the last at once"},
	"dialect_missing":            {"dialects[0]", "use the path of a file that the collector can read"},
	"storage_no_name":            {"storage", "id must not be empty"},
}

func TestInvalidConfig(t *testing.T) { settingstest.Refused[*Config](t, NewFactory(), remedies) }

func TestAllErrorsAtOnce(t *testing.T) {
	config := createDefaultConfig().(*Config)
	config.Top, config.Panes, config.MinExcess = 0, 0, -1
	err := config.Validate()
	for _, key := range []string{"top", "panes", "min_excess"} {
		assert.ErrorContains(t, err, key)
	}
}

func TestEmptyBodyHasDocumentedDefaults(t *testing.T) {
	config, err := settingstest.Load[*Config](t, NewFactory(), "testdata/config/empty.yaml")
	require.NoError(t, err)
	assert.Equal(t, &Config{
		Pane:        time.Minute,
		Window:      3 * time.Minute,
		Lateness:    5 * time.Second,
		HalfLife:    30 * time.Minute,
		Top:         20,
		MinScore:    5,
		MinExcess:   0.1,
		Panes:       3,
		Sources:     []string{"tenant_usage", "epp", "genai", "litellm", "kong", "sglang"},
		GroupBy:     []string{"model_name"},
		MaxReplicas: 20_000,
		MaxTenants:  2_000,
		MaxFleets:   256,
	}, config)
}

func TestEverySetting(t *testing.T) {
	config, err := settingstest.Load[*Config](t, NewFactory(), "testdata/config/full.yaml")
	require.NoError(t, err)
	departedAfter := 90 * time.Second
	storage := component.MustNewIDWithName("file_storage", "tenants")
	assert.Equal(t, &Config{
		Pane:          30 * time.Second,
		Window:        10 * time.Minute,
		Lateness:      10 * time.Second,
		HalfLife:      time.Hour,
		Top:           5,
		MinScore:      4,
		MinExcess:     0.2,
		Panes:         5,
		Sources:       []string{"litellm", "tenant_usage"},
		TenantLabels:  map[string][]string{"sglang": {"customer"}, "litellm": {"end_user"}},
		GroupBy:       []string{"model_name", "region"},
		ModelAliases:  map[string]string{"chat": "llama"},
		Storage:       &storage,
		DepartedAfter: &departedAfter,
		MaxReplicas:   500,
		MaxTenants:    300,
		MaxFleets:     10,
		Metrics: emit.Switches{
			"llmfleet.tenant.throttled_ratio": {Enabled: true},
			"llmfleet.fleet.fairness_ratio":   {Enabled: false},
		},
	}, config)
}
