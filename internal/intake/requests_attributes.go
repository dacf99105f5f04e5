// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"slices"
	"strings"
)

// field is one thing that the span of a request may say.
type field uint8

const (
	fieldTenant field = iota
	fieldTier
	fieldServedModel
	fieldModel
	fieldProvider
	fieldOperation
	fieldInput
	fieldOutput
	fieldCached
	fieldCacheCreation
	fieldTTFT
	fieldEngine
	fieldRole
	fieldStatusCode
	fieldErrorType
	fieldRevision
	fieldEngineVersion
	fieldConfigHash
	fieldCount
)

// kind is how an attribute's value is read.
type kind uint8

const (
	isText    kind = iota
	isTokens       // a number of tokens
	isSeconds      // a time in seconds
	isCode         // an HTTP status
	isMark         // that it is there says it
)

// spanFields are the names that each field goes by, the first that says
// something counts. They are those of the GenAI semantic conventions, new and
// old, of OpenInference (which Envoy AI Gateway writes unless it is told
// otherwise), of LiteLLM, Traceloop, vLLM, SGLang and llm-d.
var spanFields = [fieldCount]struct {
	name  string // in settings
	kind  kind
	names []string
}{
	fieldTenant: {"tenant", isText, []string{
		"tenant.id", "enduser.id", "user.id", "http.request.header.x-tenant-id",
		"http.request.header.x-llm-d-inference-fairness-id", "http.request.header.x-gateway-inference-fairness-id",
		"fairness_id", "llm_d.epp.fairness.id",
		"litellm.team.id", "metadata.user_api_key_team_id", "litellm.end_user.id", "metadata.user_api_key_end_user_id",
		"metadata.user_api_key_user_id", "llm.user",
	}},
	fieldTier: {"tier", isText, []string{
		"tenant.tier", "tier", "http.request.header.x-tenant-tier", "openai.request.service_tier", "gen_ai.openai.request.service_tier",
	}},
	fieldServedModel: {"served_model", isText, []string{keyModelName}},
	fieldModel:       {"model", isText, []string{"gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "embedding.model_name"}},
	fieldProvider:    {"provider", isText, []string{"gen_ai.provider.name", "gen_ai.system"}},
	fieldOperation:   {"operation", isText, []string{"gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind", "llm.request.type"}},
	fieldInput:       {"input_tokens", isTokens, []string{"gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt", "llm.usage.prompt_tokens"}},
	fieldOutput: {"output_tokens", isTokens, []string{
		"gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion", "llm.usage.completion_tokens",
	}},
	fieldCached: {"cached_tokens", isTokens, []string{
		"gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens", "gen_ai.usage.cached_tokens",
		"gen_ai.usage.input_tokens.cached", "gen_ai.usage.input_cached_tokens",
		"llm.token_count.prompt_details.cache_read", "llm.usage.cache_read_input_tokens",
	}},
	fieldCacheCreation: {"cache_creation_tokens", isTokens, []string{
		"gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens", "gen_ai.usage.input_tokens.cache_write",
		"llm.token_count.prompt_details.cache_write",
	}},
	fieldTTFT: {"time_to_first_token", isSeconds, []string{
		"gen_ai.latency.time_to_first_token", "gen_ai.server.time_to_first_token", "gen_ai.response.time_to_first_chunk",
	}},
	fieldEngine:        {"engine", isMark, []string{"gen_ai.latency.e2e", "gen_ai.latency.time_in_queue", "gen_ai.latency.time_in_model_inference"}},
	fieldRole:          {"role", isText, []string{keyRole}},
	fieldStatusCode:    {"status_code", isCode, []string{"http.response.status_code", "http.status_code", "litellm.provider.error.code"}},
	fieldErrorType:     {"error_type", isText, []string{"error.type"}},
	fieldRevision:      {variantKeys[0], isText, variantKeys[0:1]},
	fieldEngineVersion: {variantKeys[1], isText, variantKeys[1:2]},
	fieldConfigHash:    {variantKeys[2], isText, variantKeys[2:3]},
}

// DefaultTenantAttributes are the attributes that a request's tenant is read
// from, in their order: names of conventions, headers, gateways' own names.
func DefaultTenantAttributes() []string { return slices.Clone(spanFields[fieldTenant].names) }

// DefaultTierAttributes are the attributes that a request's tier is read from.
func DefaultTierAttributes() []string { return slices.Clone(spanFields[fieldTier].names) }

// RequestFields are the fields whose attributes RequestOptions.Attributes may
// name anew.
func RequestFields() (names []string) {
	for f := fieldServedModel; f < fieldCount; f++ {
		names = append(names, spanFields[f].name)
	}
	return names
}

// place says that an attribute tells a field, and how many names go before it.
type place struct {
	field field
	kind  kind
	rank  uint8
}

// maxNamesOfField bounds the names that one field can go by.
const maxNamesOfField = 250

// index finds the places of an attribute's name.
type index map[string][]place

func (o *RequestOptions) index() index {
	x := make(index)
	for f := range fieldCount {
		names := spanFields[f].names
		switch {
		case f == fieldTenant && len(o.Tenants) > 0:
			names = o.Tenants
		case f == fieldTier && len(o.Tiers) > 0:
			names = o.Tiers
		case f > fieldTier && len(o.Attributes[spanFields[f].name]) > 0:
			names = o.Attributes[spanFields[f].name]
		}
		for i, name := range names[:min(len(names), maxNamesOfField)] {
			x[name] = append(x[name], place{f, spanFields[f].kind, uint8(i + 1)})
		}
	}
	return x
}

// Validate tells what of the options cannot be.
func (o *RequestOptions) Validate() error {
	fields := RequestFields()
	for name, names := range o.Attributes {
		switch {
		case !slices.Contains(fields, name):
			return fmt.Errorf("%q is nothing that a request's span says; it may be one of %s", name, strings.Join(fields, ", "))
		case len(names) == 0:
			return fmt.Errorf("%q has no attributes; leave it out, and the usual ones are read", name)
		}
	}
	for _, names := range [][]string{o.Tenants, o.Tiers} {
		if len(names) > maxNamesOfField {
			return fmt.Errorf("%d attributes are too many; name at most %d", len(names), maxNamesOfField)
		}
	}
	return nil
}
