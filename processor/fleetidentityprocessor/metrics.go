// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetidentityprocessor

import (
	"context"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/processor/fleetidentityprocessor/internal/metadata"
)

var _ processor.Metrics = (*metricsProcessor)(nil)

// metricsProcessor learns from metrics, and stamps them.
type metricsProcessor struct {
	part
	next consumer.Metrics
}

// reading is the memory for one page.
type reading struct {
	page intake.Page
	// of is who the page is of, and model what they serve there. Of several
	// there is none.
	of             *fleet.Resident
	model          string
	several, mixed bool            // replicas, models
	unasked        intake.Stamps   // that are not added
	spoke          *fleet.Resident // the newest that used the metric's name
	canonical      canonicalPage
}

var readings = sync.Pool{New: func() any { return new(reading) }}

// ConsumeMetrics stamps metrics and passes them on.
func (p *metricsProcessor) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	r := readings.Get().(*reading)
	resources := md.ResourceMetrics()
	for i := range resources.Len() {
		p.read(resources.At(i), r)
	}
	r.page.Forget()
	readings.Put(r)
	return p.next.ConsumeMetrics(ctx, md)
}

// read stamps the metrics of one resource.
func (p *metricsProcessor) read(rm pmetric.ResourceMetrics, r *reading) {
	resource := rm.Resource().Attributes()
	if derived(rm) {
		return
	}
	p.clerk.Metrics(rm, &r.page)
	r.of, r.model, r.several, r.mixed, r.unasked = nil, "", false, false, p.unasked
	// First of all, as long as no point has attributes that we added.
	r.canonical.collect(&r.page, p.canonicals)
	for i := range r.page.Sighted {
		s := &r.page.Sighted[i]
		if c := s.Component(); c == dialect.Engine || c == dialect.GPU {
			p.points(s, r)
		}
	}
	p.resource(resource, r)
	if p.config.Points == pointsAll && r.of != nil {
		p.allPoints(rm, r)
	}
	if p.config.DropRaw {
		p.dropRaw(rm, r)
	}
	r.canonical.write(rm)
}

// derived tells whether metrics are ours: a name alone may be anyone's.
func derived(rm pmetric.ResourceMetrics) bool {
	service, ok := rm.Resource().Attributes().Get("service.name")
	return ok && service.Str() == "llmfleet" && rm.ScopeMetrics().Len() > 0 &&
		strings.HasPrefix(rm.ScopeMetrics().At(0).Scope().Name(), ourScopes)
}

// ourScopes is how the names of our components' scopes begin.
var ourScopes = strings.TrimSuffix(metadata.ScopeName, "processor/fleetidentityprocessor")

// points stamps the points of one metric, or drops them.
func (p *metricsProcessor) points(s *intake.Sighting, r *reading) {
	r.spoke = nil
	if p.drops(s) {
		removePoints(s.Metric, func(attributes pcommon.Map, recorded bool) bool { return r.point(s, attributes, recorded, true) })
		return
	}
	intake.EachPoint(s.Metric, func(attributes pcommon.Map, recorded bool) { r.point(s, attributes, recorded, false) })
}

// point notes who a point is of, and stamps it unless it is to be dropped. It
// tells whether that may be done: what is not told otherwise stays.
func (r *reading) point(s *intake.Sighting, attributes pcommon.Map, recorded, drop bool) (dropped bool) {
	entry := s.Entry(attributes)
	if entry == nil {
		return false
	}
	face, has := r.page.Face(entry, attributes, recorded)
	if face.Resident == nil {
		return drop && r.page.Accounts(entry, attributes)
	}
	model := face.Model()
	if s.Component() == dialect.Engine {
		r.meet(face.Resident, model)
		if r.spoke != face.Resident { // most metrics are of one replica
			r.spoke = face.Resident
			s.Speak(r.spoke)
		}
	}
	if !drop {
		stamp(attributes, has|r.unasked, face.Resident, model)
	}
	return drop
}

// meet notes who the page is of.
func (r *reading) meet(of *fleet.Resident, model string) {
	if r.of == nil && !r.several {
		r.of, r.model = of, model
	}
	r.several = r.several || r.of != of
	r.mixed = r.mixed || r.model != model
	if r.several {
		r.of = nil
	}
	if r.several || r.mixed {
		r.model = ""
	}
}

// resource stamps the resource, where it is of one replica alone.
func (p *metricsProcessor) resource(attributes pcommon.Map, r *reading) {
	if r.several {
		return
	}
	if r.of == nil {
		if r.of = r.page.Desk.Own(); r.of == nil {
			return
		}
		r.model = r.of.Facts()[fleet.ModelName]
	}
	stamp(attributes, intake.StampsOn(attributes)|r.unasked, r.of, r.model)
}

// allPoints stamps the points that no dialect knows, too: of a page of one
// replica, and not our own metrics.
func (*metricsProcessor) allPoints(rm pmetric.ResourceMetrics, r *reading) {
	scopes := rm.ScopeMetrics()
	for j := range scopes.Len() {
		metrics := scopes.At(j).Metrics()
		for k := range metrics.Len() {
			if strings.HasPrefix(metrics.At(k).Name(), "llmfleet.") {
				continue
			}
			intake.EachPoint(metrics.At(k), func(attributes pcommon.Map, _ bool) {
				stamp(attributes, intake.StampsOn(attributes)|r.unasked, r.of, r.model)
			})
		}
	}
}
