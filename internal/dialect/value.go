// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"math"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// typeNames are the metric types that a dialect file may say.
var typeNames = []string{fleet.Histogram.String(), fleet.Gauge.String(), fleet.Counter.String()}

// choose reads one of a few words; the word's place is the value.
func choose[T ~uint8](c cursor, words []string, into *T) error {
	var word string
	if err := c.text(&word); err != nil {
		return err
	}
	for i, known := range words {
		if word == known {
			*into = T(i)
			return nil
		}
	}
	return c.errorf("want one of %s, not %s", strings.Join(words, ", "), word)
}

// units are the units that engines use, by the canonical unit that each is
// read as, with what one of them is in that.
var units = map[string]map[string]float64{
	"s":   {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60},
	"1":   {"ratio": 1, "percent": 1e-2},
	"By":  {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30},
	"Hz":  {"Hz": 1, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9},
	"J":   {"J": 1, "mJ": 1e-3},
	"W":   {"W": 1, "mW": 1e-3},
	"Cel": {"Cel": 1},
}

// unit reads the unit of the exposed values.
func (c cursor) unit(f *Form) error {
	if err := c.text(&f.Unit); err != nil {
		return err
	}
	e := f.Entry
	scale, ok := units[e.Signal.Unit()][f.Unit]
	if !ok {
		return c.errorf("%s is measured in %s, and %s is no unit of that", e.Signal, e.Signal.Unit(), f.Unit)
	}
	e.Scale = scale
	return nil
}

func (c cursor) scale(into *float64) error {
	if err := c.number(into); err != nil {
		return err
	}
	if !(*into > 0) || math.IsInf(*into, 1) {
		return c.errorf("want a number above 0")
	}
	return nil
}

// span reads two numbers, the lesser first.
func (c cursor) span(least, most *float64) error {
	if c.node.Kind != yaml.SequenceNode || len(c.node.Content) != 2 {
		return c.errorf("want two numbers, as in [0, 1]")
	}
	ends := c.items()
	if err := ends[0].number(least); err != nil {
		return err
	}
	if err := ends[1].number(most); err != nil {
		return err
	}
	if !(*least < *most) {
		return c.errorf("want the lesser number first")
	}
	return nil
}
