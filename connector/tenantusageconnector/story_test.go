// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantusageconnector

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// account follows cumulative series as a reader of metrics does: a series with
// another start is another series, and began at zero.
type account struct {
	since  string
	value  float64
	risen  float64 // since the first point of all
	before float64 // what series of the name with another start had risen
}

// accounts are those of the tenants' uncached input.
type accounts map[string]*account

// read takes the points of one evaluation, and returns how many series there are
// and by how much each tenant's rose.
func (a accounts) read(t *testing.T, s *stage, at time.Duration) (series int, increases map[string]float64) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	increases = map[string]float64{}
	for _, p := range s.told[at] {
		if p.Name != emit.TenantTokens || p.Labels["token_type"] != "input_uncached" || p.Ended {
			continue
		}
		series++
		known := a[p.Labels["tenant"]]
		if known == nil {
			known = &account{since: p.Labels["since"]}
			a[p.Labels["tenant"]] = known
		}
		if known.since != p.Labels["since"] {
			known.since, known.value, known.before = p.Labels["since"], 0, known.risen
		}
		require.GreaterOrEqual(t, p.Value, known.value, "%s falls", p.Series())
		increases[p.Labels["tenant"]] = p.Value - known.value
		known.value, known.risen = p.Value, known.before+p.Value
	}
	return series, increases
}

func (a accounts) risen() (total float64) {
	for _, known := range a {
		total += known.risen
	}
	return total
}

// TestThousandEndUsers: a thousand end users send one token each, with a cap of
// 20; then one of them sends 500; then all are silent for longer than the TTL.
// There are never more than 21 series, none ever falls, what they rise by sums up
// to what was sent, shares to 1, and in the end nothing is left.
func TestThousandEndUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, createDefaultConfig().(*Config))
		s.config.Tenant = TenantConfig{From: []string{"tenant.id"}, ID: idPlain}
		s.raise()
		all := accounts{}
		evaluate := func(at time.Duration, want float64) {
			t.Helper()
			scenariotest.Wait(s.began.Add(at))
			series, increases := all.read(t, s, at)
			assert.LessOrEqual(t, series, 21, "at %s", at)
			assert.InDelta(t, want, all.risen(), 0, "at %s", at)
			sent, shares := 0.0, 0.0
			for _, n := range increases {
				sent += n
			}
			for _, n := range increases {
				shares += n / max(sent, 1)
			}
			if sent > 0 {
				assert.InDelta(t, 1, shares, 1e-12, "at %s", at)
			}
		}

		var everyone []ask
		for i := range 1000 {
			everyone = append(everyone, ask{tenant: fmt.Sprint("end-user-", i), model: "m", input: 1})
		}
		scenariotest.Wait(s.began.Add(10 * time.Second))
		s.consume(spans(everyone...))
		evaluate(30*time.Second, 1000)
		evaluate(time.Minute, 1000)

		scenariotest.Wait(s.began.Add(70 * time.Second))
		s.consume(spans(ask{tenant: "end-user-777", model: "m", input: 500}))
		for at := 90 * time.Second; at <= 5*time.Minute; at += 30 * time.Second {
			evaluate(at, 1500)
		}
		assert.Contains(t, all, "end-user-777", "he has a series of his own by now")
		assert.InDelta(t, 21, s.counts()[`tenants{output="metrics"}`], 0)

		for at := 330 * time.Second; at <= 65*time.Minute; at += 30 * time.Second {
			evaluate(at, 1500)
		}
		series, _ := all.read(t, s, 65*time.Minute)
		assert.Zero(t, series)
		assert.Zero(t, s.counts()[`tenants{output="metrics"}`])
		assert.Zero(t, s.counts()[`tenants{output="logs"}`])
		assert.Len(t, s.logRecords(), 1001, "everyone in the first minute, one in the second")
		s.shutdown()
	})
}
