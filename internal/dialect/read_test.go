// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/lifecycle"
)

// complete uses every key that a dialect file may have.
const complete = `engine: acme
component: router
prefix: acme_serve
carriers: [ray]
versions: [v1, v2, v3]
labels:
  model: [llm.model, model]
  role: [mode]
  ranks: [rank]
  first: [tp_rank]
  replica: [id]
  tenants: [team]
  others: [the.rest]
  nobody: ["-", None]
  reasons: [why]
  pod: [exported_pod]
  namespace: [exported_namespace]
  node: [Hostname]
  gpu_model: [modelName]
  reject: [router]
  unless: model
signals:
  ttft:
    - type: histogram
      names: [first_token_seconds]
      since: v2
    - type: histogram
      names: [ttft_ms, ttft_millis]
      unit: ms
      since: v1
      until: v2
  waiting:
    type: gauge
    add: [queue, parked]
    keep: {priority: [""], lane.name: [a, b]}
  prompt_tokens:
    type: histogram
    part: sum
    names: [request_tokens]
  errors:
    type: counter
    names: [done]
    only: {why: [error], code: []}
  finished:
    type: counter
    names: [done]
    scale: 2
  gpu_temperature:
    type: gauge
    names: [heat]
    range: [10, 90.5]
  generation_tokens: {type: counter, at_end: true, names: [made]}
info:
  build_info:
    engine_version: [version]
    model_revision: [revision, sha]
    config: [block_size]
ignore:
  sizes of requests: [request_bytes]
  times: [clock, tick]
startup:
  lines:
    - {tells: weights.loaded, says: 'Weights came in (?P<took>\S+)', with: acme, cached: true, anyone: true}
  spans:
    load: {begins: weights.load_started, ends: weights.loaded}
  metrics:
    - {tells: weights.loaded, names: [load_seconds], only: {phase: [weights]}}
`

func parse(t *testing.T, text string) *Set {
	t.Helper()
	set, err := Parse("acme.yaml", []byte(text))
	require.NoError(t, err)
	return set
}

// meaning is the only one that the metric has.
func meaning(t *testing.T, s *Set, name string) Match {
	t.Helper()
	matches := s.Match(name)
	require.Len(t, matches, 1, name)
	return matches[0]
}

func TestParseReadsEveryKey(t *testing.T) {
	set := parse(t, complete)
	require.Len(t, set.Dialects(), 1)
	d := set.Dialects()[0]
	assert.Equal(t, "acme", d.Name)
	assert.Equal(t, Router, d.Component)
	assert.Equal(t, []string{"v1", "v2", "v3"}, d.Versions)
	assert.Equal(t, Labels{
		Model: []string{"llm.model", "llm_model", "model"}, Role: []string{"mode"}, Ranks: []string{"rank"},
		First: []string{"tp_rank"}, Replica: []string{"id"}, Tenants: []string{"team"}, Others: []string{"the.rest"}, Nobody: []string{"-", "None"}, Reasons: []string{"why"},
		Pod: []string{"exported_pod"}, Namespace: []string{"exported_namespace"}, Node: []string{"Hostname"},
		GPUModel: []string{"modelName"}, Reject: []string{"router"}, Unless: "model",
	}, d.Labels)
	assert.Equal(t, []*Info{{
		Dialect: d, Name: "build_info",
		EngineVersion: []string{"version"}, ModelRevision: []string{"revision", "sha"}, Config: []string{"block_size"},
	}}, d.Infos)
	assert.Equal(t, []Span{{Name: "load", Begins: lifecycle.WeightsStarted, Ends: lifecycle.WeightsFinished}}, d.Spans)
	assert.Equal(t, []*Phase{{
		Tells: lifecycle.WeightsFinished, Names: []string{"load_seconds"},
		Only: []LabelFilter{{[]string{"phase"}, []string{"weights"}}},
	}}, d.Phases)
	require.Len(t, d.Lines, 1)
	assert.Equal(t, "Weights came in ", d.Lines[0].words)
	assert.Equal(t, []Ignored{{"sizes of requests", []string{"request_bytes"}}, {"times", []string{"clock", "tick"}}}, d.Ignored)

	type form struct {
		Names        []string
		Add          bool
		Since, Until string
		Entry        Entry
	}
	var forms []form
	for _, f := range d.Forms {
		forms = append(forms, form{f.Names, f.Add, f.Since, f.Until, *f.Entry})
	}
	assert.Equal(t, []form{
		{[]string{"first_token_seconds"}, false, "v2", "", Entry{Dialect: d, Signal: fleet.TTFT, Kind: fleet.Histogram, Scale: 1}},
		{[]string{"ttft_ms", "ttft_millis"}, false, "v1", "v2", Entry{Dialect: d, Signal: fleet.TTFT, Kind: fleet.Histogram, Scale: 0.001}},
		{[]string{"queue", "parked"}, true, "", "", Entry{
			Dialect: d, Signal: fleet.Waiting, Kind: fleet.Gauge, Scale: 1,
			Keep: []LabelFilter{{[]string{"priority"}, []string{""}}, {[]string{"lane.name", "lane_name"}, []string{"a", "b"}}},
		}},
		{[]string{"request_tokens"}, false, "", "", Entry{Dialect: d, Signal: fleet.PromptTokens, Kind: fleet.Histogram, Part: Sum, Scale: 1}},
		{[]string{"done"}, false, "", "", Entry{
			Dialect: d, Signal: fleet.Errors, Kind: fleet.Counter, Scale: 1,
			Only: []LabelFilter{{[]string{"why"}, []string{"error"}}, {[]string{"code"}, nil}},
		}},
		{[]string{"done"}, false, "", "", Entry{Dialect: d, Signal: fleet.Finished, Kind: fleet.Counter, Scale: 2}},
		{[]string{"heat"}, false, "", "", Entry{Dialect: d, Signal: fleet.GPUTemperature, Kind: fleet.Gauge, Scale: 1, Least: 10, Most: 90.5}},
		{[]string{"made"}, false, "", "", Entry{Dialect: d, Signal: fleet.GenerationTokens, Kind: fleet.Counter, Scale: 1, AtEnd: true}},
	}, forms)
}

