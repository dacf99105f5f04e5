// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package scenariotest

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Figure is one series, and what is said of it.
type Figure struct {
	Text   string
	Name   string
	Labels map[string]string // at least these; one that is "" is not there
	Value  float64
	State  string // absent, ended; "": it has the value
}

var figureLine = regexp.MustCompile(`^([\w.:]+)(?:\{(.*)\})?(?:\s+(.+))?$`)

// Figures reads a figure a line. Where nothing is said of the value it is 1.
func Figures(t T, text string) []Figure {
	t.Helper()
	var all []Figure
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := figureLine.FindStringSubmatch(line)
		require.NotNil(t, parts, "no expectation: %s", line)
		f := Figure{Text: line, Name: parts[1], Labels: map[string]string{}, Value: 1}
		for _, pair := range labelPair.FindAllStringSubmatch(parts[2], -1) {
			f.Labels[pair[1]] = unquote(pair[2])
		}
		switch value := parts[3]; value {
		case "absent", "ended":
			f.State, f.Value = value, 0
		case "":
		default:
			f.Value = calculate(t, value)
		}
		all = append(all, f)
	}
	return all
}

// calculate evaluates a calculation of numbers exactly, and rounds once.
func calculate(t T, text string) float64 {
	t.Helper()
	expression, err := parser.ParseExpr(text)
	require.NoError(t, err, "%s", text)
	value, _ := constant.Float64Val(evaluate(t, expression))
	return value
}

func evaluate(t T, node ast.Expr) constant.Value {
	t.Helper()
	switch x := node.(type) {
	case *ast.BasicLit:
		return constant.ToFloat(constant.MakeFromLiteral(x.Value, x.Kind, 0))
	case *ast.ParenExpr:
		return evaluate(t, x.X)
	case *ast.UnaryExpr:
		return constant.UnaryOp(x.Op, evaluate(t, x.X), 0)
	case *ast.BinaryExpr:
		a, b := evaluate(t, x.X), evaluate(t, x.Y)
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

// Point is one point that came out.
type Point struct {
	Name   string
	Labels map[string]string
	Value  float64
	Ended  bool // it says that there is no value
}

// Series is the point's series as it is written.
func (p *Point) Series() string { return SeriesName(p.Name, p.Labels) }

func (p *Point) has(labels map[string]string) bool {
	for k, v := range labels {
		if p.Labels[k] != v {
			return false
		}
	}
	return true
}

// SeriesName is a series as it is written.
func SeriesName(name string, labels map[string]string) string {
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

// tolerance is how far a value may be from its calculation, relative to it: the
// order of additions differs.
const tolerance = 1e-9

// Check compares the points of one time with what is said of them: of each
// figure there is one point, and with only nothing else.
func Check(t T, at string, figures []Figure, only bool, points []Point) {
	t.Helper()
	claimed := map[string]bool{}
	for _, f := range figures {
		var found []Point
		var alike []string
		for _, p := range points {
			if p.Name != f.Name {
				continue
			}
			alike = append(alike, p.Series())
			if p.has(f.Labels) {
				found = append(found, p)
			}
		}
		at := fmt.Sprintf("@%s %s", at, f.Text)
		if f.State == "absent" {
			assert.Empty(t, found, at)
			continue
		}
		if !assert.Len(t, found, 1, "%s, of\n%s", at, strings.Join(alike, "\n")) {
			continue
		}
		p := found[0]
		claimed[p.Series()] = true
		assert.Equal(t, f.State == "ended", p.Ended, at)
		if f.Value == 0 {
			assert.Zero(t, p.Value, at)
		} else {
			assert.InEpsilon(t, f.Value, p.Value, tolerance, "%s, is %v", at, p.Value)
		}
	}
	if only {
		for _, p := range points {
			assert.True(t, claimed[p.Series()], "@%s unexpected %s %v", at, p.Series(), p.Value)
		}
	}
}
