// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/expr-lang/expr"
	"github.com/prometheus/client_golang/api"
	promapi "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// What follows does with an AnalysisTemplate what Argo Rollouts v1.10.2 does, whose module cannot be required here: it
// fixes Kubernetes at another version. Conditions go through the expression library at the version that it requires.

// phase is how a measurement, or a run of them, ended.
type phase string

const (
	running      phase = "Running"
	successful   phase = "Successful"
	failed       phase = "Failed"
	inconclusive phase = "Inconclusive"
	errored      phase = "Error"
)

// analysisTemplate is an AnalysisTemplate with one metric.
type analysisTemplate struct {
	Args []struct {
		Name  string
		Value *string
	}
	Metrics []any
}

// analysisMetric is a metric whose arguments are filled in. It has no other keys than the shipped one.
type analysisMetric struct {
	Name                   string
	InitialDelay, Interval string
	Provider               struct {
		Prometheus struct{ Address, Query string }
	}
	SuccessCondition        string
	FailureCondition        string
	Count                   limit
	FailureLimit            limit
	InconclusiveLimit       limit
	ConsecutiveErrorLimit   limit
	ConsecutiveSuccessLimit limit
}

// limit is Kubernetes' IntOrString: text that is no number is 0.
type limit int

func (l *limit) UnmarshalJSON(text []byte) error {
	n, _ := strconv.Atoi(strings.Trim(string(text), `"`))
	*l = limit(n)
	return nil
}

// shippedTemplate is that of deploy/rollouts.
func shippedTemplate(t *testing.T) analysisTemplate {
	t.Helper()
	content, err := os.ReadFile("../../deploy/rollouts/analysistemplate.yaml")
	require.NoError(t, err)
	var file struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct{ Name string }
		Spec       analysisTemplate
	}
	require.NoError(t, yaml.Unmarshal(content, &file))
	require.Equal(t, "argoproj.io/v1alpha1 AnalysisTemplate llmfleet-canary", file.APIVersion+" "+file.Kind+" "+file.Metadata.Name)
	require.Len(t, file.Spec.Metrics, 1)
	return file.Spec
}

var placeholder = regexp.MustCompile(`\{\{([^}]*)\}\}`)

// metric is the template's, with arguments filled in where it has a placeholder in its JSON (utils/analysis/factory.go,
// ResolveMetricArgs).
func (a analysisTemplate) metric(t *testing.T, given map[string]string) (m analysisMetric) {
	t.Helper()
	args := map[string]string{}
	for _, arg := range a.Args {
		value, ok := given[arg.Name]
		if !ok {
			require.NotNil(t, arg.Value, "argument %q was not supplied", arg.Name)
			value = *arg.Value
		}
		args["args."+arg.Name] = value
	}
	require.Len(t, args, len(a.Args), "arguments that stand twice")
	for name := range given {
		require.Contains(t, args, "args."+name, "the template has no such argument")
	}
	text, err := json.Marshal(a.Metrics[0])
	require.NoError(t, err)
	resolved := placeholder.ReplaceAllStringFunc(string(text), func(found string) string {
		value, ok := args[strings.TrimSpace(strings.Trim(found, "{}"))]
		require.True(t, ok, "%s is no argument", found)
		quoted := strconv.Quote(value)
		return quoted[1 : len(quoted)-1]
	})
	decoder := json.NewDecoder(strings.NewReader(resolved))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&m))
	return m
}

