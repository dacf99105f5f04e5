// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// expectation is what is told at one time.
type expectation struct {
	at      time.Duration
	only    bool // nothing else is
	figures []figure
}

// figure is one series, and what is said of it.
type figure struct {
	text   string
	name   string
	labels map[string]string // at least these
	value  float64
	state  string // absent, ended; "": it has the value
}

func readExpectations(t tester, text string) []expectation {
	t.Helper()
	var all []expectation
	for block := range strings.SplitSeq("\n"+text, "\n@") {
		heading, body, _ := strings.Cut(block, "\n")
		words := strings.Fields(heading)
		if len(words) == 0 {
			continue
		}
		times, rest := readTimes(t, words)
		for _, at := range times {
			e := expectation{at: at, figures: readFigures(t, body)}
			for _, word := range rest {
				require.Equal(t, "only", word)
				e.only = true
			}
			all = append(all, e)
		}
	}
	return all
}

var figureLine = regexp.MustCompile(`^([\w.]+)(?:\{(.*)\})?\s+(.+)$`)

func readFigures(t tester, text string) []figure {
	t.Helper()
	var all []figure
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := figureLine.FindStringSubmatch(line)
		require.NotNil(t, parts, "no expectation: %s", line)
		f := figure{text: line, name: parts[1], labels: map[string]string{}}
		for pair := range strings.SplitSeq(parts[2], ",") {
			if name, value, ok := strings.Cut(pair, "="); ok {
				f.labels[strings.TrimSpace(name)] = strings.Trim(value, `"`)
			}
		}
		if parts[3] == "absent" || parts[3] == "ended" {
			f.state = parts[3]
		} else {
			f.value = calculate(t, parts[3])
		}
		all = append(all, f)
	}
	return all
}

// calculate evaluates a calculation of numbers exactly, and rounds once.
func calculate(t tester, text string) float64 {
	t.Helper()
	expression, err := parser.ParseExpr(text)
	require.NoError(t, err, "%s", text)
	value, _ := constant.Float64Val(evaluateNode(t, expression))
	return value
}

func evaluateNode(t tester, node ast.Expr) constant.Value {
	t.Helper()
	switch x := node.(type) {
	case *ast.BasicLit:
		return constant.ToFloat(constant.MakeFromLiteral(x.Value, x.Kind, 0))
	case *ast.ParenExpr:
		return evaluateNode(t, x.X)
	case *ast.UnaryExpr:
		return constant.UnaryOp(x.Op, evaluateNode(t, x.X), 0)
	case *ast.BinaryExpr:
		a, b := evaluateNode(t, x.X), evaluateNode(t, x.Y)
		if x.Op == token.QUO {
			// Of whole numbers, too, this is a fraction.
			return constant.BinaryOp(constant.ToFloat(a), token.QUO, constant.ToFloat(b))
		}
		return constant.BinaryOp(a, x.Op, b)
	default:
		require.Failf(t, "no calculation", "%T", node)
		return nil
	}
}

// tolerance is how far a value may be from its calculation, relative to it: the
// order of additions differs.
const tolerance = 1e-9

// checkExpectation compares what was told at one time with what was expected.
func checkExpectation(t tester, e *expectation, points []point) {
	t.Helper()
	claimed := map[string]bool{}
	for _, f := range e.figures {
		var found []point
		for _, p := range points {
			if p.name == f.name && p.has(f.labels) {
				found = append(found, p)
			}
		}
		at := fmt.Sprintf("@%s %s", e.at, f.text)
		if f.state == "absent" {
			assert.Empty(t, found, at)
			continue
		}
		if !assert.Len(t, found, 1, at) {
			continue
		}
		p := found[0]
		claimed[p.series()] = true
		assert.Equal(t, f.state == "ended", p.ended, at)
		if f.value == 0 {
			assert.Zero(t, p.value, at)
		} else {
			assert.InEpsilon(t, f.value, p.value, tolerance, at)
		}
	}
	if e.only {
		for _, p := range points {
			assert.True(t, claimed[p.series()], "@%s unexpected %s %v", e.at, p.series(), p.value)
		}
	}
}

// checkTelemetry compares the counts. Reasons of `ignored` that are not listed
// must not have occurred.
func checkTelemetry(t *testing.T, expected []figure, telemetry *componenttest.Telemetry) {
	t.Helper()
	if expected == nil {
		return
	}
	counts := readTelemetry(t, telemetry)
	listed := map[string]bool{}
	for _, f := range expected {
		series := seriesName(f.name, f.labels)
		listed[series] = true
		assert.InDelta(t, f.value, counts[series], 0, series)
	}
	for series, n := range counts {
		assert.True(t, listed[series] || !strings.HasPrefix(series, "ignored{"), "unexpected %s %v", series, n)
	}
}

func readTelemetry(t *testing.T, telemetry *componenttest.Telemetry) map[string]float64 {
	t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(t, telemetry.Reader.Collect(t.Context(), &rm))
	counts := map[string]float64{}
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			name := strings.TrimPrefix(m.Name, "otelcol_processor_fleet_outlier_")
			var points []metricdata.DataPoint[int64]
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				points = data.DataPoints
			case metricdata.Gauge[int64]:
				points = data.DataPoints
			}
			for _, p := range points {
				labels := map[string]string{}
				for _, kv := range p.Attributes.ToSlice() {
					labels[string(kv.Key)] = kv.Value.AsString()
				}
				counts[seriesName(name, labels)] = float64(p.Value)
			}
		}
	}
	return counts
}

// seriesName is a series as it is written.
func seriesName(name string, labels map[string]string) string {
	if len(labels) == 0 {
		return name
	}
	var pairs []string
	for k, v := range labels {
		pairs = append(pairs, fmt.Sprintf("%s=%q", k, v))
	}
	slices.Sort(pairs)
	return name + "{" + strings.Join(pairs, ",") + "}"
}
