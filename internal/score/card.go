// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// Card is the figures of one run, in the order of its lines.
type Card struct{ Lines []Line }

// Line is one figure.
type Line struct {
	Name  string
	Value float64
	Unit  string // UCUM
	// Target that the value is held to; the zero Target holds it to nothing.
	Target Target
	// Note says what the value stands on.
	Note string
	// Peer tells that the figure is of a rule that we compare ourselves with.
	Peer bool
}

// Target is what a figure has to reach.
type Target struct {
	comparison string
	value      float64
}

func atMost(v float64) Target { return Target{"<=", v} }

func atLeast(v float64) Target { return Target{">=", v} }

// String is the target as it stands on the card.
func (t Target) String() string {
	if t.comparison == "" {
		return "-"
	}
	return t.comparison + strconv.FormatFloat(t.value, 'f', -1, 64)
}

// pass tells whether the line holds. A figure of ours that is no number fails,
// target or not: something was divided by zero, or nothing was found.
func (l *Line) pass() bool {
	switch {
	case l.Peer:
		return true
	case math.IsNaN(l.Value) || math.IsInf(l.Value, 0):
		return false
	case l.Target.comparison == "<=":
		return l.Value <= l.Target.value
	case l.Target.comparison == ">=":
		return l.Value >= l.Target.value
	default:
		return true
	}
}

// String is the line as it stands on the card: name, value, unit, target and
// verdict. A peer's figure is held to nothing, and both are -.
func (l *Line) String() string {
	target, verdict := l.Target.String(), "fail"
	switch {
	case l.Peer:
		target, verdict = "-", "-"
	case l.pass():
		verdict = "pass"
	}
	text := fmt.Sprintf("%s %s %s %s %s", l.Name, short(l.Value), l.Unit, target, verdict)
	if l.Note != "" {
		text += " # " + l.Note
	}
	return text
}

// short writes a value with four significant digits, and all of its integer
// part; one that was never reached is none.
func short(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "none"
	case math.Abs(v) >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	default:
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
}

// Write prints the card. Its error names the lines that fail.
func (c *Card) Write(out io.Writer) error {
	var failures []error
	if len(c.Lines) == 0 {
		failures = append(failures, errors.New("the card is empty"))
	}
	for i := range c.Lines {
		line := &c.Lines[i]
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
		if !line.pass() {
			failures = append(failures, fmt.Errorf("%s is %s, not %s", line.Name, short(line.Value), line.Target))
		}
	}
	return errors.Join(failures...)
}
