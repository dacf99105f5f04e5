// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/internal/tenant"
)

const (
	internal = ptrace.SpanKindInternal
	server   = ptrace.SpanKindServer
	client   = ptrace.SpanKindClient
	failed   = ptrace.StatusCodeError
)

// source is what one source sends for a request or two, around it and inside of
// it, and the requests that it is.
type source struct {
	name     string
	classes  []RequestClass
	spans    []spanShape
	requests []tenant.Request
}

func one(requests ...tenant.Request) []tenant.Request { return requests }

// sources are the shapes of 2026-08, with the kinds, scopes and types that each
// source writes.
func sources() []source {
	all := envoySources()
	all = append(all, litellmSources()...)
	all = append(all, engineSources()...)
	return append(all, otherSources()...)
}

const envoyScope = "envoyproxy/ai-gateway"

func envoySources() []source {
	headers := told{"tenant.id": "acme", "session.id": "s1"} // as its helm values map headers
	return []source{
		{name: "Envoy AI Gateway by the semantic conventions", spans: []spanShape{
			{name: "ingress", kind: server, attributes: told{"http.status_code": "200", "upstream_cluster": "qwen", "tenant.id": "acme"}},
			{scope: envoyScope, name: "chat qwen3-32b", kind: client, attributes: merged(headers, told{
				"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "qwen3-32b",
				"gen_ai.response.model": "qwen3-32b", "gen_ai.response.id": "chatcmpl-1", "gen_ai.usage.input_tokens": 1000,
				"gen_ai.usage.output_tokens": 50, "gen_ai.usage.cache_read.input_tokens": 800, "gen_ai.response.finish_reasons": []any{"stop"},
			})},
		}, requests: one(expected("acme", "qwen3-32b", 200, 800, 50, untold))},
		{name: "Envoy AI Gateway by OpenInference, its default", spans: []spanShape{
			{scope: envoyScope, name: "ChatCompletion", kind: internal, status: ptrace.StatusCodeOk, attributes: merged(headers, told{
				"openinference.span.kind": "LLM", "llm.system": "openai", "llm.model_name": "qwen3-32b", "llm.token_count.prompt": 1000,
				"llm.token_count.prompt_details.audio": 0, "llm.token_count.prompt_details.cache_read": 800,
				"llm.token_count.prompt_details.cache_write": 0, "llm.token_count.completion": 50, "llm.token_count.total": 1050,
				"llm.input_messages.0.message.role": "user",
			})},
		}, requests: one(expected("acme", "qwen3-32b", 200, 800, 50, untold))},
		{name: "Envoy AI Gateway by OpenInference, a stream without usage", spans: []spanShape{
			{scope: envoyScope, name: "ChatCompletion", kind: internal, status: ptrace.StatusCodeOk, attributes: merged(headers, told{
				"openinference.span.kind": "LLM", "llm.system": "openai", "llm.model_name": "qwen3-32b",
			})},
		}, requests: one(expected("acme", "qwen3-32b", untold, untold, untold, untold))},
		{name: "Envoy AI Gateway by OpenInference, throttled", spans: []spanShape{
			{
				scope: envoyScope, name: "ChatCompletion", kind: internal, status: failed, exception: "RateLimitError",
				message:    `Error code: 429 - {"error":{"message":"slow down"}}`,
				attributes: merged(headers, told{"openinference.span.kind": "LLM", "llm.system": "openai", "llm.model_name": "qwen3-32b"}),
			},
		}, requests: one(failing(expected("acme", "qwen3-32b", untold, untold, untold, untold), tenant.Throttled))},
		{name: "Envoy AI Gateway by OpenInference, Anthropic's messages added up", spans: []spanShape{
			{scope: envoyScope, name: "Message", kind: internal, status: ptrace.StatusCodeOk, attributes: merged(headers, told{
				"openinference.span.kind": "LLM", "llm.system": "anthropic", "llm.model_name": "claude-sonnet-5", "llm.token_count.prompt": 1000,
				"llm.token_count.prompt_details.cache_read": 800, "llm.token_count.prompt_details.cache_write": 100,
				"llm.token_count.completion": 50, "llm.token_count.total": 1050,
			})},
		}, requests: one(expected("acme", "claude-sonnet-5", 200, 800, 50, untold))},
		{name: "Envoy AI Gateway by the semantic conventions, Anthropic's messages as they are", spans: []spanShape{
			{scope: envoyScope, name: "chat claude-sonnet-5", kind: client, attributes: merged(headers, told{
				"gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.request.model": "claude-sonnet-5",
				"gen_ai.usage.input_tokens": 100, "gen_ai.usage.cache_read.input_tokens": 800,
				"gen_ai.usage.cache_creation.input_tokens": 100, "gen_ai.usage.output_tokens": 50,
			})},
		}, requests: one(expected("acme", "claude-sonnet-5", 200, 800, 50, untold))},
		{name: "Envoy AI Gateway, tokens only counted", spans: []spanShape{
			{scope: envoyScope, name: "tokenize qwen3-32b", kind: client, attributes: merged(headers, told{
				"gen_ai.operation.name": "tokenize", "gen_ai.request.model": "qwen3-32b",
			})},
		}},
	}
}

