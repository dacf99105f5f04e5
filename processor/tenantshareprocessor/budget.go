// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantshareprocessor

import (
	"cmp"
	"context"
	"slices"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/tenant"
	"github.com/llmfleet/llmfleet/internal/window"
)

// budgetSignals are what gateways are asked for of budgets.
var budgetSignals = []fleet.Signal{fleet.BudgetRemaining, fleet.BudgetLimit}

// Where members of a frame tell them.
const atRemaining, atLimit = 0, 1

// budget is how much of its budget a tenant has used.
type budget struct {
	tenant string
	used   float64 // share of it; above 1 where more was spent
}

// writeBudgets writes of the tenants that have used the most of their budgets,
// as many as are named of a fleet, how much that is. It is told of no model: a
// budget is for all of them.
func (p *shareProcessor) writeBudgets(ctx context.Context, at window.Instant) {
	if p.budgets == nil {
		return
	}
	var all []budget
	p.budgets.registry.Close(at, fleet.Ask{Signals: budgetSignals}, func(f *fleet.Frame) {
		for i := range f.Members {
			if used, ok := usedOf(&f.Members[i]); ok {
				all = append(all, budget{f.Members[i].Identity.Replica, used})
			}
		}
	})
	slices.SortFunc(all, func(a, b budget) int {
		return cmp.Or(cmp.Compare(b.used, a.used), cmp.Compare(a.tenant, b.tenant))
	})
	for _, b := range all[:min(p.config.Top, len(all))] {
		p.writer.about(ctx, nil, b.tenant)
		p.writer.writer.Set(p.writer.budget, b.used)
	}
}

// usedOf is the share of a budget that is used, where both its parts are told.
// Replicas of a gateway that all tell of it tell the same.
func usedOf(m *fleet.MemberFrame) (share float64, ok bool) {
	remaining, limit := m.Levels[atRemaining], m.Levels[atLimit]
	if tenant.Reserved(m.Identity.Replica) || !remaining.NowKnown || !limit.NowKnown || limit.Now <= 0 {
		return 0, false
	}
	return max(0, 1-remaining.Now/limit.Now), true
}
