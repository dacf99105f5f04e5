// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"time"

	"github.com/axiomhq/hyperloglog"

	"github.com/llmfleet/llmfleet/internal/window"
)

// distinct counts the different tenants of the last span, or of up to a sixth
// of it less, by HyperLogLog with a standard error of 1.6 %, in 24 KiB.
type distinct struct {
	part     time.Duration
	current  int64 // the part of time that is filled now
	sketches [distinctParts]*hyperloglog.Sketch
}

const (
	distinctParts = 6
	// precision is the logarithm of the number of registers, of one byte each.
	precision = 12
)

// newSketch is dense from the start: inserting allocates nothing.
func newSketch() *hyperloglog.Sketch {
	sketch, _ := hyperloglog.NewSketch(precision, false) // fails for no precision from 4 to 18
	return sketch
}

func newDistinct(span time.Duration, now window.Instant) *distinct {
	d := &distinct{part: max(1, span/distinctParts)}
	d.current = int64(now) / int64(d.part)
	for i := range d.sketches {
		d.sketches[i] = newSketch()
	}
	return d
}

// insert counts a tenant; the reserved names are none.
func (d *distinct) insert(name string) {
	if !Reserved(name) {
		d.sketches[d.current%distinctParts].Insert([]byte(name))
	}
}

// advance drops what lies further back than the span.
func (d *distinct) advance(now window.Instant) {
	until := int64(now) / int64(d.part)
	for part := max(d.current+1, until-distinctParts+1); part <= until; part++ {
		d.sketches[part%distinctParts].Reset()
	}
	d.current = max(d.current, until)
}

// estimate uses union for what it has to put together.
func (d *distinct) estimate(union *hyperloglog.Sketch) float64 {
	union.Reset()
	for _, sketch := range d.sketches {
		_ = union.Merge(sketch) // fails for unequal precisions only
	}
	return float64(union.Estimate())
}
