// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	promapi "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	autoscaling "k8s.io/api/autoscaling/v2"
	kubernetes "sigs.k8s.io/yaml"
)

const (
	scaledObjectFile = "../../deploy/autoscaling/scaledobject.yaml"
	adapterFile      = "../../deploy/autoscaling/prometheus-adapter.yaml"
	autoscalerFile   = "../../deploy/autoscaling/horizontalpodautoscaler.yaml"

	// keda is the release whose definitions and sources the example is checked against.
	keda = "github.com/kedacore/keda/v2@v2.21.0"
)

type scaledObject struct {
	Spec struct {
		Triggers []struct {
			Type     string
			Metadata map[string]string
		}
	}
}

// adapterConfig is what prometheus-adapter reads of rules for external metrics.
type adapterConfig struct {
	ExternalRules []struct {
		SeriesQuery string `yaml:"seriesQuery"`
		Resources   struct {
			Overrides map[string]struct{ Resource string }
		}
		Name         struct{ As string }
		MetricsQuery string `yaml:"metricsQuery"`
	} `yaml:"externalRules"`
}

// decode reads a YAML file.
func decode(t *testing.T, path string, strict bool, into any) {
	t.Helper()
	decoder := yaml.NewDecoder(strings.NewReader(readFile(t, path)))
	decoder.KnownFields(strict)
	require.NoError(t, decoder.Decode(into), path)
}

// triggers are the queries by which examples scale, by their file.
func triggers(t *testing.T) map[string]string {
	t.Helper()
	var object scaledObject
	decode(t, scaledObjectFile, false, &object)
	require.Len(t, object.Spec.Triggers, 1)
	var adapter adapterConfig
	decode(t, adapterFile, true, &adapter)
	require.Len(t, adapter.ExternalRules, 1)
	return map[string]string{
		scaledObjectFile: object.Spec.Triggers[0].Metadata["query"],
		adapterFile:      adapterQuery(t, adapter.ExternalRules[0].MetricsQuery),
	}
}

// adapterQuery fills in a query as prometheus-adapter does for horizontalpodautoscaler.yaml.
func adapterQuery(t *testing.T, text string) string {
	t.Helper()
	var query strings.Builder
	parsed, err := template.New("").Delims("<<", ">>").Option("missingkey=error").Parse(text)
	require.NoError(t, err)
	require.NoError(t, parsed.Execute(&query, map[string]string{"LabelMatchers": `model_name="qwen3-8b",namespace="chat"`}))
	return query.String()
}

// TestScaledObjectIsKEDAs: the definition of KEDA's resource takes each key, and its scaler each setting of the trigger, of which
// one must not be left to its default.
func TestScaledObjectIsKEDAs(t *testing.T) {
	module := download(t, keda)
	schema := scaledObjectSchema(t, module)
	var object map[string]any
	decode(t, scaledObjectFile, true, &object)
	require.NoError(t, schema.Validate(plain(t, object)))
	object["spec"].(map[string]any)["minReplicas"] = 2
	require.Error(t, schema.Validate(plain(t, object)), "a key that KEDA does not know")

	scaler := readFile(t, module+"/pkg/scalers/prometheus_scaler.go")
	var read scaledObject
	decode(t, scaledObjectFile, false, &read)
	for _, trigger := range read.Spec.Triggers {
		assert.Equal(t, "prometheus", trigger.Type)
		assert.Equal(t, "false", trigger.Metadata["ignoreNullValues"])
		for key := range trigger.Metadata {
			assert.Regexp(t, `keda:"name=`+key+`,`, scaler, key)
		}
	}
}

// TestAutoscalerAsksTheAdapter: what Kubernetes knows, and the metric that the adapter's rule makes.
func TestAutoscalerAsksTheAdapter(t *testing.T) {
	var autoscaler autoscaling.HorizontalPodAutoscaler
	require.NoError(t, kubernetes.UnmarshalStrict([]byte(readFile(t, autoscalerFile)), &autoscaler))
	var adapter adapterConfig
	decode(t, adapterFile, true, &adapter)
	require.Len(t, autoscaler.Spec.Metrics, 1)
	assert.Equal(t, adapter.ExternalRules[0].Name.As, autoscaler.Spec.Metrics[0].External.Metric.Name)
}

