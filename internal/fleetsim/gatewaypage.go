// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
)

// gatewayName is the pod of the gateway.
const gatewayName = "ai-gateway"

// gatewayTokenBounds are those of Envoy AI Gateway's tokens: the powers of 4 to
// 4^13, as the semantic conventions have them.
var gatewayTokenBounds = func() (bounds []float64) {
	for power := range 14 {
		bounds = append(bounds, float64(uint64(1)<<(2*power)))
	}
	return bounds
}()

// tokenSeries names a histogram of the gateway's page.
type tokenSeries struct{ model, tenant, tokens string }

// gatewayPage counts the tokens of all requests as Envoy AI Gateway does, with
// the tenant as a label: input, cached_input, which is part of it, and output.
type gatewayPage struct {
	usage map[tokenSeries]*histogram
}

func (p *gatewayPage) count(records []RequestRecord) {
	for i := range records {
		r := &records[i]
		if r.Status != http.StatusOK {
			continue
		}
		p.observe(tokenSeries{r.Model, r.Tenant, "input"}, r.Prompt)
		p.observe(tokenSeries{r.Model, r.Tenant, "cached_input"}, r.Cached)
		p.observe(tokenSeries{r.Model, r.Tenant, "output"}, r.Output)
	}
}

func (p *gatewayPage) observe(s tokenSeries, tokens int) {
	h := p.usage[s]
	if h == nil {
		h = new(newHistogram(gatewayTokenBounds))
		if p.usage == nil {
			p.usage = map[tokenSeries]*histogram{}
		}
		p.usage[s] = h
	}
	h.observe(float64(tokens), 1)
}

// appendTo appends the page as Go's Prometheus client writes it.
func (p *gatewayPage) appendTo(dst []byte) []byte {
	const name = "gen_ai_client_token_usage"
	dst = append(dst, head(name, "Tokens of requests, by kind", histogramKind)...)
	inOrder := func(x, y tokenSeries) int {
		return cmp.Or(cmp.Compare(x.model, y.model), cmp.Compare(x.tenant, y.tenant), cmp.Compare(x.tokens, y.tokens))
	}
	for _, s := range slices.SortedFunc(maps.Keys(p.usage), inOrder) {
		h, labels, below := p.usage[s], s.labels(), uint64(0)
		for i, count := range h.counts {
			below += count
			le := "+Inf"
			if i < len(h.bounds) {
				le = strconv.FormatFloat(h.bounds[i], 'g', -1, 64)
			}
			dst = append(dst, bucketPrefix(name, labels, le)...)
			dst = append(strconv.AppendUint(dst, below, 10), '\n')
		}
		dst = append(dst, linePrefix(name+"_sum", labels)...)
		dst = append(strconv.AppendFloat(dst, h.sum, 'g', -1, 64), '\n')
		dst = append(dst, linePrefix(name+"_count", labels)...)
		dst = append(strconv.AppendUint(dst, h.count, 10), '\n')
	}
	return dst
}

func (s tokenSeries) labels() []string {
	labels := []string{
		"gen_ai_operation_name", "chat", "gen_ai_provider_name", "openai",
		"gen_ai_request_model", s.model, "gen_ai_response_model", s.model, "gen_ai_token_type", s.tokens,
		"otel_scope_name", "envoyproxy/ai-gateway", "otel_scope_schema_url", "", "otel_scope_version", "",
	}
	if s.tenant != "" {
		labels = append(labels, "tenant_id", s.tenant)
	}
	return labels
}
