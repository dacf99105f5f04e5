// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package intake is the one place where metric points are read: it finds the
// points that a dialect knows, says whose they are, and folds them into the
// registry of fleets. Reading a page whose series are known allocates nothing.
package intake

import (
	"slices"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// Options are what a reader looks for.
type Options struct {
	Dialects *dialect.Set
	Signals  []fleet.Signal // the others are passed over
	GroupBy  []string       // keys that make a fleet
	// Aliases are other names of models: of each the name that counts.
	Aliases map[string]string
	// Accelerators are where it is kept how the accelerators of pods fare; nil:
	// that is not read.
	Accelerators *fleet.Accelerators
	// Tenants: whose requests they were is followed, not who served them. Then a
	// replica of the registry is a tenant, as an engine's, a router's or a
	// gateway's labels name it, and what llmfleet derived of tenants is read.
	Tenants bool
	// TenantLabels are the labels that name tenants, by dialect, in place of the
	// dialect's own.
	TenantLabels map[string][]string
	// VariantLabels are labels of pods that tell variants apart, too, each under its
	// own name. They stand on points or their resource, as Prometheus' service
	// discovery or the k8s_attributes processor spells them.
	VariantLabels []string
	// Templates: of who tells neither model_revision nor engine_version nor
	// config_hash, the hash of its pod's template is the config_hash.
	Templates bool
	// Quality are measures of how good answers are. If there are any, they are what
	// is read, in place of the dialects' signals. Then a replica of the registry is a
	// variant as one teller tells of it, and keys of its fleet are those that the
	// teller names.
	Quality []Quality
}

// Reader reads metrics into a registry. It is safe for concurrent use.
type Reader struct {
	registry     *fleet.Registry
	accelerators *fleet.Accelerators
	names        names
	pods         *pods
	whose        whose
	clustered    bool // fleets are told apart by cluster
	engines      bool // every target is expected to be one that a dialect knows
	models       models
	pages        sync.Pool // of *page
}

// NewReader makes a reader that folds what it finds into the registry.
func NewReader(o Options, registry *fleet.Registry) *Reader {
	r := &Reader{
		registry: registry, accelerators: o.Accelerators,
		clustered: slices.Contains(o.GroupBy, keyCluster), engines: len(o.Quality) == 0, models: newModels(o.Aliases), pods: new(pods),
	}
	variants := newVariants(&o)
	switch {
	case len(o.Quality) > 0:
		r.whose = &judged{groupBy: o.GroupBy, variants: variants}
		o.Dialects = dialectOf(o.Quality)
	case o.Tenants:
		r.whose = newTenants(&o)
	default:
		who := &replicas{signals: o.Signals, groupBy: o.GroupBy, variants: variants, accelerators: o.Accelerators != nil}
		r.whose, r.pods = who, &who.pods
	}
	r.names.derived = o.Tenants
	r.names.init(o.Dialects, r.whose.wants, o.GroupBy)
	if len(o.Quality) > 0 {
		r.names.fix(variants.told())
	} else {
		r.names.notes.add(variants.spellings())
	}
	r.pages.New = func() any { return new(page) }
	return r
}

// Tally is what was read and ignored so far.
func (r *Reader) Tally() *Tally { return r.names.tally }

// page is the memory for reading one resource's metrics.
type page struct {
	found   []found // of engines
	devices []found // of accelerators
	bounds  []float64
	counts  []uint64
	up      bool
	upAt    window.Instant
	process float64
	known   bool // a dialect knows the page, for other signals
	untyped bool // its metrics have lost their types
	parts   assembler
	silent  []string // targets of the request that answer, and tell no signal
}

// found is a metric that tells a signal; one that tells two is found twice.
type found struct {
	metric pmetric.Metric
	*reading
}

// Read folds all points in that the reader looks for. It keeps nothing of md.
func (r *Reader) Read(md pmetric.Metrics) {
	p := r.pages.Get().(*page)
	defer r.pages.Put(p)
	resources := md.ResourceMetrics()
	for i := range resources.Len() {
		attributes := resources.At(i).Resource().Attributes()
		p.reset()
		r.scan(p, resources.At(i).ScopeMetrics())
		r.retype(p, attributes)
		r.fold(p, attributes)
		r.inspect(p, attributes)
	}
	if len(p.silent) > 0 && !r.federated(md) {
		for _, instance := range p.silent {
			r.names.tally.ignore(NoSignals, "up", instance)
		}
	}
	clear(p.silent)
	p.silent = p.silent[:0]
	p.parts.reset()
	clear(p.found[:cap(p.found)])
	clear(p.devices[:cap(p.devices)])
}

func (p *page) reset() {
	p.found, p.devices = p.found[:0], p.devices[:0]
	p.up, p.upAt, p.process, p.known, p.untyped = true, 0, 0, false, false
	p.parts.reset()
}

// scan finds the metrics that matter.
func (r *Reader) scan(p *page, scopes pmetric.ScopeMetricsSlice) {
	r.names.mu.RLock()
	defer r.names.mu.RUnlock()
	for j := range scopes.Len() {
		metrics := scopes.At(j).Metrics()
		for k := range metrics.Len() {
			metric := metrics.At(k)
			n := r.names.lookup(metric.Name())
			switch n.meaning {
			case isElse:
				p.known = true
			case isNothing, isInfo, isCanonical:
			case isSignal:
				p.untyped = p.untyped || isUntyped(metric)
				for i := range n.readings {
					p.file(found{metric, &n.readings[i]})
				}
			case isPart:
				if isUntyped(metric) {
					p.untyped = true
					p.parts.add(metric, n)
				}
			case isUp:
				if at, value, ok := single(metric); ok {
					p.up, p.upAt = value != 0, at
				}
			case isProcessStart:
				if _, value, ok := single(metric); ok {
					p.process = value
				}
			case isCreated:
				r.names.tally.ignore(Created, metric.Name(), "")
			}
		}
	}
}

// federated tells whether metrics come from a server that has them of others. It
// says of itself that it is up, and of many who are no engines.
func (r *Reader) federated(md pmetric.Metrics) bool {
	r.names.mu.RLock()
	defer r.names.mu.RUnlock()
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if isUntyped(m) && r.names.lookup(m.Name()).meaning != isNothing {
					return true
				}
			}
		}
	}
	return false
}

