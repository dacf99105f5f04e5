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
	atMost     float64 // the target, in unit; or untargeted
	measure    func(context.Context) (float64, error)
	note       string // what the value stands on, where the name does not say
}

// untargeted is the target of a figure that is only there to be compared with
// another one.
var untargeted = math.Inf(1)

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
	if value <= f.atMost { // NaN fails
		verdict, pass = "pass", true
	}
	target := "-"
	if f.atMost != untargeted {
		target = "<=" + strconv.FormatFloat(f.atMost, 'f', -1, 64)
	}
	line = fmt.Sprintf("%s %s %s %s %s", f.name, short(value), f.unit, target, verdict)
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
