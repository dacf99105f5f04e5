// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/internal/tenant"
)

// FuzzRequests writes values of any type under all names that are read: no span
// makes a reader panic, and what it says to know could be.
func FuzzRequests(f *testing.F) {
	f.Add(uint64(0), []byte("\x00\x01\x02\x03\x04\x05\x06\x07"), "429", int64(-1), 1e300)
	f.Add(uint64(3), []byte("\x02\x02\x02\x02\x02"), "\xff\x00", int64(1)<<62, -0.5)
	f.Add(uint64(2), []byte{}, "1e999", int64(800), 1000.0)
	q := NewRequests(plain())
	f.Fuzz(func(t *testing.T, kind uint64, types []byte, text string, whole int64, fraction float64) {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		scope := rs.ScopeSpans().AppendEmpty()
		span := scope.Spans().AppendEmpty()
		scope.Scope().SetName(text)
		span.SetName(text)
		span.SetKind(ptrace.SpanKind(kind % 6))
		span.Status().SetCode(ptrace.StatusCode(whole % 3))
		span.Status().SetMessage(text)
		span.Events().AppendEmpty().SetName("exception")
		at := 0
		for f := range fieldCount {
			for _, name := range spanFields[f].names {
				if len(types) == 0 {
					break
				}
				m := span.Attributes()
				if types[at%len(types)]&0x80 != 0 {
					m = rs.Resource().Attributes()
				}
				put(m.PutEmpty(name), types[at%len(types)]&0x7f, text, whole, fraction)
				at++
			}
		}
		q.Read(td, func(r *tenant.Request, _ *SpanFacts) {
			for i, n := range r.Tokens {
				assert.LessOrEqual(t, n, uint64(3*maxTokens))
				assert.True(t, r.Known[i] || n == 0, "what is not known is not told")
			}
			assert.True(t, r.TTFT == -1 || r.TTFT > 0 && r.TTFT <= maxSeconds, r.TTFT)
			assert.Less(t, r.Outcome, tenant.OutcomeCount)
			assert.NotEmpty(t, r.Tenant)
			for _, label := range []string{r.Model, r.Tier, r.Variant} {
				assert.LessOrEqual(t, len(label), maxText)
			}
		})
	})
}

// put writes one of the values as one of the types.
func put(v pcommon.Value, as byte, text string, whole int64, fraction float64) {
	switch as % 8 {
	case 0:
		v.SetStr(text)
	case 1:
		v.SetInt(whole)
	case 2:
		v.SetDouble(fraction)
	case 3:
		v.SetBool(whole > 0)
	case 4:
		v.SetEmptyMap().PutStr(text, text)
	case 5:
		v.SetEmptySlice().AppendEmpty().SetStr(text)
	case 6:
		v.SetEmptySlice().AppendEmpty().SetEmptySlice().AppendEmpty().SetInt(whole)
	case 7:
		v.SetEmptyBytes().FromRaw([]byte(text))
	}
}
