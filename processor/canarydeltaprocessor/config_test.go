// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canarydeltaprocessor

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
	"unknown_key":                {"watched: unknown key: use one of", "watch"},
	"unknown_key_in_canary":      {"canary.macth: unknown key: use one of match"},
	"unknown_key_in_baseline":    {"baseline.age: unknown key: use one of age_within"},
	"unknown_key_in_quality":     {"quality.helpful.attribute: unknown key: use one of attributes, better, metric, type"},
	"unknown_key_in_metric":      {"llmfleet.canary.ratio", "enable", "use one of", "enabled"},
	"metric_unknown":             {`metrics: canary_delta emits no metric "llmfleet.canary.score": use one of llmfleet.canary.verdict`},
	"pane_without_unit":          {`pane: 60ns is under a second; a number without a unit is read as nanoseconds: write the unit, as in "60s"`},
	"pane_zero":                  {"pane: must not be 0s: use a span of time of at least 1s"},
	"pane_too_long":              {`pane: 1h0m0s is too long: use at most "10m0s"`},
	"lateness_longer_than_pane":  {"lateness: 1m1s is longer than pane (1m0s): use at most the pane"},
	"burn_in_zero":               {"burn_in: must not be 0s: use a span of time of at least 1s"},
	"burn_in_too_long":           {`burn_in: 25h0m0s is too long: use at most "24h0m0s"`},
	"age_within_without_unit":    {"baseline.age_within: 600ns is under a second", `as in "600s"`},
	"departed_after_zero":        {"departed_after: must not be 0s: use a span of time of at least 1s"},
	"match_without_value":        {`canary.match: "track": "": a name or a value is missing: use labels that only the canary's replicas have, as in {track: canary}`},
	"watch_empty":                {"watch: there are no measures, so that nothing could fail: use one or more, as in [ttft, errors]"},
	"watch_unknown":              {`watch: unknown measure "latency": use some of ttft, itl,`, "or name it under quality"},
	"watch_twice":                {"watch: ttft is there twice: remove one"},
	"watch_quality_unknown":      {`watch: unknown measure "helpful"`, "generation_tokens, helpfulness, or name it under quality"},
	"false_fail_zero":            {"false_fail: 0 is out of range: use 0.0001 to 0.5: a probability, as in 0.05"},
	"false_fail_too_large":       {"false_fail: 5 is out of range: use 0.0001 to 0.5: a probability, as in 0.05"},
	"tolerance_below_one":        {"tolerance: 0.9 is out of range: use 1 to 10: how many times worse a canary may be, as in 1.07"},
	"tolerance_nan":              {"tolerance: NaN is out of range: use 1 to 10"},
	"pass_tolerance_one":         {"pass_tolerance: 1 is out of range: use 1.01 to 10: how many times worse a canary that passes is shown not to be, as in 1.15"},
	"quality_named_as_a_measure": {`quality: "ttft" is no name for a measure: use another than ttft, itl,`},
	"quality_named_overall":      {`quality: "overall" is no name for a measure: use another than`, "generation_tokens, overall"},
	"quality_without_a_name":     {`quality: "" is no name for a measure`},
	"quality_without_metric":     {"quality.helpful.metric: is missing: name the metric that tells it, as in answer_score"},
	"quality_of_derived_metric":  {"quality.helpful.metric: llmfleet.replica.latency is derived by llmfleet, which is not read: use the metric of whoever judges answers"},
	"quality_type_unknown":       {`quality.helpful.type: unknown type "counter": use "histogram" or "gauge"`},
	"quality_better_missing":     {`quality.helpful.better: unknown direction "": use "higher" or "lower"`},
	"quality_attribute_without_value": {
		`quality.helpful.attributes: "criterion": "": a name or a value is missing: use labels that the points must have, as in {criterion: helpful}`,
	},
	"quality_too_many":  {"quality: 9 measures are too many: use at most 8"},
	"group_by_empty":    {"group_by: there are no keys, so everything would be one fleet: use at least [model_name]"},
	"group_by_taken":    {`group_by: "canary" cannot be a key, derived points use it otherwise: use attributes that a fleet has in common`},
	"group_by_blank":    {`group_by: "__name__" is no name of a label: use letters, digits, underscores and dots`},
	"group_by_twice":    {"group_by: model.name is there twice: remove one"},
	"group_by_variant":  {"group_by: engine_version tells a canary from its baseline, so they would be no fleet: remove it"},
	"group_by_template": {"group_by: pod_template_hash tells a canary from its baseline, so they would be no fleet: remove it"},
	"group_by_match_spelled": {
		`group_by: "k8s.pod.label.app.kubernetes.io/track" is no name of a label: use letters, digits, underscores and dots`,
		"group_by: k8s.pod.label.app.kubernetes.io/track tells a canary from its baseline, so they would be no fleet: remove it",
	},
	"watch_prompt_length":            {"watch: prompt_length is what the canary is asked, not how it answers, and cannot fail it: remove it; that both are asked the same is always checked"},
	"pass_tolerance_below_tolerance": {"pass_tolerance: 1.15 is less than tolerance (1.5), so that a canary in between could neither pass nor fail: use as much or more"},
	"group_by_match":                 {"group_by: track tells a canary from its baseline, so they would be no fleet: remove it"},
	"max_replicas_zero":              {"max_replicas: 0 is out of range: use 1 to 1000000"},
	"max_fleets_negative":            {"max_fleets: -1 is out of range: use 1 to 10000"},
	"model_aliases_chain":            {"model_aliases: a is another name of b, which is one of c: name the last at once"},
	"dialect_missing":                {"dialects[0]", "use the path of a file that the collector can read"},
	"storage_no_name":                {"storage", "id must not be empty"},
}

