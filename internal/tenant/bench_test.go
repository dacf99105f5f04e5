// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/llmfleet/llmfleet/internal/window"
)

// traffic is requests of a crowd of a million, drawn ahead.
func traffic(models int) []Request {
	c := newCrowd(1_000_000, 2)
	requests := make([]Request, 1<<20)
	for i := range requests {
		requests[i] = Request{
			Tenant: c.draw(), Model: fmt.Sprint("model ", i%models), Tier: "gold",
			Tokens: [TokenTypeCount]uint64{c.tokens(), 0, c.tokens()}, Known: [TokenTypeCount]bool{true, true, true},
			TTFT: 0.2,
		}
	}
	return requests
}

var benchmarked = LedgerOptions{
	Top: 20, Track: 512, HalfLife: 10 * time.Minute, TTL: time.Hour, MaxModels: 32, MaxTiers: 16,
}

// heapMB is the memory that is reachable.
func heapMB() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what a sync.Pool lets go of survives one
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

func BenchmarkLedgerCount(b *testing.B) {
	requests := traffic(1)
	before := heapMB()
	l := NewLedger(benchmarked, epoch)
	now := epoch
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if now += window.Instant(100 * time.Microsecond); i%100_000 == 0 {
			l.Close(now, func(*Books) {})
		}
		l.Count(&requests[i%len(requests)], now)
	}
	b.ReportMetric(heapMB()-before, "heap-MB")
	runtime.KeepAlive(requests)
	runtime.KeepAlive(l)
}

func BenchmarkLedgerClose(b *testing.B) {
	l := NewLedger(benchmarked, epoch)
	for _, r := range traffic(32) {
		l.Count(&r, epoch)
	}
	now := epoch
	b.ReportAllocs()
	for b.Loop() {
		now++
		l.Close(now, func(*Books) {})
	}
}

func BenchmarkJournalCount(b *testing.B) {
	requests := traffic(1)
	before := heapMB()
	j := NewJournals(JournalOptions{Window: time.Minute, MaxTenants: 20_000, MaxEnded: 1}, epoch)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		j.Count(&requests[i%len(requests)], epoch)
	}
	b.ReportMetric(heapMB()-before, "heap-MB")
	runtime.KeepAlive(requests)
	runtime.KeepAlive(j)
}

func BenchmarkName(b *testing.B) {
	for _, mode := range []struct {
		name    string
		options NamerOptions
	}{
		{"hash", NamerOptions{Key: []byte("0123456789abcdef")}},
		{"plain", NamerOptions{Mode: Plain}},
	} {
		b.Run(mode.name, func(b *testing.B) {
			n := NewNamer(mode.options)
			b.ReportAllocs()
			for b.Loop() {
				n.Name("tenant-0000000000000001")
			}
		})
	}
}

// Both crowds fill the list of those watched, so a million needs no more than a
// thousand.
func TestMemoryIsFlatInTheNumberOfTenants(t *testing.T) {
	used := func(tenants int) float64 {
		before := heapMB()
		l := NewLedger(benchmarked, epoch)
		for i := range tenants {
			l.Count(&Request{Tenant: fmt.Sprintf("%016x", i), Tier: "gold", TTFT: 0.2}, epoch+window.Instant(i))
			if i%10_000 == 0 {
				l.Close(epoch+window.Instant(i), func(*Books) {})
			}
		}
		mb := heapMB() - before
		runtime.KeepAlive(l)
		return mb
	}
	thousand, million := used(1000), used(1_000_000)
	t.Logf("%.2f MB for a thousand, %.2f MB for a million", thousand, million)
	assert.Less(t, million, 10.0)
	assert.InDelta(t, thousand, million, 0.5)
}

// Every bound at its limit: models, tenants watched and named, tiers.
func TestMemoryOfAFullLedger(t *testing.T) {
	before := heapMB()
	o := benchmarked
	o.Exponential = true
	l := NewLedger(o, epoch)
	for model := range 40 {
		for i := range 1000 {
			r := Request{Tenant: fmt.Sprintf("%016x", i), Model: fmt.Sprint("model ", model), Tier: fmt.Sprint("tier ", i), TTFT: 0.2}
			l.Count(&r, epoch)
		}
	}
	l.Close(epoch+1, func(*Books) {})
	mb := heapMB() - before
	t.Logf("%.2f MB", mb)
	assert.Less(t, mb, 10.0)
	runtime.KeepAlive(l)
}
