// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// inline is a dialect as it stands in a collector's configuration.
type inline = map[string]any

func gauge(names ...any) inline { return inline{"type": "gauge", "names": names} }

func load(t *testing.T, sources ...any) *Set {
	t.Helper()
	set, err := Sources(sources).Load()
	require.NoError(t, err)
	return set
}

func fileOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "own.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestNoSources(t *testing.T) {
	assert.Same(t, Builtin(), load(t))
}

// TestANewEngine stands beside the others, whether it is in a file or inline.
func TestANewEngine(t *testing.T) {
	for name, source := range map[string]any{
		"file": fileOf(t, "{engine: acme, prefix: acme, signals: {waiting: {type: gauge, names: [queue], keep: {lane: ['']}}}}"),
		"inline": inline{"engine": "acme", "prefix": "acme", "signals": inline{
			"waiting": inline{"type": "gauge", "names": []any{"queue"}, "keep": inline{"lane": []any{""}}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			set := load(t, source)
			match := meaning(t, set, "acme:queue")
			assert.Equal(t, "acme", match.Entry.Dialect.Name)
			assert.Equal(t, []LabelFilter{{[]string{"lane"}, []string{""}}}, match.Entry.Keep)
			assert.Equal(t, Builtin().Match("vllm:num_requests_waiting"), set.Match("vllm:num_requests_waiting"))
			assert.Len(t, set.Dialects(), len(Builtin().Dialects())+1)
			assert.Empty(t, Builtin().Match("acme:queue"), "what comes with the product stays as it is")
		})
	}
}

// TestASignalOfAKnownEngine is read as the source says, and only so; the
// engine's other signals stay.
func TestASignalOfAKnownEngine(t *testing.T) {
	set := load(t, inline{"engine": "vllm", "prefix": "vllm", "signals": inline{"kv_usage": gauge("my_usage")}})
	assert.Equal(t, fleet.KVUsage, meaning(t, set, "vllm:my_usage").Entry.Signal)
	assert.Empty(t, set.Match("vllm:kv_cache_usage_perc"))
	assert.Empty(t, set.Match("vllm:gpu_cache_usage_perc"))
	assert.Equal(t, Builtin().Match("vllm:num_requests_running"), set.Match("vllm:num_requests_running"))
	assert.Equal(t, Builtin().Match("sglang:num_queue_reqs"), set.Match("sglang:num_queue_reqs"))
}

// TestANameOfAKnownEngine means what the source says; the signal's other names
// stay.
func TestANameOfAKnownEngine(t *testing.T) {
	set := load(t, inline{"engine": "fork", "prefix": "vllm", "signals": inline{"running": gauge("num_requests_waiting")}})
	match := meaning(t, set, "vllm:num_requests_waiting")
	assert.Equal(t, fleet.Running, match.Entry.Signal)
	assert.Equal(t, "fork", match.Entry.Dialect.Name)
	assert.Empty(t, set.Match("ray_vllm:num_requests_waiting"), "all spellings of a name go together")
	assert.Equal(t, Builtin().Match("vllm:num_requests_running"), set.Match("vllm:num_requests_running"))
}

// TestANameMayBeSilenced: a source's word that a name is ignored, or tells
// facts, counts as well.
func TestANameMayBeSilenced(t *testing.T) {
	set := load(t, inline{
		"engine": "vllm", "prefix": "vllm",
		"signals": inline{"startup_time": gauge("load_seconds")},
		"info":    inline{"num_requests_running": inline{"engine_version": []any{"version"}}},
		"ignore":  inline{"broken in our build": []any{"num_requests_waiting"}},
	})
	assert.Empty(t, set.Match("vllm:num_requests_waiting"))
	why, ok := set.Ignored("vllm:num_requests_waiting")
	assert.True(t, ok)
	assert.Equal(t, "broken in our build", why)
	assert.Empty(t, set.Match("vllm:num_requests_running"))
	assert.Equal(t, []string{"version"}, set.Info("vllm:num_requests_running").EngineVersion)
	assert.NotEmpty(t, set.Match("vllm:prompt_tokens"))
}

// TestFactsOfAKnownEngine are those that the source says.
func TestFactsOfAKnownEngine(t *testing.T) {
	set := load(t, inline{
		"engine": "a_fork", "prefix": "vllm", "signals": inline{"startup_time": gauge("load_seconds")},
		"info": inline{"cache_config_info": inline{"config": []any{"mine"}}},
	})
	assert.Equal(t, []string{"mine"}, set.Info("vllm:cache_config_info").Config)
}

func TestSourcesSayWhatIsWrongWhere(t *testing.T) {
	acme := func(key string, value any) inline {
		source := inline{"engine": "acme", "signals": inline{"waiting": gauge("queue")}}
		source[key] = value
		return source
	}
	broken := fileOf(t, "engine: acme\nsignals:\n  waiting:\n    type: counter\n    names: [x]\n")
	for name, tc := range map[string]struct {
		sources Sources
		want    string
	}{
		"unknown key":         {Sources{acme("prefx", "a")}, "dialects[0]: prefx: unknown key"},
		"number for a text":   {Sources{acme("prefix", 7)}, "dialects[0]: prefix: want a text"},
		"nothing for a text":  {Sources{acme("prefix", nil)}, "dialects[0]: prefix: want a text"},
		"text for a list":     {Sources{acme("carriers", "ray")}, "dialects[0]: carriers: want a list of texts"},
		"signals missing":     {Sources{inline{"engine": "acme"}}, "dialects[0]: signals: key is missing"},
		"unknown signal":      {Sources{acme("signals", inline{"waitng": gauge("x")})}, "dialects[0]: signals.waitng: not a signal"},
		"in a list of forms":  {Sources{acme("signals", inline{"waiting": []any{gauge("x"), inline{"type": "gauge"}}})}, "dialects[0]: signals.waiting[1]: there are no names: use names, or add for those that are added up"},
		"name twice":          {Sources{acme("signals", inline{"waiting": gauge("x", "x")})}, "dialects[0]: signals.waiting.names: x is already waiting of acme"},
		"names of two":        {Sources{acme("prefix", "a"), acme("engine", "other"), acme("engine", "third")}, "dialects[2]: signals.waiting.names: queue is already waiting of other"},
		"in a file":           {Sources{broken}, broken + ":4: signals.waiting.type: waiting is a gauge and cannot be read from a counter"},
		"no such file":        {Sources{"/no/such.yaml"}, "dialects[0]: stat /no/such.yaml: no such file or directory: use the path of a file that the collector can read, or write its keys here"},
		"neither":             {Sources{7}, "dialects[0]: want the path of a file, or the keys of one"},
		"all that are broken": {Sources{7, acme("prefix", "a"), acme("prefx", "a")}, "dialects[0]: want the path of a file, or the keys of one\ndialects[2]: prefx: unknown key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.sources.Load()
			assert.EqualError(t, err, tc.want)
		})
	}
}
