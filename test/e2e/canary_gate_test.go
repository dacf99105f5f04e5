// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// verdicts are the samples of a verdict on a canary of three replicas, in the text format. Labels are those beside the
// model's, the measure's and the verdict's own.
func verdicts(model, labels string, pass, fail any) string {
	var page strings.Builder
	for _, v := range []struct {
		verdict string
		value   any
	}{{"pass", pass}, {"fail", fail}} {
		if v.value != nil {
			fmt.Fprintf(&page, "llmfleet_canary_verdict{model_name=%q,measure=\"overall\",verdict=%q,baseline=\"old\",%s} %v\n", model, v.verdict, labels, v.value)
		}
	}
	fmt.Fprintf(&page, "llmfleet_canary_replicas{model_name=%q,arm=\"canary\",baseline=\"old\",%s} 3\n", model, labels)
	return page.String()
}

// gateCases are what may be found in Prometheus, one case a model, and what a measurement of it is.
var gateCases = []struct {
	name  string
	args  map[string]string // beside the model
	page  func(model string) string
	want  phase
	value string
}{
	{"no such series", nil, func(string) string { return "" }, inconclusive, "[]"},
	{"pass", nil, func(m string) string { return verdicts(m, `canary="new"`, 1, 0) }, successful, "[1]"},
	{"fail", nil, func(m string) string { return verdicts(m, `canary="new"`, 0, 1) }, failed, "[-1]"},
	{"inconclusive", nil, func(m string) string { return verdicts(m, `canary="new"`, 0, 0) }, inconclusive, "[0]"},
	{"passed, and has no replica any more", nil, func(m string) string {
		return strings.Replace(verdicts(m, `canary="new"`, 1, 0), "} 3", "} 0", 1)
	}, inconclusive, "[0]"},
	{"failed, and has no replica any more", nil, func(m string) string {
		return strings.Replace(verdicts(m, `canary="new"`, 0, 1), "} 3", "} 0", 1)
	}, failed, "[-1]"},
	{"a measure passes", nil, func(m string) string {
		return strings.ReplaceAll(verdicts(m, `canary="new"`, 1, 0), "overall", "ttft")
	}, inconclusive, "[]"},
	{"a measure fails that is not watched", nil, func(m string) string {
		measure := strings.ReplaceAll(verdicts(m, `canary="new"`, 0, 1), "overall", "output_length")
		measure, _, _ = strings.Cut(measure, "llmfleet_canary_replicas")
		return verdicts(m, `canary="new"`, 1, 0) + measure
	}, successful, "[1]"},
	{"another model fails", nil, func(m string) string {
		return verdicts(m, `canary="new"`, 1, 0) + verdicts(m+"-large", `canary="new"`, 0, 1)
	}, successful, "[1]"},
	{"two fleets of the model pass", nil, func(m string) string {
		return verdicts(m, `canary="new",gpu_model="H100"`, 1, 0) + verdicts(m, `canary="new",gpu_model="L40S"`, 1, 0)
	}, successful, "[1 1]"},
	{"one of two is undecided", nil, func(m string) string {
		return verdicts(m, `canary="new",gpu_model="H100"`, 1, 0) + verdicts(m, `canary="new",gpu_model="L40S"`, 0, 0)
	}, inconclusive, "[0 1]"},
	{"one of two fails", nil, func(m string) string {
		return verdicts(m, `canary="new",gpu_model="H100"`, 1, 0) + verdicts(m, `canary="new",gpu_model="L40S"`, 0, 1)
	}, failed, "[-1 1]"},
	{"the other is in another namespace", map[string]string{"namespace": "prod"}, func(m string) string {
		return verdicts(m, `canary="new",namespace="prod"`, 1, 0) + verdicts(m, `canary="new",namespace="staging"`, 0, 1)
	}, successful, "[1]"},
	{"not a number", nil, func(m string) string { return verdicts(m, `canary="new"`, "NaN", "NaN") }, inconclusive, "[NaN]"},
	{"one of two is not a number", nil, func(m string) string {
		return verdicts(m, `canary="new",gpu_model="H100"`, 1, 0) + verdicts(m, `canary="new",gpu_model="L40S"`, "NaN", 0)
	}, inconclusive, "[1 NaN]"},
	{"fail is not told", nil, func(m string) string { return verdicts(m, `canary="new"`, 1, nil) }, inconclusive, "[]"},
	{"pass is not told", nil, func(m string) string { return verdicts(m, `canary="new"`, nil, 0) }, inconclusive, "[]"},
	{"the canary before has passed", map[string]string{"canary": "6f7d"}, func(m string) string {
		return verdicts(m, `canary="59cc"`, 1, 0)
	}, inconclusive, "[]"},
	{"the canary before has failed", map[string]string{"canary": "6f7d"}, func(m string) string {
		return verdicts(m, `canary="59cc"`, 0, 1) + verdicts(m, `canary="6f7d"`, 1, 0)
	}, successful, "[1]"},
	{"one of what it brings is named", map[string]string{"canary": "v0.12"}, func(m string) string {
		return verdicts(m, `canary="7a31e04/v0.12/6f7d"`, 1, 0) + verdicts(m, `canary="7a31e04/v0.12.1/6f7d"`, 0, 1)
	}, successful, "[1]"},
	{"too old", nil, func(m string) string {
		old := fmt.Sprintf(" %d\n", time.Now().Add(-6*time.Minute).UnixMilli())
		return strings.ReplaceAll(verdicts(m, `canary="new"`, 1, 0), "\n", old)
	}, inconclusive, "[]"},
}

// departing is a model whose series end.
const departing = "departing"

