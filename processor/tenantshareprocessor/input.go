// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantshareprocessor

import (
	"slices"
	"time"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/internal/window"
)

// input is one thing that is read of the metrics that pass: a reader, and the
// registry that it folds what it finds into.
type input struct {
	name     string
	registry *fleet.Registry
	reader   *intake.Reader
	limit    int
	explain  intake.Explainer
}

// teller is the key by which fleets of tenants are told apart by who tells of
// them: the dialect.
var teller = fleet.EngineName.String()

// engineSignals are what engines are asked for. The running requests are told
// with every frame.
var engineSignals = []fleet.Signal{fleet.ITL, fleet.PromptTokens, fleet.GenerationTokens, fleet.PrefixHits}

// tenantSignals are what gateways are asked for, the first recentSignals of them
// over the pane, too.
var tenantSignals = []fleet.Signal{fleet.PromptTokens, fleet.PrefixHits, fleet.GenerationTokens, fleet.Finished, fleet.Throttled}

const recentSignals = 3

// Where members of a frame tell the signals.
const (
	atITL, atPrompt, atGeneration, atHits = 0, 1, 2, 3

	atTenantPrompt, atTenantHits, atTenantOutput, atTenantFinished, atTenantThrottled = 0, 1, 2, 3, 4
)

// newEngines is what is read of engines: each pane by itself.
func newEngines(c *Config, dialects *dialect.Set) *input {
	in := &input{name: "engines", limit: c.MaxReplicas}
	in.registry = fleet.NewRegistry(fleet.Options{
		Grids:         []window.Grid{window.NewGrid(c.Pane, c.Pane, c.Lateness)},
		Lateness:      c.Lateness,
		DepartedAfter: departedAfter(c),
		MaxReplicas:   c.MaxReplicas,
	})
	in.reader = intake.NewReader(intake.Options{
		Dialects: dialects,
		Signals:  append([]fleet.Signal{fleet.Running}, engineSignals...),
		GroupBy:  c.GroupBy,
		Aliases:  c.ModelAliases,
	}, in.registry)
	return in
}

// newTenants is what is read of the tenants of each model: the window, and of it
// the newest pane.
func newTenants(c *Config, dialects *dialect.Set) *input {
	keys := slices.Clone(c.GroupBy)
	if !slices.Contains(keys, teller) {
		keys = append(keys, teller)
	}
	return ofTenants("tenants", c, dialects, keys, tenantSignals)
}

// newBudgets is what is read of tenants' budgets, which are for all models
// together.
func newBudgets(c *Config, dialects *dialect.Set) *input {
	return ofTenants("budgets", c, dialects, []string{teller}, budgetSignals)
}

func ofTenants(name string, c *Config, dialects *dialect.Set, groupBy []string, signals []fleet.Signal) *input {
	in := &input{name: name, limit: c.MaxTenants}
	in.registry = fleet.NewRegistry(fleet.Options{
		Grids:         []window.Grid{window.NewGrid(c.Pane, c.Window, c.Lateness)},
		Lateness:      c.Lateness,
		DepartedAfter: departedAfter(c),
		MaxReplicas:   c.MaxTenants,
		// Two replicas of a gateway that requests are dealt to in turn count alike.
		CopiesByProcess: true,
	})
	in.reader = intake.NewReader(intake.Options{
		Dialects:     dialects,
		Signals:      signals,
		GroupBy:      groupBy,
		Aliases:      c.ModelAliases,
		Tenants:      true,
		TenantLabels: c.TenantLabels,
	}, in.registry)
	return in
}

func departedAfter(c *Config) time.Duration {
	if c.DepartedAfter == nil {
		return 0
	}
	return *c.DepartedAfter
}

// tenantAsk asks for the window and for its newest pane.
func tenantAsk(pane time.Duration) fleet.Ask {
	return fleet.Ask{
		Signals: tenantSignals, Recent: recentSignals,
		Pane: func(window.Instant, time.Duration) time.Duration { return pane },
	}
}