func litellmSources() []source {
	resource := told{"service.name": "litellm", "model_id": "litellm", "deployment.environment": "production"}
	call := told{
		"metadata.user_api_key_hash": "88dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b", "metadata.user_api_key_team_id": "team-1",
		"metadata.user_api_key_user_id": "ada", "metadata.user_api_key_end_user_id": "", "gen_ai.request.model": "qwen3-32b",
		"llm.request.type": "acompletion", "gen_ai.system": "hosted_vllm", "llm.is_streaming": "False", "gen_ai.response.id": "chatcmpl-1",
		"gen_ai.response.model": "qwen3-32b", "gen_ai.usage.total_tokens": 1050, "gen_ai.usage.output_tokens": 50,
		"gen_ai.usage.input_tokens": 1000,
	}
	http := told{"http.request.method": "POST", "http.route": "/v1/chat/completions", "http.response.status_code": 200}
	return []source{
		{name: "LiteLLM, all on the server's span", spans: []spanShape{
			{scope: "litellm", name: "Received Proxy Server Request", kind: server, status: ptrace.StatusCodeOk, resource: resource, attributes: call},
			{scope: "litellm", name: "auth", kind: internal, resource: resource, attributes: told{"call_type": "user_api_key_auth", "service": "auth"}},
			{scope: "litellm", name: "raw_gen_ai_request", kind: internal, resource: resource, attributes: told{
				"llm.hosted_vllm.model": "qwen3-32b", "llm.hosted_vllm.usage": "{'prompt_tokens': 1000}",
			}},
		}, requests: one(expected("team-1", "qwen3-32b", 1000, untold, 50, untold))},
		{name: "LiteLLM with litellm_request", spans: []spanShape{
			{scope: "litellm", name: "Received Proxy Server Request", kind: server, status: ptrace.StatusCodeOk, resource: resource},
			{scope: "litellm", name: "litellm_request", kind: internal, status: ptrace.StatusCodeOk, resource: resource, attributes: call},
			{scope: "litellm", name: "raw_gen_ai_request", kind: internal, status: ptrace.StatusCodeOk, resource: resource, attributes: told{
				"llm.openai.messages": "[]",
			}},
		}, requests: one(expected("team-1", "qwen3-32b", 1000, untold, 50, untold))},
		{name: "LiteLLM v2", spans: []spanShape{
			{scope: "opentelemetry.instrumentation.fastapi", name: "POST /v1/chat/completions", kind: server, resource: resource, attributes: http},
			{scope: "litellm", name: "auth /v1/chat/completions", kind: internal, resource: resource},
			{scope: "litellm", name: "postgres get_key_object", kind: client, resource: resource, attributes: told{"db.system.name": "postgresql"}},
			{scope: "litellm", name: "chat qwen3-32b", kind: client, resource: resource, attributes: told{
				"gen_ai.operation.name": "chat", "gen_ai.provider.name": "hosted_vllm", "gen_ai.request.model": "qwen3-32b",
				"gen_ai.response.model": "qwen3-32b", "gen_ai.response.time_to_first_chunk": 0.125, "gen_ai.usage.input_tokens": 1000,
				"gen_ai.usage.cache_read.input_tokens": 800, "gen_ai.usage.output_tokens": 50, "litellm.team.id": "team-1",
				"litellm.api_key.hash": "88dc28d0", "litellm.call_type": "acompletion", "litellm.request.streaming": true,
			}},
		}, requests: one(expected("team-1", "qwen3-32b", 200, 800, 50, 0.125))},
		{name: "LiteLLM v2, Anthropic's usage added up", spans: []spanShape{
			{scope: "litellm", name: "chat claude-sonnet-5", kind: client, resource: resource, attributes: told{
				"gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.request.model": "claude-sonnet-5",
				"gen_ai.usage.input_tokens": 1000, "gen_ai.usage.cache_read.input_tokens": 800,
				"gen_ai.usage.cache_creation.input_tokens": 100, "gen_ai.usage.output_tokens": 50, "litellm.team.id": "team-1",
			}},
		}, requests: one(expected("team-1", "claude-sonnet-5", 200, 800, 50, untold))},
		{name: "LiteLLM v2, turned away by the provider", spans: []spanShape{
			{scope: "litellm", name: "chat qwen3-32b", kind: client, status: failed, resource: resource, attributes: told{
				"gen_ai.operation.name": "chat", "gen_ai.request.model": "qwen3-32b", "error.type": "RateLimitError",
				"litellm.provider.error.code": "429", "litellm.team.id": "team-1",
			}},
		}, requests: one(failing(expected("team-1", "qwen3-32b", untold, untold, untold, untold), tenant.Throttled))},
	}
}