// TestAbout: what stands above the first key, less the marks.
func TestAbout(t *testing.T) {
	set := parse(t, "# Acme: v1\n#   to v3.\nengine: a # acme\n# Not this.\nsignals: {}\n")
	assert.Equal(t, "Acme: v1 to v3.", set.Dialects()[0].About)
	assert.Empty(t, parse(t, complete).Dialects()[0].About)
}

// TestDefaults: what a file need not say.
func TestDefaults(t *testing.T) {
	d := parse(t, "{engine: a, signals: {ttft: {type: histogram, names: [x]}}}").Dialects()[0]
	assert.Equal(t, Engine, d.Component)
	assert.Equal(t, Labels{Model: []string{"model_name"}}, d.Labels)
	assert.Equal(t, 1.0, d.Forms[0].Entry.Scale)
}

// TestAnAliasOfYAMLStandsForItsValue, and not for its own name.
func TestAnAliasOfYAMLStandsForItsValue(t *testing.T) {
	set := parse(t, `
engine: &name acme
prefix: *name
signals:
  ttft: &form {type: histogram, names: &names [x]}
  itl: {type: &type histogram, names: [*name]}
  e2e: {type: *type, names: [z]}
`)
	assert.Equal(t, fleet.ITL, meaning(t, set, "acme:acme").Entry.Signal)
	assert.Equal(t, fleet.E2E, meaning(t, set, "acme_z").Entry.Signal)
}

// TestParseSaysWhatIsWrongWhere: each case breaks one line of the complete file.
func TestParseSaysWhatIsWrongWhere(t *testing.T) {
	for name, tc := range brokenFiles {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("acme.yaml", []byte(tc.text(t)))
			assert.EqualError(t, err, tc.want)
		})
	}
}

// brokenFile is a complete file but for one line, and what is said of it.
type brokenFile struct{ line, broken, want string }

func (b brokenFile) text(t *testing.T) string {
	t.Helper()
	require.Equal(t, 1, strings.Count("\n"+complete, "\n"+b.line+"\n"), "the case breaks no line, or several")
	return strings.Replace("\n"+complete, "\n"+b.line+"\n", "\n"+b.broken+"\n", 1)[1:]
}

