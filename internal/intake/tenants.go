// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/tenant"
)

// tenants says whose a point of a tenant is.
type tenants struct {
	signals []fleet.Signal
	groupBy []string
	labels  map[string][]string // by dialect, in place of its own
	plain   *tenant.Namer
}

func newTenants(o *Options) *tenants {
	all := make(map[string][]string, len(o.TenantLabels))
	for name, of := range o.TenantLabels {
		all[name] = dialect.Spellings(of)
	}
	return &tenants{signals: o.Signals, groupBy: o.GroupBy, labels: all, plain: tenant.NewNamer(tenant.NamerOptions{Mode: tenant.Plain})}
}

// tenantLabels are the labels that name tenants in a dialect: those that are given
// for it, or else its own.
func tenantLabels(given map[string][]string, d *dialect.Dialect) []string {
	if labels, ok := given[d.Name]; ok {
		return labels
	}
	return d.Labels.Tenants
}

// ownUsage is the dialect of tenant_usage, which alone may give names that are
// reserved: anyone else's page has what a client called itself.
const ownUsage = "tenant_usage"

// wants: whoever names tenants.
func (t *tenants) wants(e *dialect.Entry) bool {
	return len(tenantLabels(t.labels, e.Dialect)) > 0 && slices.Contains(t.signals, e.Signal)
}

// identity says whose the point is: the fleet's keys, and the tenant in place of
// the replica. Many tells that it stands for more than one.
func (t *tenants) identity(p *point) (fleet.Identity, Reason) {
	id := fleet.Identity{Engine: p.entry.Dialect.Name}
	keys, reason := keysOf(t.groupBy, p.key)
	if reason != 0 {
		return id, reason
	}
	id.Keys = keys
	id.Replica = t.name(p.attributes, p.entry.Dialect)
	id.Many = id.Replica == tenant.Other
	return id, 0
}

func (*tenants) crowd(id *fleet.Identity) bool {
	id.Replica, id.Many = tenant.Other, true
	return true
}

// name is what the point's tenant is called.
func (t *tenants) name(attributes pcommon.Map, d *dialect.Dialect) string {
	raw := borrowed(attributes, tenantLabels(t.labels, d))
	switch {
	case slices.Contains(d.Labels.Nobody, raw):
		return tenant.Unknown
	case slices.Contains(d.Labels.Others, raw):
		return tenant.Other
	case d.Name == ownUsage && tenant.Reserved(raw):
		return strings.Clone(raw)
	default:
		return t.plain.Name(raw)
	}
}
