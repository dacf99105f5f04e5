// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetidentityprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/settingstest"
)

// remedies is what a user is told of each file in testdata/config/invalid: the
// key, and what to write instead.
var remedies = map[string][]string{
	"unknown_key":               {"source: unknown key: use one of", "sources"},
	"unknown_key_in_metric":     {"metrics.llmfleet.identity.sources.enable: unknown key: use one of enabled"},
	"points_unknown":            {`points: unknown choice "some": use "signals" or "all"`},
	"sources_empty":             {"sources: there are none, so nothing would be known: use one or more of attributes, kubernetes, image, engine, gpu"},
	"source_unknown":            {`sources: unknown source "dcgm": use one or more of attributes, kubernetes, image, engine, gpu`},
	"stamp_twice":               {"stamps: role is there twice: remove one"},
	"stamp_unknown":             {"stamps: pod is nothing that is stamped: use one or more of replica, model_name, role, "},
	"stamps_empty":              {"stamps: there are none, so nothing would be stamped: use one or more of replica, "},
	"source_twice":              {"sources: image is there twice: remove one"},
	"labels_of_no_fact":         {"labels: version is nothing that labels tell: use model_name, role, engine_name, gpu_model, node, model_revision, engine_version, config_hash"},
	"label_blank":               {"labels.role: a label is empty: use the key of a pod's or node's label"},
	"group_empty":               {"groups[1]: names no labels, or an empty one: use the labels that together name a group"},
	"group_blank":               {"groups[0]: names no labels, or an empty one: use the labels that together name a group"},
	"endpoint_attribute_blank":  {"endpoint_attributes: one is empty: use the key of a span attribute"},
	"model_attribute_blank":     {"model_attributes: one is empty: use the key of a span attribute"},
	"alias_blank":               {`model_aliases: "chat": "": a name is empty: use the name`},
	"alias_of_alias":            {"model_aliases: chat is another name of gpt, which is one of llama: name the last at once"},
	"dialect_missing":           {"dialects[0]", "testdata/dialects/missing.yaml", "use the path of a file that the collector can read"},
	"dialect_mistaken":          {"testdata/dialects/mistaken.yaml:4", "signals.waiting.type", "want one of histogram, gauge, counter, not dial"},
	"dialect_mistaken_inline":   {"dialects[0]", "signals.waiting.type", "want one of histogram, gauge, counter, not dial"},
	"dialect_neither":           {"dialects[0]: want the path of a file, or the keys of one"},
	"drop_raw_alone":            {"drop_raw: would leave no trace of the engines: set emit_canonical: true as well"},
	"interval_without_unit":     {`interval: 30ns is under a second; a number without a unit is read as nanoseconds: write the unit, as in "30s"`},
	"interval_zero":             {"interval: must not be 0s: use a span of time of at least 1s"},
	"interval_negative":         {`interval: -5s is negative: use a positive span of time, as in "5s"`},
	"interval_too_long":         {`interval: 3m0s is too long: use at most "2m30s"`},
	"forget_after_without_unit": {`forget_after: 3.6µs is under a second; a number without a unit is read as nanoseconds: write the unit, as in "3600s"`},
	"forget_after_zero":         {"forget_after: must not be 0s: use a span of time of at least 1s"},
	"forget_after_too_short":    {`forget_after: 59s is shorter than two intervals (30s): use at least "1m0s"`},
	"max_replicas_zero":         {"max_replicas: 0 is out of range: use 1 to 1000000"},
	"max_replicas_overflows":    {"max_replicas: 9223372036854775807 is out of range: use 1 to 1000000"},
	"metric_unknown":            {`metrics: fleet_identity emits no metric "llmfleet.replica.latency": use one of llmfleet.replica.variant_changes`},
}

func TestInvalidConfig(t *testing.T) { settingstest.Refused[*Config](t, NewFactory(), remedies) }