var brokenFiles = map[string]brokenFile{
	"unknown key":             {"prefix: acme_serve", "prefx: acme", "acme.yaml:3: prefx: unknown key"},
	"unknown label key":       {"  role: [mode]", "  rank: [mode]", "acme.yaml:8: labels.rank: unknown key"},
	"unknown signal key":      {"    add: [queue, parked]", "    nams: [queue]", "acme.yaml:34: signals.waiting.nams: unknown key"},
	"unknown key of a form":   {"      unit: ms", "      units: ms", "acme.yaml:29: signals.ttft[1].units: unknown key"},
	"unknown key of an info":  {"    config: [block_size]", "    configs: [block_size]", "acme.yaml:57: info.build_info.configs: unknown key"},
	"unknown signal":          {"  waiting:", "  waitng:", "acme.yaml:32: signals.waitng: not a signal"},
	"unknown type":            {"    scale: 2", "  itl: {type: summary, names: [a]}", "acme.yaml:47: signals.itl.type: want one of histogram, gauge, counter, not summary"},
	"unknown component":       {"component: router", "component: proxy", "acme.yaml:2: component: want one of engine, router, gateway, gpu, autoscaler, kubernetes, not proxy"},
	"unknown part":            {"    part: sum", "    part: mean", "acme.yaml:38: signals.prompt_tokens.part: want one of whole, sum, count, not mean"},
	"unknown unit":            {"      unit: ms", "      unit: MB", "acme.yaml:29: signals.ttft[1].unit: ttft is measured in s, and MB is no unit of that"},
	"unknown version":         {"      since: v2", "      since: v9", "acme.yaml:26: signals.ttft[0].since: v9 is none of the versions of the file"},
	"until before since":      {"      since: v1", "      since: v3", "acme.yaml:30: signals.ttft[1].since: v3 is later than v2"},
	"version twice":           {"versions: [v1, v2, v3]", "versions: [v1, v2, v2, v3]", "acme.yaml:5: versions: v2 stands twice"},
	"versions missing":        {"versions: [v1, v2, v3]", "", "acme.yaml:26: signals.ttft[0].since: v2 is none of the versions of the file"},
	"key twice":               {"component: router", "engine: b", "acme.yaml:2: engine: key stands twice"},
	"signal twice":            {"  finished:", "  waiting:", "acme.yaml:44: signals.waiting: key stands twice"},
	"names and add":           {"    keep: {priority: [\"\"], lane.name: [a, b]}", "    names: [x]", "acme.yaml:35: signals.waiting.names: there are names already: use either names or add"},
	"unit and scale":          {"      until: v2", "      scale: 3", "acme.yaml:31: signals.ttft[1].scale: there is a scale already: use either unit or scale"},
	"name twice in a signal":  {"      names: [ttft_ms, ttft_millis]", "      names: [first_token_seconds]", "acme.yaml:28: signals.ttft[1].names: acme_serve:first_token_seconds is already ttft of acme"},
	"number for a text":       {"engine: acme", "engine: 7", "acme.yaml:1: engine: want a text"},
	"null for a text":         {"  unless: model", "  unless:", "acme.yaml:21: labels.unless: want a text"},
	"list for a text":         {"  unless: model", "  unless: [model]", "acme.yaml:21: labels.unless: want a text"},
	"text for a list":         {"  role: [mode]", "  role: mode", "acme.yaml:8: labels.role: want a list of texts"},
	"empty list":              {"carriers: [ray]", "carriers: []", "acme.yaml:4: carriers: want a list of texts"},
	"number in a list":        {"  replica: [id]", "  replica: [id, 3]", "acme.yaml:11: labels.replica: want a list of texts"},
	"list in a list":          {"  replica: [id]", "  replica: [[id]]", "acme.yaml:11: labels.replica: want a list of texts"},
	"empty name":              {"    names: [heat]", "    names: [\"\"]", "acme.yaml:50: signals.gpu_temperature.names: want no empty text"},
	"no names":                {"    names: [heat]", "", "acme.yaml:48: signals.gpu_temperature: there are no names: use names, or add for those that are added up"},
	"no forms":                {"    range: [10, 90.5]", "  kv_usage: []", "acme.yaml:51: signals.kv_usage: want keys and values"},
	"type missing":            {"    scale: 2", "  running: {names: [x]}", "acme.yaml:47: signals.running.type: key is missing"},
	"text for a number":       {"    scale: 2", "    scale: two", "acme.yaml:47: signals.finished.scale: want a number"},
	"scale zero":              {"    scale: 2", "    scale: 0", "acme.yaml:47: signals.finished.scale: want a number above 0"},
	"scale NaN":               {"    scale: 2", "    scale: .nan", "acme.yaml:47: signals.finished.scale: want a number above 0"},
	"scale infinite":          {"    scale: 2", "    scale: .inf", "acme.yaml:47: signals.finished.scale: want a number above 0"},
	"one end of a range":      {"    range: [10, 90.5]", "    range: [10]", "acme.yaml:51: signals.gpu_temperature.range: want two numbers, as in [0, 1]"},
	"range turned round":      {"    range: [10, 90.5]", "    range: [2, 1]", "acme.yaml:51: signals.gpu_temperature.range: want the lesser number first"},
	"range of texts":          {"    range: [10, 90.5]", "    range: [a, b]", "acme.yaml:51: signals.gpu_temperature.range[0]: want a number"},
	"range of a counter":      {"    scale: 2", "    range: [0, 1]", "acme.yaml:47: signals.finished.range: finished is a counter and has no range"},
	"list for a mapping":      {"    only: {why: [error], code: []}", "    only: [why]", "acme.yaml:43: signals.errors.only: want keys and values"},
	"text for a filter":       {"    only: {why: [error], code: []}", "    only: {why: error}", "acme.yaml:43: signals.errors.only.why: want a list of texts"},
	"keep nothing":            {"    keep: {priority: [\"\"], lane.name: [a, b]}", "    keep: {priority: []}", "acme.yaml:35: signals.waiting.keep.priority: want a list of texts"},
	"empty label":             {"    only: {why: [error], code: []}", "    only: {\"\": [error]}", "acme.yaml:43: signals.errors.only: want a text for a key, not \"\""},
	"engine missing":          {"engine: acme", "", "acme.yaml:1: engine: key is missing"},
	"_total in a counter":     {"    scale: 2", "  preemptions: {type: counter, names: [a, b_total]}", "acme.yaml:47: signals.preemptions.names: leave _total off b_total: a counter matches with and without"},
	"latency from a gauge":    {"    scale: 2", "  itl: {type: gauge, names: [a]}", "acme.yaml:47: signals.itl.type: itl is a histogram and cannot be read from a gauge"},
	"latency from a part":     {"    scale: 2", "  itl: {type: histogram, part: sum, names: [a]}", "acme.yaml:47: signals.itl.type: itl is a histogram and cannot be read from a counter"},
	"total from a histogram":  {"    part: sum", "", "acme.yaml:37: signals.prompt_tokens.type: prompt_tokens is a counter: read it from a counter, or with part: sum or part: count from a histogram"},
	"level from a counter":    {"    scale: 2", "  running: {type: counter, names: [a]}", "acme.yaml:47: signals.running.type: running is a gauge and cannot be read from a counter"},
	"end of a gauge":          {"    range: [10, 90.5]", "    at_end: true", "acme.yaml:51: signals.gpu_temperature.at_end: gpu_temperature is a gauge, which is told at any time"},
	"text for a flag":         {"    scale: 2", "    at_end: soon", "acme.yaml:47: signals.finished.at_end: want true or false"},
	"part of a gauge":         {"    range: [10, 90.5]", "    part: sum", "acme.yaml:51: signals.gpu_temperature.part: only a histogram has a sum"},
	"carriers of whole names": {"prefix: acme_serve", "", "acme.yaml:4: carriers: there is no prefix for them to stand before"},
	"unless of nothing":       {"  reject: [router]", "", "acme.yaml:21: labels.unless: there is nothing to reject"},
	"a second document":       {"  times: [clock, tick]", "---\nengine: other", "acme.yaml:1: want one document a file"},
	"names of no signal":      {"  times: [clock, tick]", "  times: {clock: tick}", "acme.yaml:60: ignore.times: want a list of texts"},
	"no fact of an engine":    {"    load: {begins: weights.load_started, ends: weights.loaded}", "    load: {ends: pod.ready}", "acme.yaml:65: startup.spans.load.ends: pod.ready is no fact that an engine tells"},
	"span of nothing":         {"    load: {begins: weights.load_started, ends: weights.loaded}", "    load: {}", "acme.yaml:65: startup.spans.load: it tells nothing: use begins, ends or both"},
	"unknown part of a start": {"  metrics:", "  gauges:", "acme.yaml:66: startup.gauges: unknown key"},
	"a line as a text":        {"    - {tells: weights.loaded, names: [load_seconds], only: {phase: [weights]}}", "    load_seconds", "acme.yaml:66: startup.metrics: want a list"},
	"list for an info":        {"    config: [block_size]", "  server_info: [version]", "acme.yaml:57: info.server_info: want keys and values"},
}