// measure asks Prometheus once (metricproviders/prometheus/prometheus.go, Run).
func (m analysisMetric) measure() (phase, string) {
	client, err := api.NewClient(api.Config{Address: m.Provider.Prometheus.Address})
	if err != nil {
		return errored, err.Error()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	response, _, err := promapi.NewAPI(client).Query(ctx, m.Provider.Prometheus.Query, time.Now())
	if err != nil {
		return errored, err.Error()
	}
	switch value := response.(type) {
	case *model.Scalar:
		return m.assess(float64(value.Value))
	case model.Vector:
		results := make([]float64, 0, len(value))
		for _, sample := range value {
			results = append(results, float64(sample.Value))
		}
		return m.assess(results)
	default:
		return errored, fmt.Sprintf("a result of type %T", response)
	}
}

// assess holds a result against the conditions (utils/evaluate/evaluate.go, EvaluateResult).
func (m analysisMetric) assess(result any) (phase, string) {
	said := fmt.Sprint(result)
	success, err := holds(m.SuccessCondition, result)
	if err != nil {
		return errored, err.Error()
	}
	failure, err := holds(m.FailureCondition, result)
	if err != nil {
		return errored, err.Error()
	}
	switch {
	case m.SuccessCondition == "":
		success = !failure
	case m.FailureCondition == "":
		failure = !success
	}
	switch {
	case failure:
		return failed, said
	case success:
		return successful, said
	default:
		return inconclusive, said
	}
}

// holds evaluates a condition of a result (utils/evaluate/evaluate.go, EvalCondition).
func holds(condition string, result any) (bool, error) {
	if condition == "" {
		return false, nil
	}
	env := map[string]any{
		"result": result,
		"isNaN":  math.IsNaN,
		"isInf":  func(f float64) bool { return math.IsInf(f, 0) },
	}
	program, err := expr.Compile(condition, expr.Env(env))
	if err != nil {
		return false, err
	}
	output, err := expr.Run(program, env)
	if err != nil {
		return false, err
	}
	value, ok := output.(bool)
	if !ok {
		return false, fmt.Errorf("expected bool, but got %T", output)
	}
	return value, nil
}

// analysisRun is what has been measured for a metric so far (analysis/analysis.go).
type analysisRun struct {
	metric                                  analysisMetric
	count, failed, inconclusive             limit
	consecutiveErrors, consecutiveSuccesses limit
}

// add counts a measurement in, and tells how the run stands (runMeasurements, assessMetricStatus).
func (r *analysisRun) add(measured phase) phase {
	r.count++
	switch measured {
	case successful:
		r.consecutiveErrors, r.consecutiveSuccesses = 0, r.consecutiveSuccesses+1
	case failed:
		r.consecutiveErrors, r.consecutiveSuccesses, r.failed = 0, 0, r.failed+1
	case inconclusive:
		r.consecutiveErrors, r.consecutiveSuccesses, r.inconclusive = 0, 0, r.inconclusive+1
	case errored:
		r.consecutiveErrors, r.consecutiveSuccesses = r.consecutiveErrors+1, 0
		r.count-- // an error is no measurement
	}
	m := &r.metric
	switch {
	case r.consecutiveErrors > m.ConsecutiveErrorLimit:
		return errored
	case r.inconclusive > m.InconclusiveLimit:
		return inconclusive
	case m.FailureLimit >= 0 && r.failed > m.FailureLimit:
		return failed
	case m.ConsecutiveSuccessLimit > 0 && r.consecutiveSuccesses >= m.ConsecutiveSuccessLimit:
		return successful
	case m.Count == 0 || r.count < m.Count:
		return running
	case m.ConsecutiveSuccessLimit == 0:
		return successful
	case m.FailureLimit >= 0:
		return inconclusive
	default:
		return failed
	}
}

// ends is how a run ends whose measurements end in these ways, and after how many of them.
func (m analysisMetric) ends(measured []phase) (end phase, after int) {
	run := analysisRun{metric: m}
	for i, p := range measured {
		if end := run.add(p); end != running {
			return end, i + 1
		}
	}
	return running, len(measured)
}

// TestArgoRollouts: the copy of Argo Rollouts does what its documentation says of results and limits
// (docs/features/analysis.md, sections "Handling Metric Results", "Inconclusive Runs" and "ConsecutiveSuccessLimit and
// FailureLimit"), and what issue 1466 tells of an index into an empty result.
func TestArgoRollouts(t *testing.T) {
	t.Parallel()
	nan, empty := math.NaN(), []float64{}
	for _, c := range []struct {
		success, failure string
		result           any
		want             phase
	}{
		{"isNaN(result) || result >= 0.95", "", nan, successful},
		{"result >= 0.95", "result < 0.95", nan, inconclusive},
		{"result >= 0.95", "", nan, failed},
		{"result >= 0.95", "", math.Inf(1), successful},
		{"", "isInf(result)", math.Inf(1), failed},
		{"len(result) == 0 || result[0] >= 0.95", "", empty, successful},
		{"len(result) > 0 && result[0] >= 0.95", "", empty, failed},
		{"result[0] >= 0.90", "result[0] < 0.50", []float64{0.7}, inconclusive},
		{"result[0] >= 0.90", "result[0] < 0.50", empty, errored},
		{"result[0]", "", []float64{1}, errored},
	} {
		got, said := analysisMetric{SuccessCondition: c.success, FailureCondition: c.failure}.assess(c.result)
		assert.Equal(t, c.want, got, "%s, %s of %v: %s", c.success, c.failure, c.result, said)
	}
	for _, c := range []struct {
		name     string
		metric   analysisMetric
		measured []phase
		want     phase
	}{
		{"no failure is tolerated by default", analysisMetric{Count: 3}, []phase{successful, failed}, failed},
		{"as many as the limit are", analysisMetric{Count: 3, FailureLimit: 1}, []phase{failed, successful, failed}, failed},
		{"count reached", analysisMetric{Count: 3, FailureLimit: 1}, []phase{failed, successful, successful}, successful},
		{"no count", analysisMetric{}, slices.Repeat([]phase{successful}, 99), running},
		{"successes in a row", analysisMetric{FailureLimit: -1, ConsecutiveSuccessLimit: 2}, []phase{successful, failed, successful, successful}, successful},
		{"not so many, failures allowed", analysisMetric{Count: 2, FailureLimit: -1, ConsecutiveSuccessLimit: 2}, []phase{failed, successful}, failed},
		{"neither limit reached", analysisMetric{Count: 2, FailureLimit: 1, ConsecutiveSuccessLimit: 2}, []phase{failed, successful}, inconclusive},
		{"errors in a row", analysisMetric{ConsecutiveErrorLimit: 4}, slices.Repeat([]phase{errored}, 5), errored},
	} {
		got, after := c.metric.ends(c.measured)
		assert.Equal(t, c.want, got, c.name)
		assert.Equal(t, len(c.measured), after, c.name)
	}
}
