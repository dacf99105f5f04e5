// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"maps"

	"github.com/llmfleet/llmfleet/internal/tenant"
)

// defaultIncludesCached says of whose input it is known whether it includes what
// was found in a cache. It does where nothing is known, as the semantic
// conventions and OpenInference want it and OpenAI counts. Anthropic and Bedrock
// count it apart, and many pass that on as it is; LiteLLM adds it up, whoever
// the provider is.
var defaultIncludesCached = map[string]bool{"litellm": true, "anthropic": false, "aws.bedrock": false}

func (o *RequestOptions) includesCached() map[string]bool {
	all := maps.Clone(defaultIncludesCached)
	var l letters
	for source, includes := range o.IncludesCached {
		all[string(l.lower(source))] = includes
	}
	return all
}

// includes tells whether the span's input includes what was found in a cache: by
// its scope, its service, its provider, the first of which that is known.
func (p *requestPage) includes() bool {
	for _, source := range [...]string{p.scope, p.service, p.text(fieldProvider)} {
		if includes, ok := p.requests.includesCached[string(p.letters.lower(source))]; ok {
			return includes
		}
	}
	return true
}

// usage reads what a request took. The types of tokens do not overlap: what was
// written to a cache had to be computed, and is uncached input; where it is not
// told what was found in one, all input counts as uncached, and of the cached
// nothing is known. No input at all on a request that succeeded means that its
// usage was left out, whatever the zeros say.
func (p *requestPage) usage() {
	r := &p.request
	input, hasInput := p.span.tokens(fieldInput)
	cached, hasCached := p.span.tokens(fieldCached)
	created, _ := p.span.tokens(fieldCacheCreation)
	output, hasOutput := p.span.tokens(fieldOutput)

	uncached := input
	switch {
	case cached+created == 0 || !hasInput:
	case !p.includes():
		uncached += created
	case cached > input:
		p.ignore(CacheOverInput)
		uncached += created
	default:
		uncached -= cached
	}
	if r.Outcome == tenant.OK && hasInput && uncached+cached == 0 {
		hasInput, hasCached = false, false
		hasOutput = hasOutput && output > 0
	}
	r.Tokens, r.Known = [tenant.TokenTypeCount]uint64{}, [tenant.TokenTypeCount]bool{}
	p.tell(tenant.InputUncached, uncached, hasInput)
	p.tell(tenant.InputCached, cached, hasCached)
	p.tell(tenant.Output, output, hasOutput)
	r.TTFT = -1
	if p.span.has(fieldTTFT) {
		r.TTFT = p.span.said[fieldTTFT].number
	}
}

func (p *requestPage) tell(t tenant.TokenType, n uint64, known bool) {
	if known {
		p.request.Tokens[t], p.request.Known[t] = n, true
	}
}
