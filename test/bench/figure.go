// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
)

// figure is one thing that is measured and held to a target.
type figure struct {
	name, unit string
	target     target
	measure    func(context.Context) (float64, error)
	note       string // what the value stands on, where the name does not say
}

// target is what a figure is held to, in its unit.
type target struct {
	comparison string // "" holds it to nothing
	value      float64
}

func atMost(v float64) target { return target{"<=", v} }

func atLeast(v float64) target { return target{">=", v} }

// untargeted is the target of a figure that is only there to be compared with
// another one.
var untargeted = target{}

// met tells whether a value is as it has to be; NaN never is.
func (t target) met(value float64) bool {
	switch t.comparison {
	case "<=":
		return value <= t.value
	case ">=":
		return value >= t.value
	default:
		return !math.IsNaN(value)
	}
}

// String is the target as it stands on the line.
func (t target) String() string {
	if t.comparison == "" {
		return "-"
	}
	return t.comparison + strconv.FormatFloat(t.value, 'f', -1, 64)
}

// line measures the figure and writes it as
//
//	name value unit target pass|fail # note
//
// What cannot be measured is an error, never a pass.
func (f figure) line(ctx context.Context) (line string, pass bool, err error) {
	value, err := f.measure(ctx)
	if err != nil {
		return "", false, fmt.Errorf("%s: %w", f.name, err)
	}
	verdict := "fail"
	if pass = f.target.met(value); pass {
		verdict = "pass"
	}
	line = fmt.Sprintf("%s %s %s %s %s", f.name, short(value), f.unit, f.target, verdict)
	if f.note != "" {
		line += " # " + f.note
	}
	return line, pass, nil
}

// short writes a value with four significant digits, and all of its integer part.
func short(value float64) string {
	if math.Abs(value) >= 1000 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(value, 'g', 4, 64)
}
