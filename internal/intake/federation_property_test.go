// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"pgregory.net/rapid"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// counting is a page of one engine, with counts that any story may lead to.
type counting struct {
	buckets [2][4]uint64 // of each rank: what each bucket counts by itself
	tokens  [2]uint64
	waiting int
}

// page writes the page.
func (c *counting) page() pmetric.Metrics {
	md, m := pageOf("10.0.0.1:8000", "vllm:time_to_first_token_seconds")
	metrics := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	h := m.SetEmptyHistogram()
	h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	counter := metrics.AppendEmpty()
	counter.SetName("vllm:generation_tokens_total")
	sum := counter.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	gauge := metrics.AppendEmpty()
	gauge.SetName("vllm:num_requests_waiting")
	gauge.SetEmptyGauge()
	for rank := range c.buckets {
		p := h.DataPoints().AppendEmpty()
		p.ExplicitBounds().FromRaw([]float64{0.001, 0.25, 10})
		p.BucketCounts().FromRaw(c.buckets[rank][:])
		p.SetCount(sumOf(p.BucketCounts()))
		p.SetSum(float64(p.Count()) / 8)
		n := sum.DataPoints().AppendEmpty()
		n.SetDoubleValue(float64(c.tokens[rank]))
		w := gauge.Gauge().DataPoints().AppendEmpty()
		w.SetDoubleValue(float64(c.waiting))
		for _, attributes := range []pcommon.Map{p.Attributes(), n.Attributes(), w.Attributes()} {
			attributes.PutStr("engine", fmt.Sprint(rank))
			attributes.PutStr("model_name", "m")
		}
	}
	return md
}

// timed gives all points of a page one time.
func timed(md pmetric.Metrics, at pcommon.Timestamp, stale bool) pmetric.Metrics {
	flags := pmetric.DefaultDataPointFlags.WithNoRecordedValue(stale)
	for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		var numbers pmetric.NumberDataPointSlice
		switch m.Type() {
		case pmetric.MetricTypeHistogram:
			for _, p := range m.Histogram().DataPoints().All() {
				p.SetTimestamp(at)
				p.SetFlags(flags)
			}
			continue
		case pmetric.MetricTypeSum:
			numbers = m.Sum().DataPoints()
		default:
			numbers = m.Gauge().DataPoints()
		}
		for _, p := range numbers.All() {
			p.SetTimestamp(at)
			p.SetFlags(flags)
		}
	}
	return md
}

// shuffle puts the metrics of a page, and the points of each, into another order.
func shuffle(md pmetric.Metrics, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	metrics, others := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics(), pmetric.NewMetricSlice()
	for _, i := range random.Perm(metrics.Len()) {
		from, to := metrics.At(i), others.AppendEmpty()
		from.CopyTo(to)
		points := to.SetEmptyGauge().DataPoints()
		for _, j := range random.Perm(from.Gauge().DataPoints().Len()) {
			from.Gauge().DataPoints().At(j).CopyTo(points.AppendEmpty())
		}
	}
	others.CopyTo(metrics)
}

// TestFederatedTellsTheSame: a story of pages, with restarts and scrapes that fail,
// gives equal increases whether it is scraped or federated, in any order of lines.
func TestFederatedTellsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		options := fleet.Options{DepartedAfter: time.Minute}
		direct, federated := newEngineReader(options), newEngineReader(options)
		var c counting
		few := rapid.Uint64Range(0, 5)
		for i := range rapid.IntRange(1, 8).Draw(t, "pages") {
			if rapid.IntRange(0, 4).Draw(t, "restart") == 0 {
				c = counting{}
			}
			for rank := range c.buckets {
				for b := range c.buckets[rank] {
					c.buckets[rank][b] += few.Draw(t, "observations")
				}
				c.tokens[rank] += few.Draw(t, "tokens")
			}
			c.waiting = rapid.IntRange(0, 3).Draw(t, "waiting")
			at := pcommon.Timestamp(noon.Add(time.Duration(3*i+1) * time.Second))
			page := timed(c.page(), at, rapid.IntRange(0, 4).Draw(t, "fails") == 0 && i > 0)
			untyped := federate(page)
			shuffle(untyped, rapid.Uint64().Draw(t, "order"))
			direct.Read(page)
			federated.Read(untyped)
		}
		told := frames(direct)
		assert.NotEmpty(t, told)
		assert.Equal(t, told, frames(federated))
		for reason := range ReasonCount {
			assert.Equal(t, direct.Tally().Ignored(reason), federated.Tally().Ignored(reason), "ignored: %s", reason)
		}
	})
}

// frames are what a reader's replicas told in the window after noon, as text.
func frames(r *Reader) (all []string) {
	r.registry.Close(noon.Add(interval), fleet.Ask{Signals: everySignal}, func(f *fleet.Frame) {
		for i := range f.Members {
			m := &f.Members[i]
			line := fmt.Sprint(m.Identity.Replica, m.Warming, m.Unreachable, m.Load)
			for _, d := range m.Told {
				line += fmt.Sprint(" ", d.Counts, d.Observations())
			}
			all = append(all, line)
		}
	})
	return all
}
