// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantusageconnector

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/scenariotest"
	"github.com/llmfleet/llmfleet/internal/tenant"
)

// TestManyRecords come in requests of a thousand, and are all there.
func TestManyRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, plainConfig())
		s.raise()
		var asks []ask
		for i := range 2500 {
			asks = append(asks, ask{tenant: fmt.Sprint("t", i), model: "m", input: 1})
		}
		s.consume(spans(asks...))
		scenariotest.Wait(s.began.Add(time.Minute))
		s.shutdown()
		tenants := map[string]bool{}
		for _, r := range s.logRecords() {
			name, _ := r.Attributes().Get(emit.AttributeTenant)
			tenants[name.Str()] = true
		}
		assert.Equal(t, []int{1000, 1000, 500}, s.sizes())
		assert.Len(t, tenants, 2500)
	})
}

// TestJournalAtTheLimit: as many as max_tenants allows have whole records; one
// more costs one of them its wholeness, and nobody anything else. What gives way
// is told in the call, in requests of up to a thousand.
func TestJournalAtTheLimit(t *testing.T) {
	for _, more := range []int{0, 1, 1500} {
		t.Run(fmt.Sprint(more), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := plainConfig()
				config.Events.MaxTenants = 100
				s := newStage(t, config)
				s.raise()
				var asks []ask
				for i := range 100 + more {
					asks = append(asks, ask{tenant: fmt.Sprint("t", i), model: "m", input: int64(i)})
				}
				s.consume(spans(asks...))
				assert.Len(t, s.logRecords(), more)
				for _, size := range s.sizes() {
					assert.LessOrEqual(t, size, 1000)
				}
				scenariotest.Wait(s.began.Add(time.Minute))
				s.shutdown()
				input, partial := int64(0), 0
				for _, r := range s.logRecords() {
					n, _ := r.Attributes().Get("llmfleet.tenant.tokens.input_uncached")
					input += n.Int()
					if part, _ := r.Attributes().Get("llmfleet.partial"); part.Bool() {
						partial++
					}
				}
				assert.Len(t, s.logRecords(), 100+more)
				assert.EqualValues(t, (99+more)*(100+more)/2, input)
				assert.GreaterOrEqual(t, partial, more)
			})
		})
	}
}

// TestInventedModels: clients that make up names of models make no series.
func TestInventedModels(t *testing.T) {
	for models, want := range map[int]int{32: 32, 33: 33, 10_000: 33} {
		t.Run(fmt.Sprint(models), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, plainConfig())
				s.raise()
				var asks []ask
				for i := range models {
					asks = append(asks, ask{tenant: "acme", model: fmt.Sprint("gpt-4o-mimi-", i)})
				}
				s.consume(spans(asks...))
				scenariotest.Wait(s.began.Add(10 * time.Second))
				s.shutdown()
				_, series := s.sum(10*time.Second, emit.Tenants)
				assert.Equal(t, want, series)
				assert.InDelta(t, models, s.requests(10*time.Second), 0)
				others, _ := s.sum(10*time.Second, emit.TenantRequests, "model_name", tenant.Other)
				assert.InDelta(t, models-32, others, 0)
			})
		})
	}
}

// TestRefusedModels: those that nobody serves take no place of those that are
// served, nor do their tiers.
func TestRefusedModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, plainConfig())
		s.raise()
		var asks []ask
		for i := range 100 {
			asks = append(asks, ask{tenant: "mallory", tier: fmt.Sprint("tier-", i), model: fmt.Sprint("gpt-4o-mimi-", i)},
				ask{tenant: "mallory", tier: fmt.Sprint("tier-", i), model: "real-0"})
		}
		refused := spans(asks...)
		for _, span := range refused.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			span.Attributes().PutInt("http.response.status_code", 404)
		}
		s.consume(refused)
		asks = nil
		for i := range 32 {
			asks = append(asks, ask{tenant: "acme", tier: "gold", model: fmt.Sprint("real-", i)})
		}
		s.consume(spans(asks...))
		scenariotest.Wait(s.began.Add(10 * time.Second))
		s.shutdown()
		const at = 10 * time.Second
		for i := range 32 {
			n, _ := s.sum(at, emit.TierRequests, "model_name", fmt.Sprint("real-", i), "tier", "gold", "outcome", "ok")
			assert.InDelta(t, 1, n, 0, i)
		}
		_, series := s.sum(at, emit.Tenants)
		assert.Equal(t, 33, series)
		assert.InDelta(t, 232, s.requests(at), 0)
		others, _ := s.sum(at, emit.TenantRequests, "model_name", tenant.Other, "outcome", "error")
		assert.InDelta(t, 200, others, 0)
	})
}

// TestInventedTiers, likewise.
func TestInventedTiers(t *testing.T) {
	for tiers, want := range map[int]int{16: 16, 17: 17, 1000: 17} {
		t.Run(fmt.Sprint(tiers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, plainConfig())
				s.raise()
				var asks []ask
				for i := range tiers {
					asks = append(asks, ask{tenant: "acme", tier: fmt.Sprint("tier-", i), model: "m"})
				}
				s.consume(spans(asks...))
				scenariotest.Wait(s.began.Add(10 * time.Second))
				s.shutdown()
				total, series := s.sum(10*time.Second, emit.TierRequests, "outcome", "ok")
				assert.Equal(t, want, series)
				assert.InDelta(t, tiers, total, 0)
			})
		})
	}
}
