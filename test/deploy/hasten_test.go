// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/llmfleet/llmfleet/test/binarytest"
)

// hastened is how many times as fast time runs in the rules that a test loads: a minute of theirs is three seconds. Nothing else
// of them is changed.
const hastened = 20

// ruleFiles are what users load, from this package's folder.
var ruleFiles = []string{"../../deploy/prometheus/rules.yaml", "../../deploy/prometheus/alerts.yaml"}

// promQL reads queries as a server without feature flags does.
var promQL = parser.NewParser(parser.Options{})

// readRules reads a file of rules.
func readRules(t *testing.T, path string) *rulefmt.RuleGroups {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	groups, errs := rulefmt.Parse(text, false, model.UTF8Validation, promQL, slog.Default())
	require.Empty(t, errs, path)
	return groups
}

// hastenedRules writes the rule files anew, with every span of time divided by hastened, and returns their paths.
func hastenedRules(t *testing.T) (paths []string) {
	t.Helper()
	for _, path := range ruleFiles {
		groups := readRules(t, path)
		for i := range groups.Groups {
			group := &groups.Groups[i]
			group.Interval = hasten(group.Interval)
			for j := range group.Rules {
				rule := &group.Rules[j]
				rule.Expr = hastenExpr(t, rule.Expr)
				rule.For, rule.KeepFiringFor = hasten(rule.For), hasten(rule.KeepFiringFor)
			}
		}
		text, err := yaml.Marshal(groups)
		require.NoError(t, err)
		paths = append(paths, binarytest.WriteFile(t, filepath.Base(path), string(text)))
	}
	return paths
}

func hasten[T ~int64](span T) T { return span / hastened }

// hastenExpr divides the ranges and offsets of an expression.
func hastenExpr(t *testing.T, text string) string {
	t.Helper()
	expr, err := promQL.ParseExpr(text)
	require.NoError(t, err, text)
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.MatrixSelector:
			n.Range = hasten(n.Range)
		case *parser.VectorSelector:
			n.OriginalOffset = hasten(n.OriginalOffset)
		case *parser.SubqueryExpr:
			n.Range, n.Step, n.OriginalOffset = hasten(n.Range), hasten(n.Step), hasten(n.OriginalOffset)
		}
		return nil
	})
	return expr.String()
}

// TestHaste: spans of time are divided, whatever they stand in, and numbers are not.
func TestHaste(t *testing.T) {
	require.Equal(t, 3*time.Second, hasten(time.Minute))
	require.Equal(t,
		`max_over_time(rate(a{b="5m"}[15s] offset 3m)[1m30s:3s]) > 300`,
		hastenExpr(t, `max_over_time(rate(a{b="5m"}[5m] offset 1h)[30m:1m]) > 300`))
}