func TestAllErrorsAtOnce(t *testing.T) {
	config := createDefaultConfig().(*Config)
	config.Points, config.DropRaw, config.MaxReplicas = "", true, 0
	err := config.Validate()
	for _, part := range []string{"points", "drop_raw", "max_replicas"} {
		assert.ErrorContains(t, err, part)
	}
}

var (
	defaultLabels = map[string][]string{
		"model_name":     {"llm-d.ai/model"},
		"role":           {"llm-d.ai/role"},
		"engine_name":    {"llm-d.ai/engine-type", "inference.networking.k8s.io/engine-type"},
		"model_revision": {"model-revision"},
		"config_hash": {
			"leaderworkerset.sigs.k8s.io/template-revision-hash", "rollouts-pod-template-hash", "pod-template-hash", "controller-revision-hash",
		},
		"gpu_model": {
			"nvidia.com/gpu.product", "gpu.nvidia.com/productName", "amd.com/gpu.product-name",
			"cloud.google.com/gke-accelerator", "karpenter.k8s.aws/instance-gpu-name",
		},
	}
	defaultEndpoints = []string{
		"x-gateway-destination-endpoint-served", "x-gateway-destination-endpoint",
		"http.response.header.x-gateway-destination-endpoint-served",
		"http.response.header.x-gateway-destination-endpoint", "http.request.header.x-gateway-destination-endpoint",
		"upstream_address", "upstream.address",
	}
)

func TestEmptyBodyHasDocumentedDefaults(t *testing.T) {
	config, err := settingstest.Load[*Config](t, NewFactory(), "testdata/config/empty.yaml")
	require.NoError(t, err)
	assert.Equal(t, &Config{
		Points:  "signals",
		Stamps:  []string{"replica", "model_name", "role", "engine_name", "gpu_model", "node", "model_revision", "engine_version", "config_hash"},
		Sources: []string{"attributes", "kubernetes", "image", "engine", "gpu"},
		Labels:  defaultLabels,
		Groups: [][]string{
			{"leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/group-index"},
			{"ray.io/cluster"},
		},
		EndpointAttributes: defaultEndpoints,
		ModelAttributes:    []string{"gen_ai.request.model"},
		Interval:           30 * time.Second,
		ForgetAfter:        time.Hour,
		MaxReplicas:        20_000,
	}, config)
}

// TestEverySetting: a list takes the place of the usual one, and what is said of
// the labels of one fact leaves those of the others.
func TestEverySetting(t *testing.T) {
	config, err := settingstest.Load[*Config](t, NewFactory(), "testdata/config/full.yaml")
	require.NoError(t, err)
	assert.Equal(t, &Config{
		Points:  "all",
		Stamps:  []string{"model_name", "replica"},
		Sources: []string{"attributes", "engine"},
		Labels: map[string][]string{
			"model_name":     defaultLabels["model_name"],
			"role":           {"example.com/role"},
			"engine_name":    defaultLabels["engine_name"],
			"engine_version": {"app.kubernetes.io/version"},
			"model_revision": defaultLabels["model_revision"],
			"config_hash":    defaultLabels["config_hash"],
			"gpu_model":      defaultLabels["gpu_model"],
		},
		Groups:             [][]string{{"team", "shard"}},
		EndpointAttributes: []string{"server.address"},
		ModelAttributes:    []string{"llm.model"},
		ModelAliases:       map[string]string{"chat": "llama"},
		Dialects: dialect.Sources{
			"testdata/dialects/tiny.yaml",
			map[string]any{"engine": "small", "prefix": "small", "signals": map[string]any{
				"waiting": map[string]any{"type": "gauge", "names": []any{"queue"}},
			}},
		},
		EmitCanonical: true,
		DropRaw:       true,
		Interval:      10 * time.Second,
		ForgetAfter:   2 * time.Hour,
		MaxReplicas:   500,
		Metrics: emit.Switches{
			"llmfleet.identity.sources": {Enabled: false},
			"llmfleet.engine.ttft":      {Enabled: false},
		},
	}, config)
}
