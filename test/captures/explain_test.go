// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build captures

package captures

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/internal/scrapetest"
)

// slips are families that only a slip of a captured page's author made.
var slips = map[string]string{
	"iinference_model_request_tpot_seconds_bucket": "a letter too many",
}

// TestEveryFamily of every captured page is read as a signal, tells facts, or
// is ignored for a reason; the log shows which.
func TestEveryFamily(t *testing.T) {
	for _, path := range pages(t, "*.prom") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			md, err := scrapetest.Metrics(string(read(t, path)), scrapetest.Target{Instance: "captured:8000", At: time.Unix(0, 0)})
			require.NoError(t, err)
			senses := intake.Explain(intake.Options{Dialects: dialect.Builtin(), GroupBy: []string{"engine_name"}}, md)
			require.NotEmpty(t, senses)
			for i := range senses {
				name := senses[i].Metric
				assert.NotEqual(t, slips[name] != "", senses[i].Known(), "%s is neither read nor ignored for a reason", name)
			}
			t.Logf("what is read:\n%s\nand what is not:\n%s", found(senses), passedOver(senses))
		})
	}
}

// line is a row of the table of signals: the used points of one metric.
type line struct{ signal, metric, unit, source, replica, rank string }

// found is a table of the signals of a page, summed over all labels but those
// of replica and rank.
func found(senses []intake.Sense) string {
	values := make(map[line]float64)
	observations := make(map[line]uint64)
	points := make(map[line]int)
	for _, sense := range senses {
		for _, told := range sense.Told {
			if told.Reason != 0 {
				continue
			}
			signal := told.Entry.Signal
			at := line{signal.String(), sense.Metric, signal.Unit(), told.Entry.Dialect.Name, told.Identity.Replica, told.Rank}
			values[at] += told.Value
			observations[at] += told.Count
			points[at]++
		}
	}
	return table("signal\tvalue\tunit\tobservations\tpoints\tsource\treplica\trank\tmetric", func(row func(...any)) {
		lines := slices.SortedFunc(maps.Keys(values), func(a, b line) int {
			return cmp.Or(cmp.Compare(order(a.signal), order(b.signal)), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
		})
		for _, l := range lines {
			value := values[l]
			if l.unit == "1" {
				value /= float64(points[l]) // a share of what each has
			}
			row(l.signal, value, l.unit, observations[l], points[l], l.source, l.replica, cmp.Or(l.rank, "-"), l.metric)
		}
	})
}

// order is the place of a signal among all.
func order(name string) fleet.Signal {
	signal, _ := fleet.ParseSignal(name)
	return signal
}

// passedOver is a table of the metrics and points that are not read, by the
// reason why.
func passedOver(senses []intake.Sense) string {
	why := make(map[string][]string)
	for _, sense := range senses {
		switch {
		case !sense.Known():
			why["a slip of the page: "+slips[sense.Metric]] = append(why["a slip of the page: "+slips[sense.Metric]], sense.Metric)
		case len(sense.Facts) > 0:
			why["an info series"] = append(why["an info series"], sense.Metric)
		case sense.Why != "":
			why[sense.Why] = append(why[sense.Why], sense.Metric)
		}
		for _, told := range sense.Told {
			if told.Reason != 0 {
				reason := fmt.Sprintf("points as %s: %s", told.Entry.Signal, told.Reason)
				why[reason] = append(why[reason], sense.Metric)
			}
		}
	}
	return table("why\tmetrics", func(row func(...any)) {
		for _, reason := range slices.Sorted(maps.Keys(why)) {
			row(reason, strings.Join(slices.Compact(why[reason]), " "))
		}
	})
}

// table aligns rows below a head.
func table(head string, rows func(row func(cells ...any))) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, head)
	rows(func(cells ...any) {
		texts := make([]string, len(cells))
		for i, cell := range cells {
			texts[i] = fmt.Sprint(cell)
		}
		fmt.Fprintln(w, strings.Join(texts, "\t"))
	})
	_ = w.Flush() // into memory
	return text.String()
}
