// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// filledChecks run on one platform on which all goes on at once that is ever told.
var filledChecks = []struct {
	name  string
	check func(*testing.T, *platform)
}{
	{"rules", rulesHaveData},
	{"dashboards", dashboardsHaveData},
	{"scaling", scalingHasData},
}

// TestFilled: what is shipped has data on a platform with a slow replica, a noisy tenant, a canary, starts of replicas, and
// pods that wait for GPUs.
func TestFilled(t *testing.T) {
	t.Parallel()
	p := startPlatform(t, setting{
		warmup: 30 * time.Second,
		faults: []fleetsim.Fault{
			{Kind: fleetsim.Slow, Fleet: "code", Replicas: []int{1}, Factor: 2.5, From: 30 * time.Second},
			surge(75 * time.Second),
			rollout(20 * time.Second),
		},
		engines: true,
	})
	p.tellStart(t, 1, 0.5)
	p.cluster.show(t, "pending")
	p.awaitData(
		4*time.Minute,
		`llmfleet_replica_outlier == 1`, `llmfleet_node_outlier`, `llmfleet_tenant_noisy`, `llmfleet_canary_verdict == 1`, `llmfleet_canary_ratio`,
		`llmfleet_gpu_pending_pods`, `fleet:coldstart_duration_seconds_bucket:increase1h`,
	)
	p.tellStart(t, 2, 0.5)
	for _, c := range filledChecks {
		t.Run(c.name, func(t *testing.T) { c.check(t, p) })
	}
}

// rulesHaveData: each rule has an answer, an alert with the comparison taken away by which it fires.
func rulesHaveData(t *testing.T, p *platform) {
	t.Helper()
	for _, path := range ruleFiles {
		for _, group := range readRules(t, path).Groups {
			for _, rule := range group.Rules {
				query := hastenExpr(t, rule.Expr)
				if rule.Alert != "" {
					query = withoutComparisons(t, query)
				}
				assert.NotEmpty(t, p.now(query), "%s%s: %s", rule.Record, rule.Alert, query)
			}
		}
	}
}

// withoutComparisons replaces each comparison with a number by what is compared, and absent(x) by x.
func withoutComparisons(t *testing.T, query string) string {
	t.Helper()
	expr, err := promQL.ParseExpr(query)
	require.NoError(t, err, query)
	return bare(expr).String()
}

func bare(expr parser.Expr) parser.Expr {
	switch e := expr.(type) {
	case *parser.BinaryExpr:
		if _, number := e.RHS.(*parser.NumberLiteral); number && e.Op.IsComparisonOperator() {
			return bare(e.LHS)
		}
		e.LHS, e.RHS = bare(e.LHS), bare(e.RHS)
	case *parser.ParenExpr:
		e.Expr = bare(e.Expr)
	case *parser.AggregateExpr:
		e.Expr = bare(e.Expr)
	case *parser.Call:
		if e.Func.Name == "absent" {
			return bare(e.Args[0])
		}
		for i := range e.Args {
			e.Args[i] = bare(e.Args[i])
		}
	}
	return expr
}

// TestWithoutComparisons: what makes an alert silent is gone, and nothing else.
func TestWithoutComparisons(t *testing.T) {
	assert.Equal(t, `up or absent_over_time(a[5m])`, withoutComparisons(t, `up == 0 or absent_over_time(a[5m]) > 0`))
	assert.Equal(t, `a`, withoutComparisons(t, `absent(a)`))
	assert.Equal(t, `label_replace(rate(a[5m]), "b", "c", "", "") and b > c`, withoutComparisons(t, `label_replace(rate(a[5m]) > 0, "b", "c", "", "") and b > c`))
}

// zeroOfNothing makes a number of an empty answer: a query with it is never silent where nothing is known.
var zeroOfNothing = regexp.MustCompile(`\bor\s+(?:on\s*\([^)]*\)\s*)?vector\s*\(`)

// withQueries are the extensions of files that may have queries.
var withQueries = []string{".yaml", ".yml", ".json", ".md", ".tpl", ".txt"}

// TestNoQueryMakesAZeroOfNothing: neither rules, alerts, dashboards, scaling triggers nor documentation.
func TestNoQueryMakesAZeroOfNothing(t *testing.T) {
	read := 0
	for _, root := range []string{"../../deploy", "../../docs", "../../examples", "../../README.md"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() || !slices.Contains(withQueries, filepath.Ext(path)) {
				return err
			}
			read++
			text, err := os.ReadFile(path)
			assert.NotRegexp(t, zeroOfNothing, string(text), path)
			return err
		}))
	}
	assert.Greater(t, read, 20)
	for query, found := range map[string]bool{"a or vector(0)": true, "a or on () vector (0)": true, "a or\n  vector(0)": true, "vector(1)": false} {
		assert.Equal(t, found, zeroOfNothing.MatchString(query), query)
	}
}