// scaledObjectSchema is the schema of a ScaledObject, in which a key that it does not name is an error, as it is for kubectl.
func scaledObjectSchema(t *testing.T, module string) *jsonschema.Schema {
	t.Helper()
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPI map[string]any `yaml:"openAPIV3Schema"`
				}
			}
		}
	}
	decode(t, module+"/config/crd/bases/keda.sh_scaledobjects.yaml", false, &definition)
	require.Len(t, definition.Spec.Versions, 1)
	schema := plain(t, closed(definition.Spec.Versions[0].Schema.OpenAPI))
	metadata := schema.(map[string]any)["properties"].(map[string]any)["metadata"]
	require.Equal(t, map[string]any{"type": "object"}, metadata, "the API server's own part")
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("scaledobject.json", schema))
	compiled, err := compiler.Compile("scaledobject.json")
	require.NoError(t, err)
	return compiled
}

// closed has objects with named properties allow no other.
func closed(schema any) any {
	switch s := schema.(type) {
	case map[string]any:
		for key := range s {
			s[key] = closed(s[key])
		}
		if _, named := s["properties"].(map[string]any); named && s["type"] == "object" {
			s["additionalProperties"] = false
		}
	case []any:
		for i := range s {
			s[i] = closed(s[i])
		}
	}
	return schema
}

// plain is a value as it would be after a way over JSON.
func plain(t *testing.T, value any) any {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	read, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	return read
}

// download returns the folder of a module, which nothing here is built from.
func download(t *testing.T, module string) string {
	t.Helper()
	answer, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module).Output()
	require.NoError(t, err, "%s", answer)
	var of struct{ Dir string }
	require.NoError(t, json.Unmarshal(answer, &of))
	return of.Dir
}

// scalingHasData: each trigger has one answer on a fleet, the most that waited and ran within five minutes; and none of a fleet
// that there is not, or of which too much cannot be reached.
func scalingHasData(t *testing.T, p *platform) {
	t.Helper()
	const step = 15 * time.Second
	at := time.Now().Truncate(step) // where subqueries are evaluated
	most := p.highest(t, `sum(llmfleet_fleet_requests{model_name="qwen3-8b", state=~"waiting|running"})`, at, 5*time.Minute, step)
	require.Positive(t, most)
	for name, query := range triggers(t) {
		query = strings.ReplaceAll(query, `namespace="chat"`, `namespace="fleetsim"`)
		answer := p.at(at, query)
		require.Len(t, answer, 1, name)
		assert.InEpsilon(t, most, float64(answer[0].Value), 1e-9, name)
		assert.Empty(t, p.at(at, strings.ReplaceAll(query, "qwen3-8b", "no-such-model")), name)
		require.Contains(t, query, "> 0.1")
		assert.Empty(t, p.at(at, strings.ReplaceAll(query, "> 0.1", ">= 0")), name)
	}
}

// at evaluates a query at an instant.
func (p *platform) at(instant time.Time, query string) model.Vector {
	p.t.Helper()
	result, _, err := p.api.Query(context.Background(), query, instant)
	require.NoError(p.t, err, query)
	return result.(model.Vector)
}

// highest is the greatest value of a query that has one answer, at the instants of a span of time.
func (p *platform) highest(t *testing.T, query string, end time.Time, span, step time.Duration) float64 {
	t.Helper()
	result, _, err := p.api.QueryRange(t.Context(), query, promapi.Range{Start: end.Add(step - span), End: end, Step: step})
	require.NoError(t, err)
	series := result.(model.Matrix)
	require.Len(t, series, 1)
	highest := slices.MaxFunc(series[0].Values, func(a, b model.SamplePair) int { return cmp.Compare(a.Value, b.Value) })
	return float64(highest.Value)
}
