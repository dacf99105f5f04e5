// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

func instant(t *testing.T, text string) window.Instant {
	t.Helper()
	if text == "" {
		return 0
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return window.Instant(at.UnixNano())
}

// TestLine: each engine's own lines, and when they say that they were written.
func TestLine(t *testing.T) {
	s := NewStartup(Builtin())
	for _, tc := range startLines {
		m, ok := s.Line(tc.line)
		require.True(t, ok, tc.line)
		at := instant(t, tc.at)
		assert.Equal(t, at, m.Stamp.At(at.Add(100*time.Second)), tc.line)
		m.Stamp = Stamp{}
		assert.Equal(t, tc.want, m, tc.line)
	}
}

// wrappers put what runtimes, log readers and terminals do before a line.
var wrappers = map[string]func(string) string{
	"CRI": func(l string) string { return "2026-08-05T00:46:16.123456789Z stdout F " + l },
	"docker": func(l string) string {
		return `{"log":"` + l + `\n","stream":"stderr","time":"2026-08-05T00:46:16.123456789Z"}`
	},
	"kubectl --prefix": func(l string) string { return "[pod/qwen-0/engine] " + l },
	"kubectl --timestamps": func(l string) string {
		return "2026-08-05T00:46:16.123456789Z " + l
	},
	"stern":           func(l string) string { return "qwen-6d9f7b-x2k4p engine " + l },
	"docker compose":  func(l string) string { return "engine-1  | " + l },
	"structured":      func(l string) string { return `{"level":"info","ts":"2026-08-05T00:46:16Z","msg":"` + l + `"}` },
	"JSON inside CRI": func(l string) string { return `2026-08-05T00:46:16.1Z stderr F {"message":"` + l + `"}` },
	"klog":            func(l string) string { return "I0805 00:46:16.123456       7 relay.go:41] " + l },
	"loguru":          func(l string) string { return "2026-08-05 00:46:16.123 | INFO     | relay:copy:41 - " + l },
	"colour":          func(l string) string { return "\x1b[1;36m" + strings.Replace(l, ") ", ")\x1b[0;0m ", 1) },
	"colour in JSON": func(l string) string {
		return `{"log":"\u001b[1;36m` + strings.Replace(l, ") ", `)\u001b[0;0m `, 1) + `\n"}`
	},
	"carriage returns": func(l string) string { return l + "\r\n" },
}

// TestLineWhateverStandsBefore it.
func TestLineWhateverStandsBefore(t *testing.T) {
	const line = "(EngineCore pid=589851) INFO 08-05 08:46:16 [gpu_model_runner.py:6722] Graph capturing finished in 128 secs, took 0.72 GiB"
	s := NewStartup(Builtin())
	for name, wrap := range wrappers {
		m, ok := s.Line(wrap(line))
		if !assert.True(t, ok, name) {
			continue
		}
		at := m.Stamp.At(instant(t, "2026-08-05T00:46:18Z")) // the engine's zone is eight hours ahead
		assert.Equal(t, instant(t, "2026-08-05T00:46:16Z"), at-at%window.Instant(time.Second), name)
		m.Stamp = Stamp{}
		assert.Equal(t, Mark{
			Name: lifecycle.GraphsFinished, Engine: "vllm", Copy: "EngineCore pid=589851", Took: 128 * time.Second,
		}, m, name)
	}
}

// ordinaryLines tell nothing of a start, though some have words of one.
var ordinaryLines = []string{
	"",
	"(APIServer pid=589370) INFO:     127.0.0.1:51238 - \"POST /v1/completions HTTP/1.1\" 200 OK",
	"(APIServer pid=589370) INFO 08-05 08:51:59 [loggers.py:282] Engine 000: Avg prompt throughput: 358.3 tokens/s, Avg generation throughput: 3.3 tokens/s, Running: 8 reqs, Waiting: 0 reqs, GPU KV cache usage: 2.9%, Prefix cache hit rate: 0.0%",
	"[2025-12-02 12:02:32 TP0] Decode batch. #running-req: 8, #token: 1234, token usage: 0.02, cuda graph: True, gen throughput (token/s): 612.32, #queue-req: 0",
	"Loading safetensors checkpoint shards:  56% Completed | 5/9 [00:13<00:11,  2.87s/it]",
	"(EngineCore pid=589851) INFO 08-05 08:42:28 [default_loader.py:430] Loading weights took 20.10 seconds",
	"(EngineCore pid=589851) INFO 08-05 08:43:35 [backends.py:393] Compiling a graph for compile range (1, 2048) takes 59.19 s",
	"(EngineCore pid=589851) INFO 08-05 08:43:35 [decorators.py:311] Directly load AOT compilation from path /root/.cache/vllm/torch_compile_cache/torch_aot_compile/129f/rank_0_0/model",
	"(EngineCore pid=589851) INFO 08-05 08:46:16 [gpu_model_runner.py:6722] Graph capturing finished soon",
	"[2025-12-28 10:40:09 TP0] Capture cuda graph bs [1, 2, 4, 8, 12]",
	"INFO:     Application startup complete.",
	"INFO websocket: Connected",
	// Words of a start in a request, and in prose.
	"(APIServer pid=1) INFO 08-05 08:51:59 [logger.py:40] Received request cmpl-7: prompt: 'what is: Graph capturing finished in 128 secs', params: SamplingParams(n=1)",
	`{"level":"info","msg":"prompt=\"(EngineCore pid=1) INFO 08-05 08:41:37 [core.py:114] GPU KV cache size: 158,720 tokens\""}`,
	"waiting until Model loading took 3 GiB and 5 seconds",
	"unGPU KV cache size: 1 tokens",
	"{\"log\":\"Model init total -- 49.14s",
}

func TestOrdinaryLinesTellNothing(t *testing.T) {
	s := NewStartup(Builtin())
	for _, line := range ordinaryLines {
		m, ok := s.Line(line)
		assert.False(t, ok, "%s: %v", line, m)
	}
}

// TestOfAKnownEngine: words that several engines write, and of no others.
func TestOfAKnownEngine(t *testing.T) {
	s := NewStartup(Builtin())
	assert.Equal(t, []string{"sglang", "tensorrt_llm", "tgi", "vllm"}, s.Engines())
	const uvicorn = "INFO:     Application startup complete."
	for engine, ready := range map[string]bool{"vllm": true, "tensorrt_llm": true, "sglang": false, "llamacpp": false, "unheard_of": false} {
		m, ok := s.Of(engine).Line(uvicorn)
		assert.Equal(t, ready, ok, engine)
		if ready {
			assert.Equal(t, Mark{Name: lifecycle.EngineReady, Engine: engine}, m)
		}
	}
	_, ok := s.Of("vllm").Of("sglang").Line("Model init total -- 49.14s")
	assert.False(t, ok, "a line of TensorRT-LLM")
}

// TestDurations that no start takes are none.
func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"20.10": 20100 * time.Millisecond, "128": 128 * time.Second, "812.5ms": 812500 * time.Microsecond, "3.5µs": 3500,
		"1e300": 0, "-3": 0, "NaN": 0, "1.2.3": 0, "": 0, ".": 0, "604801": 0, "99999h": 0,
	} {
		assert.Equal(t, want, duration(text), text)
	}
}