// TestGate: the shipped AnalysisTemplate takes a pass for a success, a fail for a failure, and all else, nothing at all among
// it, for neither.
func TestGate(t *testing.T) {
	t.Parallel()
	var page atomic.Pointer[string]
	all := "llmfleet_ready 1\n"
	for i, c := range gateCases {
		all += c.page(fmt.Sprint("model-", i))
	}
	shown := all + verdicts(departing, `canary="new"`, 1, 0)
	page.Store(&shown)
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, *page.Load())
	}))
	t.Cleanup(exporter.Close)
	prometheus := startPrometheus(t, render(t, tenantsPrometheusConfig, map[string]any{"Exporter": strings.TrimPrefix(exporter.URL, "http://")}))
	require.Eventually(t, func() bool { return len(prometheus.at(time.Now(), "llmfleet_ready")) > 0 }, time.Minute, 100*time.Millisecond)

	template := shippedTemplate(t)
	metric := func(model string, more map[string]string) analysisMetric {
		args := map[string]string{"prometheus": "http://" + prometheus.address, "model": model}
		maps.Copy(args, more)
		return template.metric(t, args)
	}
	for i, c := range gateCases {
		t.Run(c.name, func(t *testing.T) {
			got, value := metric(fmt.Sprint("model-", i), c.args).measure()
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.value, inOrder(value))
		})
	}
	t.Run("ended", func(t *testing.T) {
		got, _ := metric(departing, nil).measure()
		require.Equal(t, successful, got)
		page.Store(&all)
		require.Eventually(t, func() bool {
			got, _ = metric(departing, nil).measure()
			return got != successful
		}, time.Minute, 100*time.Millisecond, "its last verdict goes on")
		assert.Equal(t, inconclusive, got)
	})
}

// inOrder sorts the values of a result as it is printed: Prometheus tells them in any order.
func inOrder(result string) string {
	values := strings.Fields(strings.Trim(result, "[]"))
	slices.Sort(values)
	return fmt.Sprint(values)
}

// TestGateRuns: what a rollout waits for, and for how long.
func TestGateRuns(t *testing.T) {
	t.Parallel()
	args := map[string]string{"prometheus": "http://127.0.0.1:1", "model": "chat"}
	shipped := shippedTemplate(t).metric(t, args)
	old := shipped
	old.ConsecutiveSuccessLimit = 0 // a controller before 1.8 does not know it
	args["minutes"] = "5"
	patience := shippedTemplate(t).metric(t, args)
	away, _ := shipped.measure()
	require.Equal(t, errored, away, "nobody answers")

	hour := slices.Repeat([]phase{inconclusive}, 61)
	for _, c := range []struct {
		name     string
		metric   analysisMetric
		measured []phase
		want     phase
		after    int
	}{
		{"a pass goes on at once", shipped, []phase{successful}, successful, 1},
		{"after an hour without a verdict too", shipped, append(slices.Clone(hour[:60]), successful), successful, 61},
		{"a fail aborts at once", shipped, []phase{inconclusive, failed}, failed, 2},
		{"no verdict pauses", shipped, hour, inconclusive, 61},
		{"as soon as it is asked for", patience, hour, inconclusive, 6},
		{"a controller that does not know its first limit pauses too", old, hour, inconclusive, 61},
		{"Prometheus is away for some minutes", shipped, append(slices.Repeat([]phase{errored}, 60), successful), successful, 61},
		{"Prometheus stays away", shipped, slices.Repeat([]phase{errored}, 1500), errored, 61},
		{"Prometheus comes and goes", shipped, slices.Repeat([]phase{errored, inconclusive}, 1500), inconclusive, 122},
	} {
		got, after := c.metric.ends(c.measured)
		assert.Equal(t, c.want, got, c.name)
		assert.Equal(t, c.after, after, c.name)
	}
	// pkg/apis/rollouts/validation refuses a step that may run for ever, and utils/analysis a count below a limit.
	assert.Greater(t, shipped.Count, shipped.InconclusiveLimit)
	assert.GreaterOrEqual(t, shipped.Count, shipped.FailureLimit+shipped.ConsecutiveSuccessLimit)
	for _, duration := range []string{shipped.Interval, shipped.InitialDelay} {
		_, err := time.ParseDuration(duration)
		assert.NoError(t, err)
	}
}

// TestGateShown: the Rollout that the page shows uses the template as it is.
func TestGateShown(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../deploy/rollouts/README.md")
	require.NoError(t, err)
	type analysis struct {
		Templates []struct {
			TemplateName string `yaml:"templateName"`
		}
		Args []struct {
			Name, Value string
			ValueFrom   map[string]string `yaml:"valueFrom"`
		}
	}
	var rollout struct {
		Spec struct {
			Strategy struct {
				Canary struct {
					Steps []struct{ Analysis *analysis }
				}
			}
		}
	}
	block := yamlBlock.FindSubmatch(page)
	require.NotNil(t, block)
	require.NoError(t, yaml.Unmarshal(block[1], &rollout))
	gates := 0
	for _, step := range rollout.Spec.Strategy.Canary.Steps {
		if step.Analysis == nil {
			continue
		}
		gates++
		require.Len(t, step.Analysis.Templates, 1)
		assert.Equal(t, "llmfleet-canary", step.Analysis.Templates[0].TemplateName)
		args := map[string]string{}
		for _, arg := range step.Analysis.Args {
			args[arg.Name] = arg.Value
			if from := arg.ValueFrom["podTemplateHashValue"]; from != "" {
				assert.Equal(t, "Latest", from)
				args[arg.Name] = "6f7d9c5b4"
			}
		}
		metric := shippedTemplate(t).metric(t, args)
		assert.Regexp(t, `^http://`, metric.Provider.Prometheus.Address)
		assert.Contains(t, metric.Provider.Prometheus.Query, `6f7d9c5b4`)
	}
	assert.Positive(t, gates)
}