func TestParseRefusesWhatIsNoDialect(t *testing.T) {
	for name, tc := range map[string]struct{ data, want string }{
		"empty":          {"", "acme.yaml:1: want keys and values"},
		"a comment":      {"# nothing\n", "acme.yaml:1: want keys and values"},
		"a text":         {"acme", "acme.yaml:1: want keys and values"},
		"no YAML":        {"engine: a\nprefix: 'a\n", "acme.yaml: yaml: line 2: found unexpected end of stream"},
		"no signals":     {"engine: a\nprefix: a\n", "acme.yaml:1: signals: key is missing"},
		"number as key":  {"7: a\n", "acme.yaml:1: want a text for a key, not \"7\""},
		"mapping as key": {"{a: b}: c\n", "acme.yaml:1: want a text for a key, not \"\""},
		"merged":         {"engine: &a a\n<<: *a\n", "acme.yaml:2: want a text for a key, not \"<<\""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("acme.yaml", []byte(tc.data))
			assert.EqualError(t, err, tc.want)
		})
	}
}

// TestUnits: what one of each is in the canonical unit, by the SI and IEC.
func TestUnits(t *testing.T) {
	for _, tc := range []struct {
		form string
		want float64
	}{
		{"ttft: {type: histogram, unit: s, names: [x]}", 1},
		{"ttft: {type: histogram, unit: ms, names: [x]}", 0.001},
		{"ttft: {type: histogram, unit: us, names: [x]}", 0.000001},
		{"throttle_time: {type: counter, unit: ns, names: [x]}", 0.000000001},
		{"startup_time: {type: gauge, unit: min, names: [x]}", 60},
		{"gpu_usage: {type: gauge, unit: ratio, names: [x]}", 1},
		{"gpu_usage: {type: gauge, unit: percent, names: [x]}", 0.01},
		{"kv_transfer_bytes: {type: counter, unit: B, names: [x]}", 1},
		{"kv_transfer_bytes: {type: counter, unit: kB, names: [x]}", 1000},
		{"kv_transfer_bytes: {type: histogram, part: sum, unit: MB, names: [x]}", 1000 * 1000},
		{"kv_transfer_bytes: {type: counter, unit: GB, names: [x]}", 1000 * 1000 * 1000},
		{"gpu_memory_used: {type: gauge, unit: KiB, names: [x]}", 1024},
		{"gpu_memory_used: {type: gauge, unit: MiB, names: [x]}", 1024 * 1024},
		{"gpu_memory_used: {type: gauge, unit: GiB, names: [x]}", 1024 * 1024 * 1024},
		{"sm_clock: {type: gauge, unit: Hz, names: [x]}", 1},
		{"sm_clock: {type: gauge, unit: kHz, names: [x]}", 1000},
		{"sm_clock: {type: gauge, unit: MHz, names: [x]}", 1000 * 1000},
		{"sm_clock: {type: gauge, unit: GHz, names: [x]}", 1000 * 1000 * 1000},
		{"gpu_energy: {type: counter, unit: J, names: [x]}", 1},
		{"gpu_energy: {type: counter, unit: mJ, names: [x]}", 0.001},
		{"gpu_power: {type: gauge, unit: W, names: [x]}", 1},
		{"gpu_power: {type: gauge, unit: mW, names: [x]}", 0.001},
		{"gpu_temperature: {type: gauge, unit: Cel, names: [x]}", 1},
		{"ttft: {type: histogram, scale: 2.5e-4, names: [x]}", 0.00025},
		{"ttft: {type: histogram, scale: 3, names: [x]}", 3},
	} {
		set := parse(t, "{engine: a, signals: {"+tc.form+"}}")
		assert.Equal(t, tc.want, meaning(t, set, "x").Entry.Scale, tc.form)
		unit := set.Dialects()[0].Forms[0].Unit
		assert.Equal(t, unit != "", strings.Contains(tc.form, "unit: "+unit), tc.form)
	}
}

