// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"time"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
)

// startLines are lines as engines of several versions have written them, and
// what they tell.
var startLines = []struct {
	line string
	want Mark // without Stamp
	at   string
}{
	// vLLM.
	{
		"(EngineCore pid=589851) INFO 08-05 08:41:37 [core.py:114] Initializing a V1 LLM engine (vdev) with config: model='/data/shared_models/Qwen--Qwen2.5-14B-Instruct', speculative_config=None, seed=0, served_model_name=/data/shared_models/Qwen--Qwen2.5-14B-Instruct, enable_prefix_caching=True",
		Mark{Name: lifecycle.EngineInitializing, Engine: "vllm", Model: "/data/shared_models/Qwen--Qwen2.5-14B-Instruct", Copy: "EngineCore pid=589851"},
		"2026-08-05T08:41:37Z",
	},
	{
		"(EngineCore_DP0 pid=178) INFO 04-20 04:20:48 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='nvidia/NVIDIA-Nemotron-Nano-9B-v2', speculative_config=None",
		Mark{Name: lifecycle.EngineInitializing, Engine: "vllm", Model: "nvidia/NVIDIA-Nemotron-Nano-9B-v2", Copy: "EngineCore_DP0 pid=178"},
		"2026-04-20T04:20:48Z",
	},
	{
		"(EngineCore pid=111) INFO 06-07 08:55:57 [gpu_model_runner.py:5037] Starting to load model google/gemma-4-E4B-it...",
		Mark{Name: lifecycle.WeightsStarted, Engine: "vllm", Copy: "EngineCore pid=111"},
		"2026-06-07T08:55:57Z",
	},
	{
		"(Worker_TP0 pid=34322) INFO 05-06 20:59:59 [gpu_model_runner.py:4879] Model loading took 12.66 GiB memory and 31.657031 seconds",
		Mark{Name: lifecycle.WeightsFinished, Engine: "vllm", Copy: "Worker_TP0 pid=34322", Took: 31657031 * time.Microsecond},
		"2026-05-06T20:59:59Z",
	},
	{
		"(EngineCore pid=1265223) INFO 06-02 00:51:40 [model_runner.py:295] Model loading took 7.64 GiB and 32.969258 seconds   ",
		Mark{Name: lifecycle.WeightsFinished, Engine: "vllm", Copy: "EngineCore pid=1265223", Took: 32969258 * time.Microsecond},
		"2026-06-02T00:51:40Z",
	},
	{
		"(EngineCore pid=589851) INFO 08-05 08:42:30 [model_runner_v1.py:3833] Loading model weights took 27.5350 GB",
		Mark{Name: lifecycle.WeightsFinished, Engine: "vllm", Copy: "EngineCore pid=589851"},
		"2026-08-05T08:42:30Z",
	},
	{
		"2026-05-01 23:13:20.749 | (EngineCore pid=187) INFO 05-01 21:13:20 [monitor.py:53] torch.compile took 45.15 s in total",
		Mark{Name: lifecycle.CompileFinished, Engine: "vllm", Copy: "EngineCore pid=187", Took: 45150 * time.Millisecond},
		"2026-05-01T21:13:20Z",
	},
	{
		"(EngineCore pid=187) INFO 02-01 21:13:20 [monitor.py:34] torch.compile takes 45.15 s in total",
		Mark{Name: lifecycle.CompileFinished, Engine: "vllm", Copy: "EngineCore pid=187", Took: 45150 * time.Millisecond},
		"2026-02-01T21:13:20Z",
	},
	{
		"(ServeReplica:chat-direct:LLMServer:qwen3-14b pid=28488) (EngineCore pid=29087) (RayWorkerProc pid=29271) (Worker pid=29271) INFO 08-19 18:00:13 [monitor.py:53] torch.compile and initial profiling/warmup run together took 19.48 s in total",
		Mark{Name: lifecycle.CompileFinished, Engine: "vllm", Copy: "Worker pid=29271", Took: 19480 * time.Millisecond},
		"2026-08-19T18:00:13Z",
	},
	{
		"(Worker_TP3 pid=1) INFO 08-19 18:00:13 [backends.py:266] Directly load the compiled graph(s) for compile range (1, 8192) from the cache, took 47.002 s",
		Mark{Name: lifecycle.CompileFinished, Engine: "vllm", Copy: "Worker_TP3 pid=1", Took: 47002 * time.Millisecond, Cached: true},
		"2026-08-19T18:00:13Z",
	},
	{
		"2026-05-01 23:14:12.523 | (EngineCore pid=187) INFO 05-01 21:14:12 [monitor.py:81] Initial profiling/warmup run took 50.34 s",
		Mark{Name: lifecycle.ProfileFinished, Engine: "vllm", Copy: "EngineCore pid=187", Took: 50340 * time.Millisecond},
		"2026-05-01T21:14:12Z",
	},
	{
		"(EngineCore pid=589851) INFO 08-05 08:43:56 [kv_cache_utils.py:2203] GPU KV cache size: 158,720 tokens",
		Mark{Name: lifecycle.KVCacheFinished, Engine: "vllm", Copy: "EngineCore pid=589851"},
		"2026-08-05T08:43:56Z",
	},
	{
		"(Worker_TP0 pid=128) INFO 07-04 17:55:07 [gpu_model_runner.py:6656] Graph capturing finished in 1 secs, took 0.46 GiB",
		Mark{Name: lifecycle.GraphsFinished, Engine: "vllm", Copy: "Worker_TP0 pid=128", Took: time.Second},
		"2026-07-04T17:55:07Z",
	},
	{
		"(EngineCore pid=589851) INFO 08-05 08:50:34 [core.py:342] init engine (profile, create kv cache, warmup model) took 483.57 s (compilation: 63.90 s)",
		Mark{Name: lifecycle.WarmupFinished, Engine: "vllm", Copy: "EngineCore pid=589851"},
		"2026-08-05T08:50:34Z",
	},
	{
		"(APIServer pid=589370) INFO 08-05 08:50:39 [api_server.py:624] Starting vLLM server on http://127.0.0.1:8422",
		Mark{Name: lifecycle.EngineReady, Engine: "vllm", Copy: "APIServer pid=589370"},
		"2026-08-05T08:50:39Z",
	},
	{
		"(APIServer pid=1) INFO 03-01 10:00:00 [api_server.py:1912] Starting vLLM API server 0 on http://0.0.0.0:8000",
		Mark{Name: lifecycle.EngineReady, Engine: "vllm", Copy: "APIServer pid=1"},
		"2026-03-01T10:00:00Z",
	},
	{
		"(APIServer pid=589370) INFO:     Application startup complete.",
		Mark{Name: lifecycle.EngineReady, Engine: "vllm", Copy: "APIServer pid=589370"},
		"",
	},
	// SGLang.
	{
		"[2025-12-02 12:01:15] server_args=ServerArgs(model_path='meta-llama/Llama-3.1-8B-Instruct', tokenizer_path='meta-llama/Llama-3.1-8B-Instruct', served_model_name='llama', device='cuda')",
		Mark{Name: lifecycle.EngineInitializing, Engine: "sglang", Model: "llama"},
		"2025-12-02T12:01:15Z",
	},
	{
		"[2026-08-28 21:19:23] server_args=ServerArgs(model_path='RadixArk/Qwen3.8-Flash-Next-NVFP4', revision='7b71922')",
		Mark{Name: lifecycle.EngineInitializing, Engine: "sglang", Model: "RadixArk/Qwen3.8-Flash-Next-NVFP4"},
		"2026-08-28T21:19:23Z",
	},
	{
		"[2026-01-30 20:54:50 PP1 TP0] Load weight begin. avail mem=78.38 GB",
		Mark{Name: lifecycle.WeightsStarted, Engine: "sglang", Copy: "PP1 TP0"},
		"2026-01-30T20:54:50Z",
	},
	{
		"[2026-01-30 20:54:56 PP1 TP1] Load weight end. elapsed=6.21 s, type=Qwen3ForCausalLM, dtype=torch.bfloat16, avail mem=76.05 GB, mem usage=2.33 GB.",
		Mark{Name: lifecycle.WeightsFinished, Engine: "sglang", Copy: "PP1 TP1", Took: 6210 * time.Millisecond},
		"2026-01-30T20:54:56Z",
	},
	{
		"[gpu_id=1] Load weight end. type=Qwen2ForCausalLM, dtype=torch.bfloat16, avail mem=15.95 GB",
		Mark{Name: lifecycle.WeightsFinished, Engine: "sglang", Copy: "gpu_id=1"},
		"",
	},
	{
		"[2025-12-28 10:40:09 TP2] KV Cache is allocated. #tokens: 2090351, K size: 23.92 GB, V size: 23.92 GB",
		Mark{Name: lifecycle.KVCacheFinished, Engine: "sglang", Copy: "TP2"},
		"2025-12-28T10:40:09Z",
	},
	{
		"[2026-08-10 09:47:28 DP2 TP2 EP2] Memory pool end. avail mem=13.28 GB",
		Mark{Name: lifecycle.KVCacheFinished, Engine: "sglang", Copy: "DP2 TP2 EP2"},
		"2026-08-10T09:47:28Z",
	},
	{
		"[2025-12-28 10:40:09 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=11.92 GB",
		Mark{Name: lifecycle.GraphsStarted, Engine: "sglang", Copy: "TP0"},
		"2025-12-28T10:40:09Z",
	},
	{
		"[2025-12-02 12:01:32] Capture cuda graph end. Time elapsed: 7.00 s",
		Mark{Name: lifecycle.GraphsFinished, Engine: "sglang", Took: 7 * time.Second},
		"2025-12-02T12:01:32Z",
	},
	{
		"[2026-10-10 11:59:51] Capture target decode CUDA graph end. elapsed=10.10 s, mem usage=0.79 GB, avail mem=10.39 GB.",
		Mark{Name: lifecycle.GraphsFinished, Engine: "sglang", Took: 10100 * time.Millisecond},
		"2026-10-10T11:59:51Z",
	},
	{
		"[2026-08-28 21:35:15] The server is fired up and ready to roll!",
		Mark{Name: lifecycle.EngineReady, Engine: "sglang"},
		"2026-08-28T21:35:15Z",
	},
	// TensorRT-LLM.
	{"[TensorRT-LLM] TensorRT LLM version: 1.2.0rc5", Mark{Name: lifecycle.EngineInitializing, Engine: "tensorrt_llm"}, ""},
	{"[12/20/2025-04:20:21] [TRT-LLM] [RANK 1] [I] Use 63.32 GB for model weights.", Mark{Name: lifecycle.WeightsStarted, Engine: "tensorrt_llm", Copy: "RANK 1"}, "2025-12-20T04:20:21Z"},
	{"Model init total -- 49.14s", Mark{Name: lifecycle.WeightsFinished, Engine: "tensorrt_llm", Took: 49140 * time.Millisecond}, ""},
	{"[12/20/2025-04:21:10] [TRT-LLM] [I] [Autotuner] Autotuning process starts ...", Mark{Name: lifecycle.CompileStarted, Engine: "tensorrt_llm"}, "2025-12-20T04:21:10Z"},
	{"[12/20/2025-04:21:37] [TRT-LLM] [I] [Autotuner] Autotuning process ends", Mark{Name: lifecycle.CompileFinished, Engine: "tensorrt_llm"}, "2025-12-20T04:21:37Z"},
	{"[TensorRT-LLM][INFO] [MemUsageChange] Allocated 0.56 GiB for max tokens in paged KV cache (8224).", Mark{Name: lifecycle.KVCacheFinished, Engine: "tensorrt_llm"}, ""},
	{"[12/20/2025-04:21:37] [TRT-LLM] [I] Creating CUDA graph instances for 11 batch sizes.", Mark{Name: lifecycle.GraphsStarted, Engine: "tensorrt_llm"}, "2025-12-20T04:21:37Z"},
	// TGI.
	{
		`{"timestamp":"2023-08-09T05:08:19.961164Z","level":"INFO","fields":{"message":"Connected"},"target":"text_generation_router"}`,
		Mark{Name: lifecycle.EngineReady, Engine: "tgi"},
		"2023-08-09T05:08:19.961164Z",
	},
	{
		`2023-07-19T16:06:41.055285Z  INFO text_generation_launcher: Args { model_id: "TheBloke/WizardLM-13B-V1-0-Uncensored-SuperHOT-8K-fp16", revision: None, validation_workers: 2 }`,
		Mark{Name: lifecycle.EngineInitializing, Engine: "tgi", Model: "TheBloke/WizardLM-13B-V1-0-Uncensored-SuperHOT-8K-fp16"},
		"2023-07-19T16:06:41.055285Z",
	},
	{"2023-07-19T16:06:41.055408Z  INFO download: text_generation_launcher: Starting download process.", Mark{Name: lifecycle.DownloadStarted, Engine: "tgi"}, "2023-07-19T16:06:41.055408Z"},
	{"2024-05-07T12:39:09.685072Z  INFO text_generation_launcher: Files are already present on the host. Skipping download.\n", Mark{Name: lifecycle.DownloadFinished, Engine: "tgi", Cached: true}, "2024-05-07T12:39:09.685072Z"},
	{"2024-05-07T12:39:10.282605Z  INFO download: text_generation_launcher: Successfully downloaded weights.", Mark{Name: lifecycle.DownloadFinished, Engine: "tgi"}, "2024-05-07T12:39:10.282605Z"},
	{"2024-05-07T12:39:10.283533Z  INFO shard-manager: text_generation_launcher: Starting shard rank=1", Mark{Name: lifecycle.WeightsStarted, Engine: "tgi", Copy: "1"}, "2024-05-07T12:39:10.283533Z"},
	{"2023-07-05T19:53:46.962826Z  INFO text_generation_launcher: Starting shard 0", Mark{Name: lifecycle.WeightsStarted, Engine: "tgi", Copy: "0"}, "2023-07-05T19:53:46.962826Z"},
	{
		"\x1b[2m2024-05-07T12:39:20.593317Z\x1b[0m \x1b[32m INFO\x1b[0m \x1b[1mshard-manager\x1b[0m: \x1b[2mtext_generation_launcher\x1b[0m\x1b[2m:\x1b[0m Shard ready in 10.308899699s \x1b[2m\x1b[3mrank\x1b[0m\x1b[2m=\x1b[0m0",
		Mark{Name: lifecycle.WeightsFinished, Engine: "tgi", Copy: "0", Took: 10308899699 * time.Nanosecond},
		"2024-05-07T12:39:20.593317Z",
	},
	{"2024-05-07T12:39:21.278450Z  INFO text_generation_router: router/src/main.rs:317: Warming up model", Mark{Name: lifecycle.KVCacheStarted, Engine: "tgi"}, "2024-05-07T12:39:21.27845Z"},
	{"2025-10-13T22:12:08.759489Z  INFO text_generation_launcher: Cuda Graphs are enabled for sizes [1, 2, 4, 8, 16, 32]", Mark{Name: lifecycle.GraphsStarted, Engine: "tgi"}, "2025-10-13T22:12:08.759489Z"},
	{"2024-09-03T04:40:19.370247Z  INFO text_generation_router::server: router/src/server.rs:1651: Setting max batch total tokens to 19056", Mark{Name: lifecycle.WarmupFinished, Engine: "tgi"}, "2024-09-03T04:40:19.370247Z"},
	{"2024-09-03T04:40:19.441742Z  INFO text_generation_router::server: router/src/server.rs:1889: Connected", Mark{Name: lifecycle.EngineReady, Engine: "tgi"}, "2024-09-03T04:40:19.441742Z"},
	{
		`{"timestamp":"2024-03-09T05:08:19.961164Z","level":"INFO","message":"Connected","target":"text_generation_router","filename":"router/src/main.rs","line_number":329}`,
		Mark{Name: lifecycle.EngineReady, Engine: "tgi"},
		"2024-03-09T05:08:19.961164Z",
	},
}
