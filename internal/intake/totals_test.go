// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// ledger is an engine that tells totals in every way there is.
const ledger = `
engine: ledger
prefix: ledger
labels: {ranks: [rank], reasons: [why]}
signals:
  prompt_tokens:     {type: counter, names: [prompts]}
  generation_tokens: {type: gauge, names: [generations]}
  prefix_hits:       {type: histogram, part: sum, names: [cached]}
  prefix_queries:    {type: counter, add: [found, lost]}
  finished:          {type: counter, names: [ended]}
  errors:            {type: counter, names: [ended], only: {why: [error]}}
  kv_transfer_bytes: {type: counter, unit: KiB, names: [moved]}
  preemptions:       {type: histogram, part: count, names: [cached]}
`

// totals are the signals of the ledger, in the order in which they are asked for.
var totals = []fleet.Signal{
	fleet.PromptTokens, fleet.GenerationTokens, fleet.PrefixHits, fleet.PrefixQueries,
	fleet.Finished, fleet.Errors, fleet.KVTransferBytes, fleet.Preemptions,
}

func newLedger(t *testing.T) *Reader {
	t.Helper()
	dialects, err := dialect.Parse("ledger.yaml", []byte(ledger))
	require.NoError(t, err)
	registry := fleet.NewRegistry(fleet.Options{Grids: []window.Grid{window.NewGrid(interval, time.Minute, 5*time.Second)}, MaxReplicas: 10})
	registry.Open(noon + 1)
	return NewReader(Options{Dialects: dialects, Signals: totals, GroupBy: []string{"model_name"}}, registry)
}

// increases is what the one replica's totals gained; a signal that was not told
// is not there.
func increases(r *Reader) map[fleet.Signal]uint64 {
	gained := map[fleet.Signal]uint64{}
	r.registry.Close(noon.Add(interval), fleet.Ask{Signals: totals}, func(f *fleet.Frame) {
		for i, s := range totals {
			if told := &f.Members[0].Told[i]; told.Layout != nil {
				gained[s] = told.Observations()
			}
		}
	})
	return gained
}

// counter adds a counter with one point, whose labels come in pairs.
func counter(md pmetric.Metrics, name string, at time.Duration, value float64, labels ...string) {
	m := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
	m.SetName(name)
	sum := m.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	point := stamp(sum.DataPoints().AppendEmpty(), at)
	point.SetDoubleValue(value)
	for i := 0; i < len(labels); i += 2 {
		point.Attributes().PutStr(labels[i], labels[i+1])
	}
}

// TestEveryWayToTellATotal: counters, totals declared as gauges, sums and
// counts of histograms, several names that are added up, one name for two
// signals, and other units.
func TestEveryWayToTellATotal(t *testing.T) {
	r := newLedger(t)
	for i, at := range []time.Duration{time.Second, 16 * time.Second} {
		n := float64(i)
		md, gauge := pageOf("i", "ledger:generations")
		stamp(gauge.SetEmptyGauge().DataPoints().AppendEmpty(), at).SetDoubleValue(1000 + 70*n)
		counter(md, "ledger:prompts_total", at, 500+40*n, "rank", "0")
		counter(md, "ledger:prompts_total", at, 900+2*n, "rank", "1")
		counter(md, "ledger:found_total", at, 10+5*n)
		counter(md, "ledger:lost_total", at, 20+7*n)
		counter(md, "ledger:ended_total", at, 8+3*n, "why", "stop")
		counter(md, "ledger:ended_total", at, 1+2*n, "why", "error")
		counter(md, "ledger:moved_total", at, 4*n)
		m := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
		m.SetName("ledger:cached")
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		p := stamp(m.Histogram().DataPoints().AppendEmpty(), at)
		p.SetCount(uint64(2 + 9*i))
		p.SetSum(300 + 600*n)
		r.Read(md)
	}
	assert.Equal(t, map[fleet.Signal]uint64{
		fleet.PromptTokens: 42, fleet.GenerationTokens: 70, fleet.PrefixHits: 600, fleet.PrefixQueries: 12,
		fleet.Finished: 5, fleet.Errors: 2, fleet.KVTransferBytes: 4096, fleet.Preemptions: 9,
	}, increases(r))
}

// TestTotalsOfDifferences: what was sent as differences is added up.
func TestTotalsOfDifferences(t *testing.T) {
	r := newLedger(t)
	for i, at := range []time.Duration{time.Second, 16 * time.Second} {
		md, m := pageOf("i", "ledger:prompts_total")
		sum := m.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		stamp(sum.DataPoints().AppendEmpty(), at).SetIntValue(int64(30 + i))
		r.Read(md)
	}
	assert.Equal(t, map[fleet.Signal]uint64{fleet.PromptTokens: 61}, increases(r))
}

// TestTotalThatFallsIsReset, and missing is not zero: signals that the page
// does not tell have no increase.
func TestTotalThatFallsIsReset(t *testing.T) {
	r := newLedger(t)
	for i, value := range []float64{100, 140, 30} {
		md, _ := pageOf("i", "other")
		counter(md, "ledger:prompts_total", time.Duration(1+14*i)*time.Second, value)
		r.Read(md)
	}
	assert.Equal(t, map[fleet.Signal]uint64{fleet.PromptTokens: 70}, increases(r))
	assert.Equal(t, uint64(1), r.Tally().Ignored(Reason(window.Reset)))
}

// TestValuesThatNoTotalHas are refused and counted.
func TestValuesThatNoTotalHas(t *testing.T) {
	for _, value := range []float64{-1, math.NaN(), math.Inf(1), 1 << 63} {
		r := newLedger(t)
		md, _ := pageOf("i", "other")
		counter(md, "ledger:prompts_total", time.Second, value)
		r.Read(md)
		assert.Equal(t, uint64(1), r.Tally().Ignored(Range), value)
	}
}
