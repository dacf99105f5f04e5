// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

const complete = `engine: acme
prefix: acme_serve
carriers: [ray]
labels:
  role: mode
  replica: [id]
  first: [tp_rank]
  reject: [router]
  unless: model
signals:
  ttft:
    type: histogram
    names: [first_token_ms, ttft_ms]
    scale: 0.001
  waiting:
    type: gauge
    names: [queue]
    keep: {priority: [""], lane: [a, b]}
  finished:
    type: counter
    names: [done]
`

func TestParse(t *testing.T) {
	set, err := Parse("acme.yaml", []byte(complete))
	require.NoError(t, err)
	labels := Entry{
		Dialect: "acme", Scale: 1, First: []string{"tp_rank"}, Role: "mode",
		Replica: []string{"id"}, Reject: []string{"router"}, Unless: "model",
	}

	ttft := labels
	ttft.Signal, ttft.Kind, ttft.Scale = fleet.TTFT, Histogram, 0.001
	match, _ := set.Match("acme_serve:first_token_ms")
	assert.Equal(t, Match{Entry: &ttft, Alias: 0}, match)
	match, _ = set.Match("ray_acme_serve_ttft_ms")
	assert.Equal(t, Match{Entry: &ttft, Alias: 1}, match)

	waiting := labels
	waiting.Signal, waiting.Kind = fleet.Waiting, Gauge
	waiting.Keep = []LabelFilter{{"priority", []string{""}}, {"lane", []string{"a", "b"}}}
	match, _ = set.Match("acme_serve_queue")
	assert.Equal(t, Match{Entry: &waiting}, match)

	finished := labels
	finished.Signal, finished.Kind = fleet.Finished, Counter
	match, _ = set.Match("acme_serve:done_total")
	assert.Equal(t, Match{Entry: &finished}, match)
}

// Each case breaks one line of the complete file.
func TestParseSaysWhatIsWrongWhere(t *testing.T) {
	for name, tc := range map[string]struct{ line, broken, want string }{
		"unknown key":            {"prefix: acme_serve", "prefix: acme_serve\nprefx: acme", "acme.yaml:3: prefx: unknown key"},
		"unknown label key":      {"  role: mode", "  rank: mode", "acme.yaml:5: labels.rank: unknown key"},
		"unknown signal key":     {"    scale: 0.001", "    unit: ms", "acme.yaml:14: signals.ttft.unit: unknown key"},
		"unknown signal":         {"  waiting:", "  waitng:", "acme.yaml:15: signals.waitng: not a signal"},
		"unknown type":           {"    type: gauge", "    type: summary", "acme.yaml:16: signals.waiting.type: want one of histogram, gauge, counter, not summary"},
		"key twice":              {"prefix: acme_serve", "prefix: a\nprefix: b", "acme.yaml:3: prefix: key stands twice"},
		"signal twice":           {"  finished:", "  waiting:", "acme.yaml:19: signals.waiting: key stands twice"},
		"name twice in a signal": {"    names: [queue]", "    names: [queue, queue]", "acme.yaml:17: signals.waiting.names: acme_serve:queue is already waiting of acme"},
		"name twice in two":      {"    names: [done]", "    names: [queue]", "acme.yaml:21: signals.finished.names: acme_serve:queue is already waiting of acme"},
		"number for a text":      {"engine: acme", "engine: 7", "acme.yaml:1: engine: want a text"},
		"null for a text":        {"  role: mode", "  role:", "acme.yaml:5: labels.role: want a text"},
		"list for a text":        {"    type: gauge", "    type: [gauge]", "acme.yaml:16: signals.waiting.type: want a text"},
		"text for a list":        {"    names: [queue]", "    names: queue", "acme.yaml:17: signals.waiting.names: want a list of texts"},
		"empty list":             {"carriers: [ray]", "carriers: []", "acme.yaml:3: carriers: want a list of texts"},
		"number in a list":       {"  replica: [id]", "  replica: [id, 3]", "acme.yaml:6: labels.replica: want a list of texts"},
		"list in a list":         {"  replica: [id]", "  replica: [[id]]", "acme.yaml:6: labels.replica: want a list of texts"},
		"text for a number":      {"    scale: 0.001", "    scale: milli", "acme.yaml:14: signals.ttft.scale: want a number"},
		"scale zero":             {"    scale: 0.001", "    scale: 0", "acme.yaml:14: signals.ttft.scale: want a number above 0"},
		"scale NaN":              {"    scale: 0.001", "    scale: .nan", "acme.yaml:14: signals.ttft.scale: want a number above 0"},
		"scale infinite":         {"    scale: 0.001", "    scale: .inf", "acme.yaml:14: signals.ttft.scale: want a number above 0"},
		"list for a mapping":     {"    keep: {priority: [\"\"], lane: [a, b]}", "    keep: [priority]", "acme.yaml:18: signals.waiting.keep: want keys and values"},
		"engine missing":         {"engine: acme", "", "acme.yaml:1: engine: key is missing"},
		"prefix missing":         {"prefix: acme_serve", "", "acme.yaml:1: prefix: key is missing"},
		"names missing":          {"    names: [queue]", "", "acme.yaml:15: signals.waiting.names: key is missing"},
		"type missing":           {"    type: gauge", "", "acme.yaml:15: signals.waiting.type: key is missing"},
		"_total in a counter":    {"    names: [done]", "    names: [done_total]", "acme.yaml:21: signals.finished.names: leave _total off done_total: a counter matches with and without"},
		"a second document":      {"    names: [done]", "    names: [done]\n---\nengine: other", "acme.yaml:1: want one document a file"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, 1, strings.Count("\n"+complete, "\n"+tc.line+"\n"), "the case breaks no line, or several")
			broken := strings.Replace("\n"+complete, "\n"+tc.line+"\n", "\n"+tc.broken+"\n", 1)
			_, err := Parse("acme.yaml", []byte(broken[1:]))
			assert.EqualError(t, err, tc.want)
		})
	}
}

func TestParseRefusesWhatIsNoDialect(t *testing.T) {
	for name, tc := range map[string]struct{ data, want string }{
		"empty":      {"", "acme.yaml:1: want keys and values"},
		"a comment":  {"# nothing\n", "acme.yaml:1: want keys and values"},
		"a text":     {"acme", "acme.yaml:1: want keys and values"},
		"no YAML":    {"engine: a\nprefix: 'a\n", "acme.yaml: yaml: line 2: found unexpected end of stream"},
		"no signals": {"engine: a\nprefix: a\n", "acme.yaml:1: signals: key is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("acme.yaml", []byte(tc.data))
			assert.EqualError(t, err, tc.want)
		})
	}
}
