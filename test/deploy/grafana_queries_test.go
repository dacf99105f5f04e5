// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	grafana "github.com/grafana/grafana-foundation-sdk/go/prometheus"
	promapi "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
)

// question is a query of a panel.
type question struct {
	from  string // dashboard and panel
	graph bool   // asked for a range of time
	*grafana.Dataquery
}

func questions(t *testing.T, d classic) (all []question) {
	t.Helper()
	for _, p := range panels(t, d) {
		for _, target := range p.Targets {
			query, ok := target.(*grafana.Dataquery)
			require.True(t, ok, "%T", target)
			all = append(all, question{fmt.Sprintf("%s: %s", *d.Uid, *p.Title), p.Type == "timeseries", query})
		}
	}
	return all
}

// values are what the variables of a dashboard stand for in queries.
type values map[string]string

var variable = regexp.MustCompile(`\$\{?(\w+)\}?`)

// fill puts values in place of variables, as Grafana does before it asks.
func (v values) fill(t *testing.T, text string) string {
	t.Helper()
	return variable.ReplaceAllStringFunc(text, func(found string) string {
		value, ok := v[strings.Trim(found, "${}")]
		require.True(t, ok, "%s in %s", found, text)
		return value
	})
}

// timeOnView is the range of time on view, and the least that Grafana takes for a rate.
var timeOnView = values{"__range": "15m", "__rate_interval": "2m"}

var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// offered asks for the values of a variable, under those of the variables before it.
func (p *platform) offered(t *testing.T, v dashboard.VariableModel, before values) []string {
	t.Helper()
	query := labelValues.FindStringSubmatch(*v.Definition)
	require.NotNil(t, query, *v.Definition)
	require.Equal(t, *v.Definition, v.Query.Map["query"])
	found, _, err := p.api.LabelValues(context.Background(), query[2], []string{before.fill(t, query[1])}, p.start, time.Now())
	require.NoError(t, err, *v.Definition)
	names := make([]string, len(found))
	for i, value := range found {
		names[i] = string(value)
	}
	return names
}

// chosen is what a reader may have chosen: all values of each variable, or each value of it by its name; of a variable that has
// one at a time, the first, or else each in turn.
func (p *platform) chosen(t *testing.T, d classic, byName bool) []values {
	t.Helper()
	all := []values{timeOnView}
	for _, v := range d.Templating.List {
		if v.Type != dashboard.VariableTypeQuery {
			continue
		}
		var next []values
		for _, before := range all {
			for _, value := range expanded(t, v, p.offered(t, v, before), byName) {
				with := maps.Clone(before)
				with[v.Name] = value
				next = append(next, with)
			}
		}
		all = next
	}
	return all
}