func engineSources() []source {
	const sglang = "sglang server"
	vllm := told{
		"gen_ai.latency.time_to_first_token": 0.25, "gen_ai.latency.e2e": 2.5, "gen_ai.latency.time_in_queue": 0.01,
		"gen_ai.latency.time_in_model_prefill": 0.24, "gen_ai.latency.time_in_model_decode": 2.25,
		"gen_ai.latency.time_in_model_inference": 2.49, "gen_ai.usage.prompt_tokens": 1000, "gen_ai.usage.completion_tokens": 50,
		"gen_ai.request.id": "chatcmpl-1", "gen_ai.request.top_p": 1.0, "gen_ai.request.max_tokens": 64, "gen_ai.request.n": 1,
	}
	return []source{
		{name: "vLLM, of one tenant's own replica", spans: []spanShape{
			{
				scope: "vllm.tracing", name: "llm_request", kind: server, attributes: vllm,
				resource: told{"service.name": "vllm", "tenant.id": "acme", "model_name": "qwen3-32b", "engine_version": "0.19.0"},
			},
		}, requests: one(func() tenant.Request {
			r := expected("acme", "qwen3-32b", 1000, untold, 50, 0.25)
			r.Variant = "0.19.0"
			return r
		}())},
		{name: "vLLM behind a gateway", spans: []spanShape{
			{scope: "vllm.tracing", name: "llm_request", kind: server, resource: told{"service.name": "vllm"}, attributes: vllm},
		}},
		{name: "vLLM, prefill and decode apart", spans: []spanShape{
			{
				scope: "vllm.tracing", name: "llm_request", kind: server, resource: told{"tenant.id": "acme"},
				attributes: merged(vllm, told{"gen_ai.usage.completion_tokens": 1, "role": "prefill", "model_name": "qwen3-32b"}),
			},
			{
				scope: "vllm.tracing", name: "llm_request", kind: server, resource: told{"tenant.id": "acme"},
				attributes: merged(vllm, told{"role": "decode", "model_name": "qwen3-32b"}),
			},
		}, requests: one(expected("acme", "qwen3-32b", 1000, untold, 50, 0.25))},
		{name: "SGLang, prefill and decode apart", spans: []spanShape{
			{scope: sglang, name: "prefill Req 1f0c9a2b", resource: told{"tenant.id": "acme"}, attributes: told{
				"rid": "1f0c9a2b", "gen_ai.usage.prompt_tokens": 1000, "gen_ai.usage.completion_tokens": 1, "gen_ai.latency.e2e": 0.25,
			}},
			{scope: sglang, name: "decode Req 1f0c9a2b", resource: told{"tenant.id": "acme"}, attributes: told{
				"rid": "1f0c9a2b", "gen_ai.usage.prompt_tokens": 1000, "gen_ai.usage.completion_tokens": 50, "gen_ai.latency.e2e": 2.5,
			}},
		}, requests: one(expected("acme", "", 1000, untold, 50, untold))},
		{name: "SGLang", spans: []spanShape{
			{scope: sglang, name: " Req 1f0c9a2b", kind: internal, resource: told{"service.name": "sglang", "tenant.id": "acme"}, attributes: told{
				"rid": "1f0c9a2b", "module": "sglang::request", "gen_ai.usage.prompt_tokens": 1000, "gen_ai.usage.completion_tokens": 50,
				"gen_ai.usage.cached_tokens": 800, "gen_ai.response.model": "qwen3-32b", "gen_ai.response.finish_reasons": "stop",
				"gen_ai.latency.time_in_queue": 0.01, "gen_ai.latency.time_to_first_token": 0.25, "gen_ai.latency.e2e": 2.5,
			}},
			{scope: sglang, name: "Scheduler [TP 0] (host:abc | pid:7)", kind: internal, resource: told{"service.name": "sglang", "tenant.id": "acme"}, attributes: told{
				"tp_rank": 0, "host_id": "abc", "pid": 7, "thread_label": "Scheduler",
			}},
			{scope: sglang, name: "decode_loop", kind: internal, resource: told{"service.name": "sglang", "tenant.id": "acme"}, attributes: told{"decode_ct": 3}},
		}, requests: one(expected("acme", "qwen3-32b", 200, 800, 50, 0.25))},
		{name: "llm-d's router", classes: []RequestClass{RouterRequest}, spans: []spanShape{
			{scope: "llm-d-router/pkg/epp/handlers", name: "gateway.request", kind: server, attributes: told{
				"llm_d.epp.fairness.id": "acme", "llm_d.epp.fairness.source": "header",
			}},
			{scope: "gateway-api-inference-extension/bbr/extproc", name: "gateway.request", kind: server},
			{scope: "llm-d-router/pkg/epp/requestcontrol", name: "gateway.request_orchestration", kind: internal, attributes: told{
				"gen_ai.request.model": "qwen3-32b", "llm_d.epp.fairness.id": "acme",
			}},
			{scope: "llm-d-router/pkg/sidecar/proxy", name: "forward_request", kind: server, attributes: told{"gen_ai.request.model": "qwen3-32b"}},
			{
				scope: "llm-d-router/pkg/epp/handlers", name: "gateway.request", kind: server, status: failed,
				message:    "inference error: ResourceExhausted - request rejected by flow control",
				attributes: told{"llm_d.epp.fairness.id": "default-flow", "llm_d.epp.fairness.source": "default"},
			},
		}, requests: one(
			expected("acme", "", untold, untold, untold, untold),
			failing(expected(tenant.Unknown, "", untold, untold, untold, untold), tenant.Throttled),
		)},
		{name: "Dynamo's frontend, which does not tell usage", spans: []spanShape{
			{name: "http-request", kind: internal, attributes: told{"method": "POST", "uri": "/v1/chat/completions", "request_id": "r1"}},
			{name: "kv_router.select_worker", kind: internal},
		}},
	}
}

