// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleeteventsconnector

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
)

// reading is what one call tells of one replica, node, tenant, canary or fleet at
// one time: of one evaluation all points, in whatever order they came.
type reading struct {
	of       emit.Scope
	resource map[string]string // of the writer
	labels   []fleet.Label     // of the points, without what tells its series apart
	identity uint64            // of the writer and of those labels that last
	at       pcommon.Timestamp
	valued   bool // not only ends of series
	marks    []mark
	count    *float64 // of changes of its variant
	figures  []figure
}

// mark is what a flag shows.
type mark struct {
	metric string // the flag's
	of     string // which of its flags it is, where it has more than one
	shows  state
}

// figure is one value, with the attributes that tell it from its siblings.
type figure struct {
	metric *emit.Metric
	own    [2]string // in the order of the metric's attributes
	value  float64
}

// legible are the metrics that are read, by name: what is told of replicas,
// fleets, nodes, tenants and canaries. The accounts of tenants are no verdicts.
var legible = func() map[string]*emit.Metric {
	all := make(map[string]*emit.Metric)
	for i := range emit.Metrics {
		m := &emit.Metrics[i]
		switch subject, _, _ := strings.Cut(strings.TrimPrefix(m.Name, "llmfleet."), "."); subject {
		case "replica", "fleet", "node", "canary":
			all[m.Name] = m
		case "tenant":
			if m.Kind == fleet.Gauge && m.Name != emit.TenantUsageKnown {
				all[m.Name] = m
			}
		}
	}
	return all
}()

// passing are the labels that do not say who a replica is: they may be learned
// late, and a rollout changes some of them.
var passing = []string{
	fleet.Role.String(), fleet.EngineName.String(), fleet.GPUModel.String(),
	fleet.ModelRevision.String(), fleet.EngineVersion.String(), fleet.ConfigHash.String(),
}

// reader puts the points of a call together.
type reader struct {
	seed maphash.Seed
}

// readings are all that a call tells, by time, then in the order of appearance.
type readings []*reading

// read gathers a call whole.
func (r reader) read(md pmetric.Metrics) readings {
	g := gathering{reader: r, of: make(map[place]*reading)}
	for _, rm := range md.ResourceMetrics().All() {
		g.resource = nil
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				metric := legible[m.Name()]
				if metric == nil {
					continue
				}
				if g.resource == nil {
					g.resource = plain(rm.Resource().Attributes())
				}
				for _, point := range pointsOf(m).All() {
					g.add(metric, point)
				}
			}
		}
	}
	slices.SortStableFunc(g.all, func(a, b *reading) int { return cmp.Compare(a.at, b.at) })
	return g.all
}

// plain are attributes as text.
func plain(attributes pcommon.Map) map[string]string {
	all := make(map[string]string, attributes.Len())
	for key, value := range attributes.All() {
		all[key] = value.AsString()
	}
	return all
}

func pointsOf(m pmetric.Metric) pmetric.NumberDataPointSlice {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints()
	default:
		return pmetric.NewNumberDataPointSlice()
	}
}

// gathering is a call while it is read.
type gathering struct {
	reader
	resource map[string]string
	all      readings
	of       map[place]*reading
	labels   []fleet.Label
}

// place is where a point belongs.
type place struct {
	identity uint64
	at       pcommon.Timestamp
}

func (g *gathering) add(m *emit.Metric, point pmetric.NumberDataPoint) {
	value := valueOf(point)
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	own := g.split(m, point.Attributes())
	identity := g.identity(g.resource, g.labels, m.Of)
	valued := !point.Flags().NoRecordedValue()
	at := place{identity, point.Timestamp()}
	rd := g.of[at]
	if rd == nil {
		rd = &reading{of: m.Of, resource: g.resource, identity: identity, at: point.Timestamp()}
		rd.labels = slices.Clone(g.labels)
		g.of[at], g.all = rd, append(g.all, rd)
	}
	if valued {
		rd.name(g.labels)
	}
	if f := flags[m.Name]; f != nil {
		if of, shows, says := f.shows(own, valued, value); says {
			rd.mark(mark{m.Name, of, shows})
		}
	}
	switch {
	case !valued:
	case m.Name == emit.ReplicaVariantChanges:
		rd.count = &value
	default:
		rd.figures = append(rd.figures, figure{m, own, value})
	}
}

