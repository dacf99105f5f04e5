// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// compiled is the set of a few files: 0.yaml, 1.yaml, …
func compiled(t *testing.T, texts ...string) *Set {
	t.Helper()
	set, err := compileFiles(texts...)
	require.NoError(t, err)
	return set
}

func compileFiles(texts ...string) (*Set, error) {
	folder := fstest.MapFS{"readme.md": {Data: []byte("not a dialect")}}
	for i, text := range texts {
		folder[fmt.Sprintf("%d.yaml", i)] = &fstest.MapFile{Data: []byte(text)}
	}
	dialects, err := readAll(folder)
	if err != nil {
		return nil, err
	}
	return compile(dialects, nothing)
}

// TestNamesArePreferredInTheirOrder, over all forms of a signal; added names
// share a place.
func TestNamesArePreferredInTheirOrder(t *testing.T) {
	set := compiled(t, `
engine: a
signals:
  waiting:
    - {type: gauge, names: [newest, newer]}
    - {type: gauge, add: [left, right], keep: {side: [""]}}
    - {type: gauge, names: [old, oldest]}
  running: {type: gauge, names: [batch]}
`)
	for name, alias := range map[string]int{"newest": 0, "newer": 1, "left": 2, "right": 2, "old": 3, "oldest": 4, "batch": 0} {
		match := meaning(t, set, name)
		assert.Equal(t, alias, match.Alias, name)
		assert.Equal(t, name, match.Name)
	}
	assert.Same(t, meaning(t, set, "left").Entry, meaning(t, set, "right").Entry)
	assert.NotSame(t, meaning(t, set, "left").Entry, meaning(t, set, "old").Entry, "a form has its own filters")
}

// TestSpellings: how a name may arrive, and how not.
func TestSpellings(t *testing.T) {
	for _, tc := range []struct {
		file      string
		yes, noes []string
	}{
		{
			"{engine: a, prefix: p, carriers: [ray, k], signals: {finished: {type: counter, names: [n]}}}",
			[]string{
				"p:n", "p_n", "ray_p:n", "ray_p_n", "k_p:n", "k_p_n",
				"p:n_total", "p_n_total", "ray_p:n_total", "ray_p_n_total", "k_p:n_total", "k_p_n_total",
			},
			[]string{"n", "n_total", "p.n", "pn", "ray:p:n", "ray_k_p:n", "p:n_total_total", "p:n_created"},
		},
		{
			"{engine: a, prefix: p, signals: {waiting: {type: gauge, names: [n]}}}",
			[]string{"p:n", "p_n"},
			[]string{"p:n_total", "n"},
		},
		{
			"{engine: a, signals: {finished: {type: counter, names: [gen.ai.done]}}}",
			[]string{"gen.ai.done", "gen_ai_done", "gen.ai.done_total", "gen_ai_done_total"},
			[]string{"gen_ai.done", "gen.ai.done.total"},
		},
		{
			"{engine: a, signals: {errors: {type: counter, names: ['x:y']}}}",
			[]string{"x:y", "x_y", "x:y_total", "x_y_total"},
			[]string{"x.y"},
		},
		{
			"{engine: a, signals: {ttft: {type: histogram, names: [steps_total]}}}",
			[]string{"steps_total"},
			[]string{"steps"},
		},
	} {
		set := compiled(t, tc.file)
		for _, name := range tc.yes {
			assert.NotEmpty(t, set.Match(name), "%s: %s", tc.file, name)
		}
		for _, name := range tc.noes {
			assert.Empty(t, set.Match(name), "%s: %s", tc.file, name)
		}
		assert.Len(t, set.byName, len(tc.yes), tc.file)
	}
}

// TestDottedLabels are known with underscores, too.
func TestDottedLabels(t *testing.T) {
	set := compiled(t, `
engine: a
labels: {model: [gen_ai.request.model], reject: [copy.of]}
signals:
  prompt_tokens: {type: counter, names: [x], only: {gen_ai.token.type: [input]}}
  running: {type: gauge, names: [y], keep: {some.lane: [""]}}
`)
	assert.Equal(t, []string{"gen_ai.request.model", "gen_ai_request_model"}, set.Dialects()[0].Labels.Model)
	assert.Equal(t, []string{"copy.of", "copy_of"}, set.Dialects()[0].Labels.Reject)
	assert.Equal(t, []LabelFilter{{[]string{"gen_ai.token.type", "gen_ai_token_type"}, []string{"input"}}}, meaning(t, set, "x").Entry.Only)
	assert.Equal(t, []LabelFilter{{[]string{"some.lane", "some_lane"}, []string{""}}}, meaning(t, set, "y").Entry.Keep)
}

