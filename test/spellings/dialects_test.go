// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package spellings

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// quillPage is a page of the engine that testdata/quill.yaml describes, which has two lanes. At the jump 100 first tokens
// come, half of them in either lane, in between two of the bounds 100, 200 and 400 ms; and so do gaps between tokens, told
// by the engine's new name and by its old one.
func quillPage(at time.Duration, slow bool) []byte {
	var page []byte
	histogram := func(name string, bounds ...int) {
		page = fmt.Appendf(page, "# TYPE quill:%s histogram\n", name)
		for lane := range 2 {
			labels := fmt.Sprintf(`lane="%d",served_as="test/quill-1b",stage="decode"`, lane)
			for i, bound := range bounds {
				below := 0
				if i == len(bounds)-1 || i == 1 && !slow {
					below = moved(at, 0, 50)
				}
				page = fmt.Appendf(page, "quill:%s_bucket{%s,le=\"%d\"} %d\n", name, labels, bound, below)
			}
			page = fmt.Appendf(page, "quill:%s_bucket{%s,le=\"+Inf\"} %d\n", name, labels, moved(at, 0, 50))
			page = fmt.Appendf(page, "quill:%[1]s_sum{%[2]s} 0\nquill:%[1]s_count{%[2]s} %[3]d\n", name, labels, moved(at, 0, 50))
		}
	}
	histogram("first_token_ms", 100, 200, 400)
	histogram("token_gap_us", 10_000, 20_000, 40_000)
	histogram("token_gap_ms", 10, 20, 40)
	return fmt.Appendf(page, `# TYPE quill:requests gauge
quill:requests{lane="0",phase="queued",served_as="test/quill-1b",stage="decode"} 3
quill:requests{lane="1",phase="queued",served_as="test/quill-1b",stage="decode"} 1
quill:requests{lane="0",phase="active",served_as="test/quill-1b",stage="decode"} 8
quill:requests{lane="1",phase="active",served_as="test/quill-1b",stage="decode"} 7
quill:requests{lane="1",phase="cancelled",served_as="test/quill-1b",stage="decode"} 99
# TYPE quill:cache_fill gauge
quill:cache_fill{lane="0",served_as="test/quill-1b",stage="decode"} 40
quill:cache_fill{lane="1",served_as="test/quill-1b",stage="decode"} 60
# TYPE quill:cache_hit_tokens_total counter
quill:cache_hit_tokens_total{lane="0",served_as="test/quill-1b",stage="decode"} %d
# TYPE quill:cache_lookup_tokens_total counter
quill:cache_lookup_tokens_total{lane="0",served_as="test/quill-1b",stage="decode"} %d
`, moved(at, 500, 30), moved(at, 900, 120))
}

// quillFleet scrapes three replicas; the last one is slow.
func quillFleet(t *testing.T) []delivery {
	t.Helper()
	var all []delivery
	for replica := range 3 {
		page := func(at time.Duration) []byte { return quillPage(at, replica == 2) }
		all = append(all, pod(fmt.Sprintf("quill-%d", replica)).scrape(t, page)...)
	}
	return all
}

// TestNewEngine: an engine becomes known by a YAML file alone, or by the same keys in the configuration.
func TestNewEngine(t *testing.T) {
	served := quillFleet(t)
	unknown := outlier(t, everything(), served)
	assert.Empty(t, unknown.points)

	f := outlier(t, with(everything(), "dialects", []any{"testdata/quill.yaml"}), served)
	assertRatio(t, f, 0.150, "llmfleet.replica.latency", "signal=ttft", "quantile=0.5", "replica=quill-0", "engine_name=quill", "role=decode")
	assertRatio(t, f, 0.300, "llmfleet.replica.latency", "signal=ttft", "quantile=0.5", "replica=quill-2", "model_name=test/quill-1b")
	assertRatio(t, f, 2, "llmfleet.replica.latency_ratio", "signal=ttft", "quantile=0.5", "replica=quill-2")
	assertRatio(t, f, 0.015, "llmfleet.replica.latency", "signal=itl", "quantile=0.5", "replica=quill-1")
	assertRatio(t, f, 2, "llmfleet.replica.latency_ratio", "signal=itl", "quantile=0.95", "replica=quill-2")
	assertRatio(t, f, 100, "llmfleet.replica.observations", "signal=itl", "replica=quill-1")
	assertRatio(t, f, 4, "llmfleet.replica.requests", "state=waiting", "replica=quill-0")
	assertRatio(t, f, 15, "llmfleet.replica.requests", "state=running", "replica=quill-0")
	assertRatio(t, f, 0.5, "llmfleet.replica.kv_usage_ratio", "replica=quill-0")
	assertRatio(t, f, 0.25, replicaHitRatio, "replica=quill-0")
	assertRatio(t, f, 3, "llmfleet.fleet.replicas", "state=judged")

	text, err := os.ReadFile("testdata/quill.yaml")
	require.NoError(t, err)
	var keys map[string]any
	require.NoError(t, yaml.Unmarshal(text, &keys))
	inline := outlier(t, with(everything(), "dialects", []any{keys}), served)
	assert.Empty(t, f.differences(inline))
}

// renamed are the targets of the fleet, of which some replicas say another name of their model.
func renamed(names map[string]string) func(*fleetsim.Target) source {
	return func(target *fleetsim.Target) source {
		s := onPod(target)
		if name, ok := names[target.Name()]; ok {
			s.edit = func(page []byte) []byte {
				return bytes.ReplaceAll(page, []byte(`"test/chat-8b"`), []byte(`"`+name+`"`))
			}
		}
		return s
	}
}

// TestAliases: an engine that goes by an alias of its model is in the fleet of the model. A name that is neither keeps a
// fleet of its own, and is counted.
func TestAliases(t *testing.T) {
	want := outlier(t, everything(), simulate(t, chat(fleetsim.Current), onPod))
	aliased := simulate(t, chat(fleetsim.Current), renamed(map[string]string{"chat-1": "chat"}))
	aliases := with(everything(), "model_aliases", map[string]any{"chat": "test/chat-8b"})

	split := outlier(t, everything(), aliased)
	assertRatio(t, split, 1, "llmfleet.fleet.replicas", "state=withheld", "model_name=chat")
	assert.NotContains(t, split.ignored(), "unknown_model", "without aliases there is nothing to know")

	joined := outlier(t, aliases, aliased)
	assert.Empty(t, want.differences(joined))
	assert.NotContains(t, joined.ignored(), "unknown_model")

	strange := outlier(t, aliases, simulate(t, chat(fleetsim.Current), renamed(map[string]string{"chat-1": "chat", "chat-3": "unheard-of"})))
	assert.Positive(t, strange.ignored()["unknown_model"])
	assertRatio(t, strange, 3, "llmfleet.fleet.replicas", "state=judged", "model_name=test/chat-8b")
	assertRatio(t, strange, 1, "llmfleet.fleet.replicas", "state=withheld", "model_name=unheard-of")
}