// TestSpans of vLLM's start, and what is no span of it.
func TestSpans(t *testing.T) {
	s := NewStartup(Builtin())
	begins, ends, ok := s.Span("Load model")
	assert.True(t, ok)
	assert.Equal(t, lifecycle.WeightsStarted, begins)
	assert.Equal(t, lifecycle.WeightsFinished, ends)
	_, ends, ok = s.Of("vllm").Span("Warmup (GPU)")
	assert.True(t, ok)
	assert.Equal(t, lifecycle.WarmupFinished, ends)
	_, _, ok = s.Of("sglang").Span("Load model")
	assert.False(t, ok)
	_, _, ok = s.Span("llm_request")
	assert.False(t, ok)
}

// TestMetrics of SGLang's start, in either spelling.
func TestMetrics(t *testing.T) {
	s := NewStartup(Builtin())
	for _, name := range []string{"sglang:startup_time_seconds", "sglang_startup_time_seconds"} {
		tells := make(map[string]lifecycle.Name)
		for _, p := range s.Metric(name) {
			tells[p.Only[0].Values[0]] = p.Tells
		}
		assert.Equal(t, map[string]lifecycle.Name{
			"load_weight": lifecycle.WeightsFinished, "kv_cache_allocation": lifecycle.KVCacheFinished, "tokenizer_e2e": lifecycle.EngineReady,
		}, tells)
	}
	assert.Len(t, s.Metric("sglang:engine_load_weights_time"), 1)
	assert.Empty(t, s.Metric("vllm:startup_time_seconds"))
}

func TestOrdinaryLinesCostNoMemory(t *testing.T) {
	s := NewStartup(Builtin())
	assert.Zero(t, testing.AllocsPerRun(100, func() { s.Line(ordinaryLines[1]) }))
}

func BenchmarkLine(b *testing.B) {
	s := NewStartup(Builtin())
	for name, line := range map[string]string{"access": ordinaryLines[1], "loggers": ordinaryLines[2], "batch": ordinaryLines[3], "mark": startLines[12].line} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				s.Line(line)
			}
		})
	}
}

// FuzzLine: no line is too odd, and what is told is in range.
func FuzzLine(f *testing.F) {
	for _, tc := range startLines {
		f.Add(tc.line, int64(1785890000e9))
	}
	for _, line := range ordinaryLines {
		f.Add(line, int64(0))
	}
	for _, wrap := range wrappers {
		f.Add(wrap(startLines[3].line), int64(-1))
	}
	s := NewStartup(Builtin())
	f.Fuzz(func(t *testing.T, line string, near int64) {
		m, ok := s.Line(line)
		if !ok {
			if m != (Mark{}) {
				t.Fatal("a mark that is none")
			}
			return
		}
		if !m.Name.OfEngine() || m.Engine == "" || m.Took < 0 || m.Took > longest {
			t.Fatalf("%+v", m)
		}
		if of, same := s.Of(m.Engine).Line(line); !same || of != m {
			t.Fatalf("%+v, and of the engine %+v", m, of)
		}
		if at := m.Stamp.At(window.Instant(near)); m.Stamp.IsZero() != (at == 0) && near > 0 && m.Stamp.yearly {
			t.Fatalf("%+v is %d", m.Stamp, at)
		}
	})
}