// TestOneNameForTwoSignals: one metric may tell several, each in its own way.
func TestOneNameForTwoSignals(t *testing.T) {
	set := compiled(t, `
engine: a
signals:
  waiting: {type: gauge, names: [requests], only: {state: [waiting]}}
  running:
    - {type: gauge, names: [requests], only: {state: [active]}}
    - {type: gauge, names: [requests], only: {state: [busy]}}
  finished: {type: counter, names: [done]}
  errors: {type: counter, names: [done], only: {why: [error]}}
  ttft: {type: histogram, names: [first]}
  prompt_tokens: {type: histogram, part: count, names: [first]}
`)
	told := func(name string) (signals []fleet.Signal) {
		for _, m := range set.Match(name) {
			signals = append(signals, m.Entry.Signal)
		}
		return signals
	}
	assert.ElementsMatch(t, []fleet.Signal{fleet.Waiting, fleet.Running, fleet.Running}, told("requests"))
	assert.ElementsMatch(t, []fleet.Signal{fleet.Finished, fleet.Errors}, told("done_total"))
	assert.ElementsMatch(t, []fleet.Signal{fleet.TTFT, fleet.PromptTokens}, told("first"))
}

// TestTwoDialectsMayShareAName if labels tell whose it is.
func TestTwoDialectsMayShareAName(t *testing.T) {
	set := compiled(t,
		"{engine: a, prefix: x, signals: {waiting: {type: gauge, names: [n]}}}",
		"{engine: b, component: router, signals: {waiting: {type: gauge, names: ['x:n'], only: {server: []}}}}")
	var spoken []string
	for _, m := range set.Match("x_n") {
		spoken = append(spoken, m.Entry.Dialect.Name)
	}
	assert.Equal(t, []string{"a", "b"}, spoken)
}

func TestNamesInConflict(t *testing.T) {
	for name, tc := range map[string]struct {
		files []string
		want  string
	}{
		"of two dialects": {
			[]string{
				"{engine: a, prefix: x, signals: {ttft: {type: histogram, names: [y_z]}}}",
				"{engine: b, prefix: x_y, signals: {itl: {type: histogram, names: [z]}}}",
			},
			"1.yaml:1: signals.itl.names: x_y_z is already ttft of a",
		},
		"of two dialects for one signal": {
			[]string{
				"{engine: a, signals: {ttft: {type: histogram, names: [x]}}}",
				"{engine: b, signals: {ttft: {type: histogram, names: [y, x]}}}",
			},
			"1.yaml:1: signals.ttft.names: x is already ttft of a",
		},
		"of two forms": {
			[]string{"engine: a\nsignals:\n  ttft:\n    - {type: histogram, names: [x]}\n    - {type: histogram, names: [x], keep: {l: [v]}}"},
			"0.yaml:5: signals.ttft[1].names: x is already ttft of a",
		},
		"of one form": {
			[]string{"{engine: a, signals: {ttft: {type: histogram, names: [x, x]}}}"},
			"0.yaml:1: signals.ttft.names: x is already ttft of a",
		},
		"of names added": {
			[]string{"{engine: a, signals: {waiting: {type: gauge, add: [x, x]}}}"},
			"0.yaml:1: signals.waiting.add: x is already waiting of a",
		},
		"by way of underscores": {
			[]string{"{engine: a, signals: {ttft: {type: histogram, names: [x.y, x_y]}}}"},
			"0.yaml:1: signals.ttft.names: x_y is already ttft of a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := compileFiles(tc.files...)
			assert.EqualError(t, err, tc.want)
		})
	}
}

// TestFactsAndWhatIsIgnored arrive spelled as variously as signals.
func TestFactsAndWhatIsIgnored(t *testing.T) {
	set := parse(t, complete)
	info := set.Info("ray_acme_serve_build_info")
	require.NotNil(t, info)
	assert.Equal(t, "build_info", info.Name)
	assert.Same(t, info, set.Info("acme_serve:build_info"))
	assert.Nil(t, set.Info("build_info"))
	assert.Nil(t, set.Info("acme_serve:heat"))

	for name, want := range map[string]string{
		"acme_serve:request_bytes": "sizes of requests", "acme_serve_request_bytes_total": "sizes of requests",
		"ray_acme_serve:tick": "times",
	} {
		why, ok := set.Ignored(name)
		assert.True(t, ok, name)
		assert.Equal(t, want, why, name)
	}
	for _, name := range []string{"tick", "acme_serve:heat", "acme_serve:build_info", "acme_serve:unheard_of"} {
		_, ok := set.Ignored(name)
		assert.False(t, ok, name)
	}
	assert.Empty(t, set.Match("acme_serve:tick"))
	assert.Empty(t, set.Match("acme_serve:build_info"))
}
