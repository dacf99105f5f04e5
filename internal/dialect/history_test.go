// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// history is what an engine's sources say: every version, oldest first, and
// every metric that was ever declared.
type history struct {
	versions []string
	metrics  []metric
}

// metric is one line of a history: a name, the versions that have it (as
// positions in history.versions), and the signal it is, "-" for none.
type metric struct {
	name     string
	versions []int
	signal   string
}

func (m metric) in(version int) bool { return slices.Contains(m.versions, version) }

// age orders metrics from oldest to newest: by the version that brought them,
// then by the one that dropped them.
func age(a, b metric) int {
	return cmp.Or(cmp.Compare(a.versions[0], b.versions[0]), cmp.Compare(slices.Max(a.versions), slices.Max(b.versions)))
}

// readHistory reads testdata/<engine>.tsv: comments, of which one lists the
// versions, then name, ranges of versions ("a..b c") and signal.
func readHistory(t *testing.T, engine string) history {
	t.Helper()
	data, err := os.ReadFile("testdata/" + engine + ".tsv")
	require.NoError(t, err)
	var h history
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if versions, ok := strings.CutPrefix(line, "# versions: "); ok {
			h.versions = strings.Fields(versions)
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(line, "\t")
		require.Len(t, columns, 3, line)
		m := metric{name: columns[0], signal: columns[2]}
		for span := range strings.FieldsSeq(columns[1]) {
			first, last, _ := strings.Cut(span, "..")
			from, to := slices.Index(h.versions, first), slices.Index(h.versions, cmp.Or(last, first))
			require.True(t, 0 <= from && from <= to, line)
			for v := from; v <= to; v++ {
				m.versions = append(m.versions, v)
			}
		}
		h.metrics = append(h.metrics, m)
	}
	return h
}

// lacking are the signals that an engine never had under a name of their own.
var lacking = map[string][]fleet.Signal{
	"sglang": {fleet.TPOT, fleet.PrefixQueries},
}

func TestEveryNameOfEveryVersion(t *testing.T) {
	for engine, size := range map[string]int{"vllm": 122, "sglang": 162} {
		t.Run(engine, func(t *testing.T) {
			h := readHistory(t, engine)
			assert.Len(t, h.metrics, size)
			for _, m := range h.metrics {
				match, ok := Builtin().Match(m.name)
				if !assert.Equal(t, m.signal != "-", ok, m.name) || !ok {
					continue
				}
				assert.Equal(t, engine, match.Entry.Dialect, m.name)
				assert.Equal(t, m.signal, match.Entry.Signal.String(), m.name)
				assert.Equal(t, kindOf(match.Entry.Signal), match.Entry.Kind, m.name)
			}
		})
	}
}

// kindOf says in which kind of metric a signal comes, as package fleet has it.
func kindOf(s fleet.Signal) Kind {
	switch {
	case s.IsLatency():
		return Histogram
	case s == fleet.Waiting || s == fleet.Running || s == fleet.KVUsage:
		return Gauge
	default:
		return Counter
	}
}

// In each version, the newest of the names that a signal has there counts.
func TestNewestNameWinsInEveryVersion(t *testing.T) {
	for _, engine := range []string{"vllm", "sglang"} {
		h := readHistory(t, engine)
		for v, version := range h.versions {
			t.Run(engine+"/"+version, func(t *testing.T) {
				for s := range fleet.SignalCount {
					var names []metric
					for _, m := range h.metrics {
						if m.signal == s.String() && m.in(v) {
							names = append(names, m)
						}
					}
					if len(names) == 0 {
						continue
					}
					newest := slices.MaxFunc(names, age)
					winner := slices.MinFunc(names, func(a, b metric) int { return cmp.Compare(alias(a), alias(b)) })
					assert.Equal(t, bare(newest.name), bare(winner.name), s)
				}
			})
		}
	}
}

// alias returns the preference for a metric of a history that is a signal.
func alias(m metric) int {
	match, _ := Builtin().Match(m.name)
	return match.Alias
}

// bare takes off what a counter has in one version and lacks in another.
func bare(name string) string { return strings.TrimSuffix(name, "_total") }

// The newest version of each engine speaks of every signal it has at all.
func TestNewestVersionHasEverySignal(t *testing.T) {
	for _, engine := range []string{"vllm", "sglang"} {
		h := readHistory(t, engine)
		newest := len(h.versions) - 1
		for s := range fleet.SignalCount {
			has := slices.ContainsFunc(h.metrics, func(m metric) bool { return m.signal == s.String() && m.in(newest) })
			assert.Equal(t, !slices.Contains(lacking[engine], s), has, "%s: %s", engine, s)
		}
	}
}
