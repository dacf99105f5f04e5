// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package scenariotest

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"regexp"
	"strings"

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
