// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package share

import "testing"

func BenchmarkJudge(b *testing.B) {
	const tenants = 2000
	j := NewJudge(DefaultOptions(minute))
	p := crowd(0, 0, tenants)
	at := 0
	for b.Loop() {
		p.End = endOf(at)
		at++
		j.Judge(p)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/tenants, "ns/tenant")
}
