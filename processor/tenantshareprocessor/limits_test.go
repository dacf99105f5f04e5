// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantshareprocessor

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// TestInventedTenants meets a client that invents 10,000 names: 2,000 have places
// of their own, the default, 20 are named, and the tokens of all are accounted
// for. The first sends as much as all others together.
func TestInventedTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const invented = 10_000
		config := subject.Defaults()
		stage := subject.Stage(t, config)
		stage.Raise()
		for i := range 4 {
			scenariotest.Wait(stage.Began.Add(time.Duration(i)*config.Pane/2 + time.Second))
			at := time.Since(stage.Began)
			stage.Consume(engine("engine", stage.Began.Add(at)))
			stage.Consume(invention(stage.Began.Add(at), invented, float64(10*i)))
		}
		scenariotest.Wait(stage.Began.Add(2*config.Pane + config.Lateness + time.Millisecond))
		counts := stage.Counts()
		assert.InDelta(t, invented-config.MaxTenants, counts[`ignored{input="tenants",reason="crowd"}`], 0)
		assert.InDelta(t, config.MaxTenants, counts[`members_limit{input="tenants"}`], 0)
		assert.LessOrEqual(t, counts[`members{input="tenants"}`], float64(config.MaxTenants+1), "those that have places, and all others")
		stage.Shutdown()
		told := stage.Told(t)[2*config.Pane]
		shares := map[string]float64{}
		for _, p := range told {
			if p.Name == emit.TenantTokenShare && p.Labels["direction"] == "input" {
				shares[p.Labels["tenant"]] = p.Value
			}
		}
		assert.Len(t, shares, config.Top+1)
		assert.InDelta(t, 0.5, shares["team-0"], 1e-12)
		assert.InDelta(t, float64(invented-config.Top)/(2*(invented-1)), shares["__other__"], 1e-12)
	})
}

// invention is a page on which each of so many teams has sent as many tokens, but
// the first as many as the others together.
func invention(at time.Time, teams int, tokens float64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", "proxy")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("litellm_input_tokens_metric_total")
	sum := m.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	for k := range teams {
		point := sum.DataPoints().AppendEmpty()
		point.SetTimestamp(pcommon.NewTimestampFromTime(at))
		point.Attributes().PutStr("model", "m")
		point.Attributes().PutStr("team", fmt.Sprintf("team-%d", k))
		point.SetDoubleValue(tokens)
		if k == 0 {
			point.SetDoubleValue(tokens * float64(teams-1))
		}
	}
	return md
}
