// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ruleGroup is what the tests read of a group of rules, in a file for Prometheus as in a PrometheusRule.
type ruleGroup struct {
	Name  string
	Rules []map[string]any
}

// rendersRules returns the groups of the PrometheusRule that the chart makes.
func rendersRules(t *testing.T, flags ...string) []ruleGroup {
	t.Helper()
	all := installation{flags: append([]string{"--set=rules.enabled=true"}, flags...)}.render(t)
	i := slices.IndexFunc(all, func(m manifest) bool { return m.Kind == "PrometheusRule" })
	require.GreaterOrEqual(t, i, 0)
	var found struct{ Spec struct{ Groups []ruleGroup } }
	decodeInto(t, all[i].text, &found)
	return withoutComments(found.Spec.Groups)
}

// writtenRules returns the groups of deploy/prometheus.
func writtenRules(t *testing.T) []ruleGroup {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository, "deploy", "prometheus", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all []ruleGroup
	for _, file := range files {
		var read struct{ Groups []ruleGroup }
		readYAML(t, file, &read)
		all = append(all, read.Groups...)
	}
	return withoutComments(all)
}

// withoutComments writes each expression as Prometheus does.
func withoutComments(groups []ruleGroup) []ruleGroup {
	for _, group := range groups {
		for _, rule := range group.Rules {
			if text, ok := rule["expr"].(string); ok {
				if expression, err := parser.NewParser(parser.Options{}).ParseExpr(text); err == nil {
					rule["expr"] = expression.String()
				}
			}
		}
	}
	return groups
}

// TestRulesAreThose: without a word about them, the rules are those of deploy/prometheus.
func TestRulesAreThose(t *testing.T) {
	t.Parallel()
	assert.Equal(t, writtenRules(t), rendersRules(t))
}

// TestObjectivesAreYours: the objectives of latency stand in the one rule of each, and nothing else is another.
func TestObjectivesAreYours(t *testing.T) {
	t.Parallel()
	for signal, c := range map[string]struct{ of, yours string }{"ttft": {"2", "3.5"}, "itl": {"0.1", "0.025"}} {
		changed := 0
		want := writtenRules(t)
		objective := regexp.MustCompile(`(signal="` + signal + `".* > bool )` + regexp.QuoteMeta(c.of) + `$`)
		for _, group := range want {
			for _, rule := range group.Rules {
				before, _ := rule["expr"].(string)
				after := objective.ReplaceAllString(before, "${1}"+c.yours)
				if after != before {
					changed++
				}
				rule["expr"] = after
			}
		}
		require.Equal(t, 1, changed, signal)
		assert.Equal(t, want, rendersRules(t, "--set-json=rules.objectives."+signal+"="+c.yours), signal)
	}
}

// TestRulesWithout: alerts that are left out are gone, and all others stay.
func TestRulesWithout(t *testing.T) {
	t.Parallel()
	unwanted := []any{"GPUPodsPending", "LlmfleetDown"}
	want, gone := writtenRules(t), 0
	for i := range want {
		rules := slices.DeleteFunc(slices.Clone(want[i].Rules), func(rule map[string]any) bool { return slices.Contains(unwanted, rule["alert"]) })
		gone += len(want[i].Rules) - len(rules)
		want[i].Rules = rules
	}
	require.GreaterOrEqual(t, gone, len(unwanted))
	assert.Equal(t, want, rendersRules(t, "--set=rules.without={GPUPodsPending,LlmfleetDown}"))
}
