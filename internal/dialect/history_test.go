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
// positions in history.versions), and the signals that it tells, none if it is
// not read.
type metric struct {
	name     string
	versions []int
	signals  []string
}

func (m metric) in(version int) bool { return slices.Contains(m.versions, version) }

func (m metric) tells(s fleet.Signal) bool { return slices.Contains(m.signals, s.String()) }

// readHistory reads testdata/<engine>.tsv: comments, of which one lists the
// versions, then name, ranges of versions ("a..b c") and signals ("a,b", or "-").
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
		m := metric{name: columns[0]}
		if columns[2] != "-" {
			m.signals = strings.Split(columns[2], ",")
		}
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

// histories are the engines whose every version is known, with how many
// metrics they ever declared.
var histories = map[string]int{"vllm": 122, "sglang": 162}

// matches is what the engine's own dialect says of a metric.
func matches(engine, metric string) []Match {
	return slices.DeleteFunc(slices.Clone(Builtin().Match(metric)), func(m Match) bool { return m.Entry.Dialect.Name != engine })
}

// TestEveryNameOfEveryVersion is read as its signals, tells facts, or is
// ignored for a reason.
func TestEveryNameOfEveryVersion(t *testing.T) {
	for engine, size := range histories {
		t.Run(engine, func(t *testing.T) {
			h := readHistory(t, engine)
			assert.Len(t, h.metrics, size)
			for _, m := range h.metrics {
				var told []string
				for _, match := range matches(engine, m.name) {
					told = append(told, match.Entry.Signal.String())
				}
				told = slices.Compact(slices.Sorted(slices.Values(told)))
				assert.Equal(t, strings.Join(m.signals, ","), strings.Join(told, ","), m.name)
				_, ignored := Builtin().Ignored(m.name)
				facts := Builtin().Info(m.name) != nil
				assert.Equal(t, len(m.signals) == 0, ignored || facts, "%s is neither read nor ignored for a reason", m.name)
			}
		})
	}
}

// later are names that told no signal at first, and since when they do.
var later = map[string]string{
	"vllm errors request_success":                    "2025-12-19", // finished_reason="error"
	"sglang kv_transfer_time kv_transfer_latency_ms": "v0.5.10",    // a gauge before
	"sglang kv_transfer_bytes kv_transfer_total_mb":  "v0.5.10",
}

// TestVersionsOfForms: a form begins with the first version that has any of its
// names, and ends with the last.
func TestVersionsOfForms(t *testing.T) {
	for engine := range histories {
		h := readHistory(t, engine)
		for _, f := range formsOf(engine) {
			since, until := len(h.versions), -1
			for _, m := range h.metrics {
				if slices.ContainsFunc(matches(engine, m.name), func(match Match) bool { return match.Entry == f.Entry }) {
					since, until = min(since, slices.Min(m.versions)), max(until, slices.Max(m.versions))
				}
			}
			if !assert.NotEqual(t, -1, until, "%s: no version has any of %s", engine, f.Names) {
				continue
			}
			allowed := []string{h.versions[since], later[engine+" "+f.Entry.Signal.String()+" "+f.Names[0]]}
			assert.Contains(t, allowed, cmp.Or(f.Since, h.versions[0]), "%s: since of %s", engine, f.Names)
			assert.Equal(t, h.versions[until], cmp.Or(f.Until, h.versions[len(h.versions)-1]), "%s: until of %s", engine, f.Names)
		}
	}
}

func formsOf(engine string) []*Form {
	dialects := Builtin().Dialects()
	return dialects[slices.IndexFunc(dialects, func(d *Dialect) bool { return d.Name == engine })].Forms
}

// elsewhere are signals that an engine tells of different things under
// different names, so that the newest is not the best.
var elsewhere = map[string]fleet.Signal{
	"vllm": fleet.KVTransferBytes, // between replicas, else between a GPU and its host
}

// candidate is a name of a signal in one version: where it stands in the order
// of preference, and the versions that brought it and dropped it.
type candidate struct {
	name              string
	alias, came, went int
}

// TestNewestNameWinsInEveryVersion: where a version has several names of a
// signal, the one that came last counts.
func TestNewestNameWinsInEveryVersion(t *testing.T) {
	for engine := range histories {
		h := readHistory(t, engine)
		for v, version := range h.versions {
			for s := range fleet.SignalCount {
				names := h.names(engine, s, v)
				if other, ok := elsewhere[engine]; len(names) == 0 || ok && s == other {
					continue
				}
				newest := slices.MaxFunc(names, func(a, b candidate) int {
					return cmp.Or(cmp.Compare(a.came, b.came), cmp.Compare(a.went, b.went), cmp.Compare(b.alias, a.alias))
				})
				winner := slices.MinFunc(names, func(a, b candidate) int { return cmp.Compare(a.alias, b.alias) })
				assert.True(t, newest.alias == winner.alias || newest.name == winner.name, "%s %s: %s wins over %s", engine, version, winner.name, newest.name)
			}
		}
	}
}

// names are those that tell the signal in a version.
func (h *history) names(engine string, s fleet.Signal, version int) (all []candidate) {
	for _, m := range h.metrics {
		for _, match := range matches(engine, m.name) {
			if match.Entry.Signal != s || !m.in(version) {
				continue
			}
			c := candidate{m.name, match.Alias, m.versions[0], slices.Max(m.versions)}
			for _, f := range formsOf(engine) {
				if f.Entry == match.Entry && f.Since != "" {
					c.came = max(c.came, slices.Index(h.versions, f.Since))
				}
			}
			if c.came <= version {
				all = append(all, c)
			}
		}
	}
	return all
}

// TestNewestVersionTellsEverySignal that its engine ever told.
func TestNewestVersionTellsEverySignal(t *testing.T) {
	for engine := range histories {
		h := readHistory(t, engine)
		for s := range fleet.SignalCount {
			ever := slices.ContainsFunc(h.metrics, func(m metric) bool { return m.tells(s) })
			now := slices.ContainsFunc(h.metrics, func(m metric) bool { return m.tells(s) && m.in(len(h.versions)-1) })
			lost := s == fleet.PrefixBlockHits || s == fleet.PrefixBlockQueries // tokens are counted instead
			assert.Equal(t, ever && !lost, now, "%s: %s", engine, s)
		}
	}
}
