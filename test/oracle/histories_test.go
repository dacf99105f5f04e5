// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/llmfleet/llmfleet/test/prometheustest"
)

var (
	perClass  = flag.Int("histories", 300, "how many histories of each class are compared; of native histograms a third")
	firstSeed = flag.Uint64("seed", 1, "the first history's seed; with -histories=1 just this one is compared, though it alone may fall short of a class's share")
)

// batch is how many histories share a Prometheus storage.
const batch = 50

// shown is how many differences of a class are printed.
const shown = 5

// TestHistories: what fleet_outlier derives from a history is what Prometheus answers to the queries of record.
func TestHistories(t *testing.T) {
	for _, c := range classes {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := *perClass
			if c.form != classic {
				n = (n + 2) / 3
			}
			var all tally
			for first := 0; first < n; first += batch {
				histories := generateAll(c, *firstSeed+uint64(first), min(batch, n-first))
				all.add(compareAll(t, histories))
			}
			t.Log(&all)
			report(t, all.differences)
			assert.GreaterOrEqual(t, all.share(), 0.8, "too few evaluations of class %s were compared", c.name)
		})
	}
}

// generateAll makes n histories of a class.
func generateAll(c class, first uint64, n int) []history {
	histories := make([]history, n)
	for i := range histories {
		histories[i] = generate(c, first+uint64(i))
	}
	return histories
}

// compareAll asks both about the same histories.
func compareAll(t *testing.T, histories []history) tally {
	t.Helper()
	p := prometheustest.New(t)
	load(p, histories)
	want := expectation(p, histories[0].form)
	var all tally
	for i := range histories {
		all.add(compare(&histories[i], want, process(t, &histories[i])))
	}
	return all
}

// report fails the test for every difference, and shows the first ones with what led to them.
func report(t *testing.T, differences []difference) {
	t.Helper()
	if len(differences) == 0 {
		return
	}
	t.Errorf("%d figures differ", len(differences))
	for i := range differences[:min(shown, len(differences))] {
		d := &differences[i]
		t.Logf("%s\n%s", d, d.history.describe(d.figure.model, d.at))
	}
}