// expanded is what Grafana puts in place of a variable.
func expanded(t *testing.T, v dashboard.VariableModel, offered []string, byName bool) []string {
	t.Helper()
	switch {
	case v.AllValue != nil && (!byName || len(offered) == 0):
		return []string{*v.AllValue}
	case v.AllValue != nil:
		quoted := make([]string, len(offered))
		for i, name := range offered {
			quoted[i] = strings.ReplaceAll(regexp.QuoteMeta(name), `\`, `\\`)
		}
		return []string{"(" + strings.Join(quoted, "|") + ")"}
	case v.Current != nil && v.Current.Value.String != nil:
		require.Contains(t, offered, *v.Current.Value.String, v.Name)
		return []string{*v.Current.Value.String}
	default:
		require.NotEmpty(t, offered, v.Name)
		return offered
	}
}

// untold are metrics of which the recorded page of Kubernetes tells nothing: it has no InferencePool, no shared device, and no
// claim that waits.
var untold = []string{"llmfleet_inference_pool_members", "llmfleet_inference_pool_ready", "llmfleet_dra_device_shared_ratio", `llmfleet_dra_claim_age_seconds{cluster=~"$cluster", state="pending"}`}

// dashboardsHaveData: each panel shows something, whether all is chosen or each by its name; one that only shows faults, without
// the comparison that leaves out the rest.
func dashboardsHaveData(t *testing.T, p *platform) {
	t.Helper()
	p.tellFailedStart(t, 3)
	p.tellOpenStart(t, 4)
	p.tellStart(t, 1, 0.5) // again, which is of no use
	for _, d := range dashboards(t) {
		for _, byName := range []bool{false, true} {
			asked := slices.DeleteFunc(questions(t, d), func(q question) bool {
				return slices.ContainsFunc(untold, func(metric string) bool { return strings.Contains(q.Expr, metric) })
			})
			chosen := p.chosen(t, d, byName)
			var missing []string
			require.Eventually(t, func() bool {
				asked = slices.DeleteFunc(asked, func(q question) bool {
					return slices.ContainsFunc(chosen, func(v values) bool { return p.answers(t, q, v) })
				})
				still := make([]string, len(asked))
				for i, q := range asked {
					still[i] = q.from + ": " + q.Expr
				}
				missing = still
				return len(missing) == 0
			}, time.Minute, time.Second, "by name: %t; nothing is shown by %v", byName, &missing)
		}
	}
}

// answers tells whether a query has a number for an answer, and asks it as it stands, too.
func (p *platform) answers(t *testing.T, q question, v values) bool {
	t.Helper()
	query := v.fill(t, q.Expr)
	p.ask(t, query, q.graph)
	return slices.ContainsFunc(p.ask(t, withoutComparisons(t, query), q.graph), func(n float64) bool { return !math.IsNaN(n) })
}

// ask evaluates a query now or, for a graph, at several instants, and returns all numbers.
func (p *platform) ask(t *testing.T, query string, graph bool) (numbers []float64) {
	t.Helper()
	if !graph {
		for _, sample := range p.now(query) {
			numbers = append(numbers, float64(sample.Value))
		}
		return numbers
	}
	end := time.Now()
	result, _, err := p.api.QueryRange(context.Background(), query, promapi.Range{Start: end.Add(-time.Minute), End: end, Step: 15 * time.Second})
	require.NoError(t, err, query)
	for _, series := range result.(model.Matrix) {
		for _, sample := range series.Values {
			numbers = append(numbers, float64(sample.Value))
		}
	}
	return numbers
}

// tellFailedStart tells the collector of a pod that was deleted when it would have been ready.
func (p *platform) tellFailedStart(t *testing.T, n int) {
	t.Helper()
	p.tellStart(t, n, 0.5, func(record plog.LogRecord) {
		if record.EventName() == "llmfleet.pod.ready" {
			record.SetEventName("llmfleet.pod.deleted")
		}
	})
}

// tellOpenStart tells it of a pod that is not ready yet.
func (p *platform) tellOpenStart(t *testing.T, n int) {
	t.Helper()
	p.tellStart(t, n, 0.5, func(record plog.LogRecord) {
		if slices.Contains([]string{"llmfleet.pod.ready", "llmfleet.replica.first_token"}, record.EventName()) {
			record.SetEventName("not.yet")
		}
	})
}

// TestNothingIsShownOfNothing: on a Prometheus without data each panel and trigger is empty. None makes a zero of it.
func TestNothingIsShownOfNothing(t *testing.T) {
	t.Parallel()
	p := &platform{prometheus: startPrometheus(t, "scrape_configs: []"), start: time.Now()}
	for _, d := range dashboards(t) {
		filled := maps.Clone(timeOnView)
		for _, v := range d.Templating.List {
			filled[v.Name] = ".*"
		}
		for _, q := range questions(t, d) {
			assert.Empty(t, p.ask(t, filled.fill(t, q.Expr), q.graph), "%s: %s", q.from, q.Expr)
		}
	}
	for name, query := range triggers(t) {
		assert.Empty(t, p.now(query), name)
	}
}

// TestDashboardsAskForWhatThereIs: each query reads metrics of ours, by labels that these have.
func TestDashboardsAskForWhatThereIs(t *testing.T) {
	known := labelsOfMetrics(t)
	filled := maps.Clone(timeOnView)
	for uid, d := range dashboards(t) {
		for _, v := range d.Templating.List {
			filled[v.Name] = ".*"
		}
		for _, q := range questions(t, d) {
			expr, err := promQL.ParseExpr(filled.fill(t, q.Expr))
			require.NoError(t, err, q.from)
			labels := labelsRead(t, expr, known)
			for _, braces := range legendLabel.FindAllStringSubmatch(*q.legend(), -1) {
				assert.Contains(t, labels, braces[1], "%s: the legend of %s", q.from, q.Expr)
			}
			parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
				if by, ok := node.(*parser.AggregateExpr); ok {
					assert.Subset(t, labelsRead(t, by.Expr, known), by.Grouping, "%s: %s", q.from, q.Expr)
				}
				return nil
			})
			require.NotEmpty(t, labels, "%s: %s", uid, q.Expr)
		}
	}
}

var legendLabel = regexp.MustCompile(`{{(\w+)}}`)

func (q question) legend() *string {
	if q.LegendFormat == nil {
		return new(string)
	}
	return q.LegendFormat
}

// labelsRead are the labels of all metrics that an expression reads; they have those by which it selects.
func labelsRead(t *testing.T, expr parser.Node, known map[string][]string) (all []string) {
	t.Helper()
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if v, ok := node.(*parser.VectorSelector); ok {
			labels, ok := known[v.Name]
			require.True(t, ok, "%s is no metric of ours", v)
			for _, m := range v.LabelMatchers {
				assert.Contains(t, append(labels, "__name__"), m.Name, "%s", v)
			}
			all = append(all, labels...)
		}
		return nil
	})
	return all
}

// labelsOfMetrics are the labels of each metric that llmfleet has, by its name in Prometheus.
func labelsOfMetrics(t *testing.T) map[string][]string {
	t.Helper()
	of := map[string][]string{"platform": {"cluster"}, "itself": nil, "node": {"cluster", "node"}}
	of["fleet"] = []string{"cluster", "namespace", "model_name", "role", "engine_name", "gpu_model"}
	of["replica"] = append(slices.Clone(of["fleet"]), "replica", "pod", "model_revision", "engine_version", "config_hash")
	of["tenant"] = append(slices.Clone(of["fleet"]), "tenant")
	of["tier"] = append(slices.Clone(of["fleet"]), "tier")
	of["canary"] = append(slices.Clone(of["fleet"]), "canary", "baseline")
	known := map[string][]string{}
	for line := range strings.Lines(readFile(t, namesFile)) {
		columns := strings.Split(strings.TrimSpace(line), " | ")
		if len(columns) < 7 || columns[0] == "# name" {
			continue
		}
		scope, ok := of[columns[3]]
		require.True(t, ok, line)
		labels := append([]string{"job", "instance"}, scope...)
		labels = append(labels, strings.Split(columns[4], ",")...)
		known[columns[0]] = labels
		known[columns[0]+"_count"] = labels
		known[columns[0]+"_bucket"] = append(slices.Clone(labels), "le")
	}
	return known
}