// FuzzParse: whatever stands in a file, it is read or refused, and what is
// refused is said of that file.
func FuzzParse(f *testing.F) {
	f.Add([]byte(complete))
	f.Add([]byte("engine: &a {b: [*a]}\nlabels: *a\nsignals: {*a : *a}"))
	for _, data := range builtinFiles(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		set, err := Parse("file.yaml", data)
		if err != nil {
			assert.Nil(t, set)
			assert.Regexp(t, `^file\.yaml:(\d+:)? `, err.Error())
			return
		}
		for _, form := range set.Dialects()[0].Forms {
			assert.NotEmpty(t, form.Names)
			assert.Positive(t, form.Entry.Scale)
		}
	})
}

// TestALineHasToBegin with letters, so that others are passed over at once.
func TestALineHasToBeginWithLetters(t *testing.T) {
	for says, want := range map[string]string{
		`\w+ loaded`:            "begin with at least 4 letters that are always the same",
		`(?i)weights loaded`:    "begin with at least 4 letters that are always the same",
		`Weights in (?P<s>\d+)`: "s is no group: use took, model or copy",
		`Weights (`:             "error parsing regexp: missing closing ): `^(?:Weights ()`",
	} {
		_, err := Parse("acme.yaml", []byte("engine: a\nsignals: {}\nstartup:\n  lines:\n    - {tells: weights.loaded, says: '"+says+"'}\n"))
		assert.EqualError(t, err, "acme.yaml:5: startup.lines[0].says: "+want)
	}
}
