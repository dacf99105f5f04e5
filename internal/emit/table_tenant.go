// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package emit

import "github.com/llmfleet/llmfleet/internal/fleet"

// Names of the metrics of tenant_usage.
const (
	TenantTokens     = "llmfleet.tenant.tokens" //nolint:gosec // no credential
	TenantRequests   = "llmfleet.tenant.requests"
	TenantTTFT       = "llmfleet.tenant.ttft"
	TenantUsageKnown = "llmfleet.tenant.usage_known_ratio"
	Tenants          = "llmfleet.tenants"
	TierTokens       = "llmfleet.tier.tokens" //nolint:gosec // no credential
	TierRequests     = "llmfleet.tier.requests"
	TierTTFT         = "llmfleet.tier.ttft"
	TierUsageKnown   = "llmfleet.tier.usage_known_ratio"
)

// Names of the metrics of tenant_share.
const (
	TenantTokenShare     = "llmfleet.tenant.token_share_ratio" //nolint:gosec // no credential
	TenantUsualShare     = "llmfleet.tenant.usual_share_ratio"
	TenantITLExcess      = "llmfleet.tenant.itl_excess_ratio"
	TenantNoisy          = "llmfleet.tenant.noisy"
	TenantNoisyScore     = "llmfleet.tenant.noisy_score"
	TenantNoisyDuration  = "llmfleet.tenant.noisy_duration"
	TenantThrottledRatio = "llmfleet.tenant.throttled_ratio"
	TenantBudgetUsed     = "llmfleet.tenant.budget_used_ratio"
	FleetITL             = "llmfleet.fleet.itl"
	FleetUsualITL        = "llmfleet.fleet.usual_itl"
	FleetFairness        = "llmfleet.fleet.fairness_ratio"
)

var (
	byTokenType = []string{AttributeTokenType}
	byOutcome   = []string{AttributeOutcome}
	byDirection = []string{AttributeDirection}
)

var tenantMetrics = []Metric{
	{
		TenantTokens, fleet.Counter, "{token}", "Tokens of the tenant's requests: input_uncached, input_cached and output, which do not overlap.",
		Tenant, byTokenType, true, tenantUsage, Beta,
	},
	{
		TenantRequests, fleet.Counter, "{request}", "Requests of the tenant that ended, by outcome: ok, error or throttled.",
		Tenant, byOutcome, true, tenantUsage, Beta,
	},
	{
		TenantTTFT, fleet.Histogram, "s", "Time to first token of the tenant's requests.",
		Tenant, nil, true, tenantUsage, Beta,
	},
	{
		TenantUsageKnown, fleet.Gauge, "1", "Share of the tenant's requests of late that said how many tokens of a type they took; where it is below 1, tokens are counted too low.",
		Tenant, byTokenType, true, tenantUsage, Beta,
	},
	{
		Tenants, fleet.Gauge, "{tenant}", "Distinct tenants that sent requests of late: exact up to `track` of them, otherwise estimated to 2 %.",
		Fleet, nil, true, tenantUsage, Alpha,
	},
}

var tierMetrics = []Metric{
	{
		TierTokens, fleet.Counter, "{token}", "Tokens of the tier's requests: input_uncached, input_cached and output, which do not overlap.",
		Tier, byTokenType, true, tenantUsage, Alpha,
	},
	{
		TierRequests, fleet.Counter, "{request}", "Requests of the tier that ended, by outcome: ok, error or throttled.",
		Tier, byOutcome, true, tenantUsage, Alpha,
	},
	{
		TierTTFT, fleet.Histogram, "s", "Time to first token of the tier's requests.",
		Tier, nil, true, tenantUsage, Alpha,
	},
	{
		TierUsageKnown, fleet.Gauge, "1", "Share of the tier's requests of late that said how many tokens of a type they took; where it is below 1, tokens are counted too low.",
		Tier, byTokenType, true, tenantUsage, Alpha,
	},
}

var shareMetrics = []Metric{
	{
		TenantTokenShare, fleet.Gauge, "1", "The tenant's share of the fleet's tokens over the window: of input, input_uncached (what has to be computed) or output.",
		Tenant, byDirection, true, tenantShare, Beta,
	},
	{
		TenantUsualShare, fleet.Gauge, "1", "The tenant's usual share of the uncached input: its mean over about half_life, before the onset while the tenant is noisy.",
		Tenant, nil, true, tenantShare, Alpha,
	},
	{
		TenantITLExcess, fleet.Gauge, "1", "How much longer than usual the fleet's inter-token latency is for what the tenant sends beyond its usual share, mean over some panes: 0.4 is 40 %. An attribution by a fitted line, no proof.",
		Tenant, nil, true, tenantShare, Beta,
	},
	{
		TenantNoisy, fleet.Gauge, "{flag}", "Is 1 while what the tenant sends beyond its usual share raises the fleet's inter-token latency.",
		Tenant, nil, true, tenantShare, Beta,
	},
	{
		TenantNoisyScore, fleet.Gauge, "{score}", "How well the tenant's surplus and the fleet's inter-token latency move together: t statistic of their correlation.",
		Tenant, nil, true, tenantShare, Alpha,
	},
	{
		TenantNoisyDuration, fleet.Gauge, "s", "How long ago the surplus of a noisy tenant began; 0 while it is not noisy.",
		Tenant, nil, true, tenantShare, Alpha,
	},
	{
		TenantThrottledRatio, fleet.Gauge, "1", "Requests of the tenant that its gateway turned away for rate or budget, over all of its requests in the window.",
		Tenant, nil, false, tenantShare, Alpha,
	},
	{
		TenantBudgetUsed, fleet.Gauge, "1", "Share of the tenant's budget that is used up, as its gateway says.",
		Tenant, nil, false, tenantShare, Alpha,
	},
	{
		FleetITL, fleet.Gauge, "s", "Mean inter-token latency of the fleet over the pane: increase of the sum over increase of the count.",
		Fleet, nil, true, tenantShare, Beta,
	},
	{
		FleetUsualITL, fleet.Gauge, "s", "The usual of that: its mean over about half_life, before the onset while a tenant is noisy.",
		Fleet, nil, true, tenantShare, Alpha,
	},
	{
		FleetFairness, fleet.Gauge, "1", "Jain's index of the tokens of the tenants that are told apart: 1 where all have as many, 1/n where one of n has all.",
		Fleet, nil, true, tenantShare, Alpha,
	},
}