func otherSources() []source {
	chat := told{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "qwen3-32b", "user.id": "ada",
		"gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 50,
	}
	request := expected("ada", "qwen3-32b", 1000, untold, 50, untold)
	return []source{
		{name: "a server of the first semantic conventions", spans: []spanShape{
			{name: "completion", kind: server, attributes: told{
				"gen_ai.system": "openai", "gen_ai.request.model": "qwen3-32b", "gen_ai.usage.prompt_tokens": 1000,
				"gen_ai.usage.completion_tokens": 50, "enduser.id": "ada",
			}},
		}, requests: one(request)},
		{name: "Kong AI Gateway", spans: []spanShape{
			{scope: "kong-internal", name: "kong", kind: server, resource: told{"service.name": "kong"}, attributes: told{"http.status_code": 200, "kong.consumer.id": "c1"}},
			{scope: "kong-internal", name: "kong.gen_ai", kind: client, resource: told{"service.name": "kong"}, attributes: chat},
		}, requests: one(request)},
		{name: "Traceloop's instrumentation, with digits", spans: []spanShape{
			{name: "answer.workflow", kind: internal, attributes: told{"traceloop.span.kind": "workflow"}},
			{name: "openai.chat", kind: client, attributes: told{
				"llm.request.type": "chat", "gen_ai.system": "OpenAI", "gen_ai.request.model": "qwen3-32b", "user.id": "ada",
				"gen_ai.usage.input_tokens": "1000", "gen_ai.usage.output_tokens": "50", "gen_ai.usage.cache_read_input_tokens": "800",
			}},
		}, requests: one(expected("ada", "qwen3-32b", 200, 800, 50, untold))},
		{name: "an agent in one trace", spans: []spanShape{
			{name: "invoke_agent helper", kind: internal, attributes: told{
				"gen_ai.operation.name": "invoke_agent", "gen_ai.request.model": "qwen3-32b", "user.id": "ada",
				"gen_ai.usage.input_tokens": 2000, "gen_ai.usage.output_tokens": 100,
			}},
			{name: "chat qwen3-32b", kind: client, attributes: chat},
			{name: "execute_tool search", kind: internal, attributes: told{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}},
			{name: "chat qwen3-32b", kind: client, attributes: chat},
		}, requests: one(request, request)},
		{name: "who only speaks of a model", spans: []spanShape{
			{name: "choose", kind: internal, attributes: told{"gen_ai.request.model": "qwen3-32b"}},
			{name: "GET /metrics", kind: server, attributes: told{"model_name": "qwen3-32b", "user.id": "ada"}},
			{name: "load", kind: internal, resource: told{"model_name": "qwen3-32b", "tenant.id": "acme"}},
		}},
	}
}
