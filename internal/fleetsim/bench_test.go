// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkAdvance reports simulated requests and engine seconds by the second.
func BenchmarkAdvance(b *testing.B) {
	s, err := Parse([]byte("fleets: [{engine: vllm, model_name: m, replicas: 100, arrivals: {rate: 800}}]"))
	require.NoError(b, err)
	sim, err := New(s, start)
	require.NoError(b, err)
	for i := 0; b.Loop(); i++ {
		sim.AdvanceTo(time.Duration(i) * time.Second)
	}
	requests := 0.0
	for _, e := range sim.engines {
		requests += e.sim.values[finished]
	}
	b.ReportMetric(requests/b.Elapsed().Seconds(), "requests/s")
	b.ReportMetric(100*sim.Now().Seconds()/b.Elapsed().Seconds(), "engine-seconds/s")
}

// BenchmarkPage writes the page of a busy vLLM.
func BenchmarkPage(b *testing.B) {
	s, err := Parse([]byte(oneVLLM))
	require.NoError(b, err)
	sim, err := New(s, start)
	require.NoError(b, err)
	sim.AdvanceTo(time.Minute)
	var page []byte
	for b.Loop() {
		page, _ = sim.Engines()[0].AppendPage(page[:0])
	}
	b.SetBytes(int64(len(page)))
}

// BenchmarkBuiltin plays an hour and a half of each scenario.
func BenchmarkBuiltin(b *testing.B) {
	for _, name := range Builtins() {
		b.Run(name, func(b *testing.B) {
			s, err := Builtin(name)
			require.NoError(b, err)
			for b.Loop() {
				sim, err := New(s, start)
				require.NoError(b, err)
				sim.AdvanceTo(90 * time.Minute)
			}
		})
	}
}