func TestInvalidConfig(t *testing.T) { settingstest.Refused[*Config](t, NewFactory(), remedies) }

func TestAllErrorsAtOnce(t *testing.T) {
	config := createDefaultConfig().(*Config)
	config.Watch, config.Tolerance, config.MaxFleets = nil, 0, 0
	err := config.Validate()
	for _, key := range []string{"watch", "tolerance", "max_fleets"} {
		assert.ErrorContains(t, err, key)
	}
}

// TestMostMeasuresOfQuality: eight are allowed; quality_too_many has nine.
func TestMostMeasuresOfQuality(t *testing.T) {
	config := createDefaultConfig().(*Config)
	config.Quality = map[string]QualityConfig{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		config.Quality[name] = QualityConfig{Metric: "score", Type: "gauge", Better: "higher", Attributes: map[string]string{"criterion": name}}
	}
	assert.NoError(t, config.Validate())
}

func TestEmptyBodyHasDocumentedDefaults(t *testing.T) {
	config, err := settingstest.Load[*Config](t, NewFactory(), "testdata/config/empty.yaml")
	require.NoError(t, err)
	assert.Equal(t, &Config{
		Pane:          time.Minute,
		Lateness:      5 * time.Second,
		Watch:         []string{"ttft", "itl", "e2e", "errors"},
		FalseFail:     0.05,
		Tolerance:     1.07,
		PassTolerance: 1.15,
		BurnIn:        15 * time.Minute,
		GroupBy:       []string{"cluster", "namespace", "model_name", "role", "engine_name", "gpu_model"},
		MaxReplicas:   20_000,
		MaxFleets:     256,
	}, config)
}

func TestEverySetting(t *testing.T) {
	config, err := settingstest.Load[*Config](t, NewFactory(), "testdata/config/full.yaml")
	require.NoError(t, err)
	ageWithin, departedAfter := 2*time.Hour, 90*time.Second
	storage := component.MustNewIDWithName("file_storage", "canaries")
	assert.Equal(t, &Config{
		Pane:          30 * time.Second,
		Lateness:      10 * time.Second,
		Canary:        CanaryConfig{Match: map[string]string{"track": "canary", "ring": "0"}},
		Baseline:      BaselineConfig{AgeWithin: &ageWithin},
		Watch:         []string{"ttft", "errors", "helpful"},
		FalseFail:     0.01,
		Tolerance:     1.2,
		PassTolerance: 1.3,
		BurnIn:        5 * time.Minute,
		Quality: map[string]QualityConfig{
			"helpful": {
				Metric: "gen_ai.evaluation.score", Type: "histogram", Better: "higher",
				Attributes: map[string]string{"gen_ai.evaluation.name": "helpfulness"},
			},
			"toxicity": {Metric: "toxicity_score", Type: "gauge", Better: "lower"},
		},
		GroupBy:       []string{"model_name", "region"},
		ModelAliases:  map[string]string{"chat": "llama"},
		Storage:       &storage,
		DepartedAfter: &departedAfter,
		MaxReplicas:   500,
		MaxFleets:     10,
		Metrics: emit.Switches{
			"llmfleet.canary.evidence":         {Enabled: false},
			"llmfleet.canary.latency_boundary": {Enabled: true},
		},
	}, config)
}
