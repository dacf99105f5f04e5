// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantusageconnector

import (
	"sync"

	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/internal/tenant"
)

// batch is the requests of one call, read before the lock is taken. Their texts
// are the spans'.
type batch struct {
	requests []tenant.Request
	spans    []intake.SpanFacts // a request each
}

var batches = sync.Pool{New: func() any { return new(batch) }}

func takeBatch() *batch { return batches.Get().(*batch) }

func (b *batch) add(r *tenant.Request, span *intake.SpanFacts) {
	b.requests = append(b.requests, *r)
	b.spans = append(b.spans, *span)
}

// giveBack lets go of the texts, and keeps the room for them.
func (b *batch) giveBack() {
	clear(b.requests)
	b.requests, b.spans = b.requests[:0], b.spans[:0]
	batches.Put(b)
}
