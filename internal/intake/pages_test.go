// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
)

// pageFolder has pages of every source, written by hand from what its
// documentation says, each with a table of what it tells, computed by hand.
const pageFolder = "../dialect/testdata/pages/"

// telling is one metric read as one signal.
type telling struct{ component, dialect, signal, metric string }

// figure is what a metric tells: a gauge's or a counter's sum over its points
// in the canonical unit (a share: their mean), or a histogram's observations.
type figure struct {
	value   float64
	points  float64
	counted bool // not under another name already
}

// readTable reads a page's table: component, dialect, signal, metric, value,
// and "counted" or "not counted".
func readTable(t *testing.T, path string) map[telling]figure {
	t.Helper()
	table := make(map[telling]figure)
	for line := range strings.Lines(readFile(t, path)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, "\t")
		require.Len(t, cells, 6, line)
		require.Contains(t, []string{"counted", "not counted"}, cells[5], line)
		value, err := strconv.ParseFloat(cells[4], 64)
		require.NoError(t, err, line)
		table[telling{cells[0], cells[1], cells[2], cells[3]}] = figure{value: value, counted: cells[5] == "counted"}
	}
	return table
}

// tabulate is what the senses tell. A point that is used makes its metric count;
// where no point of a metric is, because another name is preferred, the metric
// is there and does not.
func tabulate(senses []Sense) map[telling]figure {
	table := make(map[telling]figure)
	for _, sense := range senses {
		for _, told := range sense.Told {
			if told.Reason != 0 && told.Reason != Unspoken {
				continue
			}
			d, signal := told.Entry.Dialect, told.Entry.Signal
			key := telling{d.Component.String(), d.Name, signal.String(), sense.Metric}
			f := table[key]
			switch used := told.Reason == 0; {
			case used && !f.counted:
				f = figure{counted: true}
			case !used && f.counted: // another rank has told it
				continue
			}
			f.points++
			if signal.Kind() == fleet.Histogram {
				f.value += float64(told.Count)
			} else {
				f.value += told.Value
			}
			table[key] = f
		}
	}
	for key, f := range table {
		if signal, _ := fleet.ParseSignal(key.signal); signal.Unit() == "1" {
			f.value /= f.points
		}
		table[key] = figure{value: f.value, counted: f.counted}
	}
	return table
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(content)
}

// pageOptions are how a page is read that knows nothing but itself.
func pageOptions(path string) Options {
	// No page of an engine without labels names its model.
	derived := filepath.Base(path) == "tenant_usage.prom" // by default nobody reads it
	return Options{Dialects: dialect.Builtin(), GroupBy: []string{keyEngineName}, Tenants: derived}
}

// TestPages: what is read of every page is what its table says, and of no
// family is it left open whether it is read.
func TestPages(t *testing.T) {
	paths, err := filepath.Glob(pageFolder + "*.prom")
	require.NoError(t, err)
	spoken := make(map[string]bool)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".prom"), func(t *testing.T) {
			page := readFile(t, path)
			senses := Explain(pageOptions(path), scraped(t, page, time.Second))
			for i := range senses {
				assert.True(t, senses[i].Known(), "%s is neither read, nor facts, nor ignored for a reason", senses[i].Metric)
			}
			want, got := readTable(t, strings.TrimSuffix(path, ".prom")+".tsv"), tabulate(senses)
			for key, f := range got {
				spoken[key.dialect] = true
				if expected, ok := want[key]; assert.True(t, ok, "%+v is read, and not in the table", key) {
					assert.Equal(t, expected.counted, f.counted, "%+v", key)
					assert.InDelta(t, expected.value, f.value, 1e-9*math.Abs(expected.value), "%+v", key)
				}
			}
			for key := range want {
				assert.Contains(t, got, key, "is not read")
			}
			agree(t, dialect.Builtin(), page)
		})
	}
	for _, d := range dialect.Builtin().Dialects() {
		assert.Equal(t, len(d.Forms) > 0, spoken[d.Name], "%s has no page that tells a signal", d.Name)
	}
}
