// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantusageconnector

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/connector/tenantusageconnector/internal/metadata"
)

// BenchmarkConsume is one span of a gateway, with 20 attributes, of tenants of
// whom few send most, on its way into metrics; into the records of a window as
// well; and into records of which there are more than the window has room for.
func BenchmarkConsume(b *testing.B) {
	for _, c := range []struct {
		name    string
		logs    bool
		tenants uint64
	}{{"metrics", false, 1_000_000}, {"records", true, 10_000}, {"early_records", true, 1_000_000}} {
		b.Run(c.name, func(b *testing.B) { benchmarkConsume(b, c.logs, c.tenants) })
	}
}

const (
	spansPerBatch = 1000
	batchesOfRun  = 64
)

func benchmarkConsume(b *testing.B, logs bool, tenants uint64) {
	b.Helper()
	connectors := raiseToBenchmark(b, logs)
	all := manySpans(tenants)
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += spansPerBatch {
		for _, c := range connectors {
			require.NoError(b, c.ConsumeTraces(b.Context(), all[done/spansPerBatch%batchesOfRun]))
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "spans/s")
}

func raiseToBenchmark(b *testing.B, logs bool) []connector.Traces {
	b.Helper()
	config, settings := createDefaultConfig().(*Config), connectortest.NewNopSettings(metadata.Type)
	metrics, err := NewFactory().CreateTracesToMetrics(b.Context(), settings, config, consumertest.NewNop())
	require.NoError(b, err)
	connectors := []connector.Traces{metrics}
	if logs {
		c, err := NewFactory().CreateTracesToLogs(b.Context(), settings, config, consumertest.NewNop())
		require.NoError(b, err)
		connectors = append(connectors, c)
	}
	for _, c := range connectors {
		require.NoError(b, c.Start(b.Context(), componenttest.NewNopHost()))
		b.Cleanup(func() { require.NoError(b, c.Shutdown(context.Background())) })
	}
	return connectors
}

func manySpans(tenants uint64) (all [batchesOfRun]ptrace.Traces) {
	dice := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(dice, 1.01, 1, tenants)
	for i := range all {
		var asks []ask
		for range spansPerBatch {
			asks = append(asks, ask{fmt.Sprint("tenant-", zipf.Uint64()), "gold", "qwen3-8b", int64(dice.IntN(4000))})
		}
		all[i] = spans(asks...)
		for _, span := range all[i].ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			attributes := span.Attributes()
			attributes.PutInt("gen_ai.usage.output_tokens", int64(dice.IntN(500)))
			attributes.PutDouble("gen_ai.response.time_to_first_chunk", dice.ExpFloat64())
			for n := attributes.Len(); n < 20; n++ {
				attributes.PutStr(fmt.Sprint("http.request.header.x-", n), "whatever")
			}
		}
	}
	return all
}