// retype makes of a page without types what it was before.
func (r *Reader) retype(p *page, resource pcommon.Map) {
	if !p.untyped {
		return
	}
	all := p.found
	p.found = slices.DeleteFunc(slices.Clone(all), func(f found) bool {
		echo := isUntypedCounter(f.metric, f.Entry) && slices.ContainsFunc(all, func(o found) bool { return isTotalOf(o.metric, f.metric) })
		if echo {
			r.names.tally.ignore(Unspoken, f.metric.Name(), instanceOf(resource))
		}
		return echo
	})
	p.parts.assemble(&r.names, instanceOf(resource), func(w assembled) {
		for i := range w.readings {
			p.file(found{w.metric, &w.readings[i]})
		}
	})
	if slices.ContainsFunc(p.found, func(f found) bool { return tellsOfOthers(f.metric) }) {
		p.upAt = 0 // it is the federating server that is up
	}
}

// file puts a metric where it belongs. Who tells of accelerators need not be an
// engine.
func (p *page) file(f found) {
	if f.Entry.Dialect.Component == dialect.GPU {
		p.devices, p.known = append(p.devices, f), true
		return
	}
	p.found = append(p.found, f)
}

// single is the value of a gauge that a target has once.
func single(m pmetric.Metric) (at window.Instant, value float64, ok bool) {
	if m.Type() != pmetric.MetricTypeGauge || m.Gauge().DataPoints().Len() != 1 {
		return 0, 0, false
	}
	point := m.Gauge().DataPoints().At(0)
	if point.Flags().NoRecordedValue() {
		return 0, 0, false
	}
	return instant(point.Timestamp()), number(point), true
}

func instant(t pcommon.Timestamp) window.Instant {
	return window.Instant(t) //nolint:gosec // until the year 2262
}

func number(p pmetric.NumberDataPoint) float64 {
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return float64(p.IntValue())
	}
	return p.DoubleValue()
}

// fold folds what was found into the resource's target.
func (r *Reader) fold(p *page, resource pcommon.Map) {
	if len(p.found) == 0 && p.upAt == 0 {
		return
	}
	id, notes := r.names.target(resource)
	t, err := r.registry.Acquire(id, len(p.found) > 0)
	if err != nil {
		r.names.tally.ignore(Limit, "", instanceOf(resource))
		return
	}
	if t == nil {
		if p.up && !p.known && r.engines {
			p.silent = append(p.silent, instanceOf(resource))
		}
		return
	}
	defer t.Unlock()
	if p.process != 0 {
		t.Process(p.process)
	}
	scribe := scribe{Reader: r, page: p, target: t, resource: resource, notes: notes}
	for i := range p.found {
		scribe.metric(&p.found[i])
	}
	t.Heard(p.up, p.upAt)
}