// split parts a point's attributes into the labels of what it tells of, and
// those that tell the series of one metric apart. A node is what it tells of.
func (g *gathering) split(m *emit.Metric, attributes pcommon.Map) (own [2]string) {
	g.labels = g.labels[:0]
	for key, value := range attributes.All() {
		i := slices.Index(m.Attributes, key)
		if i < 0 || m.Of == emit.Platform {
			g.labels = append(g.labels, fleet.Label{Name: key, Value: value.AsString()})
			continue
		}
		own[i] = value.AsString()
	}
	return own
}

// name takes the labels of a point that has a value. Those of an ended series may
// be of another variant, and those of another component may be more.
func (rd *reading) name(labels []fleet.Label) {
	if !rd.valued {
		rd.valued, rd.labels = true, append(rd.labels[:0], labels...)
		return
	}
	if len(labels) <= len(rd.labels) && slices.Equal(labels, rd.labels[:len(labels)]) {
		return
	}
	for _, l := range labels {
		if rd.label(l.Name) == "" {
			rd.labels = append(rd.labels, l)
		}
	}
}

// mark notes what a flag shows. A series that ends while the same flag goes on
// under other labels has not ended.
func (rd *reading) mark(m mark) {
	i := slices.IndexFunc(rd.marks, func(o mark) bool { return o.metric == m.metric && o.of == m.of })
	switch {
	case i < 0:
		rd.marks = append(rd.marks, m)
	case rd.marks[i].shows == ended:
		rd.marks[i].shows = m.shows
	}
}

func valueOf(point pmetric.NumberDataPoint) float64 {
	if point.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return float64(point.IntValue())
	}
	return point.DoubleValue()
}

// identity is a hash of who a reading is of. Two fleets may differ in nothing
// but what is passing for a replica. The order of labels does not count.
func (r reader) identity(resource map[string]string, labels []fleet.Label, of emit.Scope) uint64 {
	sum := r.hash("service.instance.id", resource["service.instance.id"]) + uint64(of)
	for _, l := range labels {
		if of != emit.Replica || !slices.Contains(passing, l.Name) {
			sum += r.hash(l.Name, l.Value)
		}
	}
	return sum
}

func (r reader) hash(name, value string) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	_, _ = h.WriteString(name)
	_ = h.WriteByte(0)
	_, _ = h.WriteString(value)
	return h.Sum64()
}

// label is the value of a label, "" where it has none.
func (rd *reading) label(name string) string { return labelOf(rd.labels, name) }

func labelOf(labels []fleet.Label, name string) string {
	for _, l := range labels {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// find is a figure of the reading.
func (rd *reading) find(metric string, own ...string) (float64, bool) {
	if rd == nil {
		return 0, false
	}
	for _, f := range rd.figures {
		if f.metric.Name == metric && slices.Equal(f.own[:len(own)], own) {
			return f.value, true
		}
	}
	return 0, false
}

// chosen are the values of a flag's attribute for which it is 1.
func (rd *reading) chosen(metric string) (values []string) {
	for _, f := range rd.figures {
		if f.metric.Name == metric && f.value != 0 {
			values = append(values, f.own[0])
		}
	}
	return values
}

// fleetOf is what the same call tells of a replica's or tenant's fleet: that with
// the most labels of those that have no other than it. Nil if it tells nothing.
func (rs readings) fleetOf(rd *reading) (found *reading) {
	if rd.of != emit.Replica && rd.of != emit.Tenant {
		return nil
	}
	for _, f := range rs {
		if f.of != emit.Fleet || f.at != rd.at || !f.valued || found != nil && len(found.labels) >= len(f.labels) {
			continue
		}
		if !slices.ContainsFunc(f.labels, func(l fleet.Label) bool { return rd.label(l.Name) != l.Value }) {
			found = f
		}
	}
	return found
}
