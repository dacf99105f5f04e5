// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
)

// Sense is what is made of one metric.
type Sense struct {
	Metric string
	// Told is what its points tell; there is nothing if the metric is no signal.
	Told []Told
	// Facts are what the points of an info series say.
	Facts []fleet.Facts
	// Why says why the metric is no signal, nor an info series; "" if nobody
	// knows the metric.
	Why string
}

// Known tells whether it is known what the metric is.
func (s *Sense) Known() bool { return len(s.Told) > 0 || len(s.Facts) > 0 || s.Why != "" }

// Told is one point, read as one signal.
type Told struct {
	dialect.Match
	Identity fleet.Identity
	Rank     string // what the label of ranks says
	// Value is in the signal's unit; of a histogram it is the sum, and Count
	// the number of observations.
	Value float64
	Count uint64
	// Reason is why the point is not used, 0 if it is.
	Reason   Reason
	spelling fleet.Spelling
}

// Explain says what is made of every metric, by the same reading as a Reader's
// and a Clerk's, and keeps nothing. Options without signals ask for all. Of
// several names, and of several ranks that tell the same, the first is used of
// those that one resource has.
func Explain(o Options, md pmetric.Metrics) []Sense {
	x := explainer{models: newModels(o.Aliases), replicas: replicas{groupBy: o.GroupBy, variants: newVariants(&o)}}
	x.names.derived = o.Tenants
	x.names.init(o.Dialects, func(e *dialect.Entry) bool {
		return len(o.Signals) == 0 || slices.Contains(o.Signals, e.Signal)
	}, o.GroupBy)
	x.names.mu.RLock()
	defer x.names.mu.RUnlock()
	var all []Sense
	for _, rm := range md.ResourceMetrics().All() {
		page := x.page(rm)
		hush(page)
		all = append(all, page...)
	}
	return all
}

type explainer struct {
	names    names
	models   models
	replicas replicas
}

// page reads one resource. What has lost its type is put together first.
func (x *explainer) page(rm pmetric.ResourceMetrics) (page []Sense) {
	var parts assembler
	var metrics []pmetric.Metric
	for _, sm := range rm.ScopeMetrics().All() {
		for _, metric := range sm.Metrics().All() {
			metrics = append(metrics, metric)
			if n := x.names.lookup(metric.Name()); n.meaning == isPart && isUntyped(metric) {
				parts.add(metric, n)
			}
		}
	}
	resource := rm.Resource().Attributes()
	parts.assemble(&x.names, instanceOf(resource), func(a assembled) { metrics = append(metrics, a.metric) })
	for _, metric := range metrics {
		sense := x.metric(resource, metric)
		repeats := func(m pmetric.Metric) bool { return isTotalOf(m, metric) }
		for i := range sense.Told {
			if told := &sense.Told[i]; isUntypedCounter(metric, told.Entry) && slices.ContainsFunc(metrics, repeats) {
				told.Reason = Unspoken
			}
		}
		page = append(page, sense)
	}
	return page
}

func (x *explainer) metric(resource pcommon.Map, metric pmetric.Metric) Sense {
	sense := Sense{Metric: metric.Name()}
	switch n := x.names.lookup(metric.Name()); n.meaning {
	case isSignal:
		for i := range n.readings {
			sense.Told = append(sense.Told, x.told(resource, &found{metric, &n.readings[i]})...)
		}
	case isInfo:
		if metric.Type() == pmetric.MetricTypeGauge {
			for _, point := range metric.Gauge().DataPoints().All() {
				sense.Facts = append(sense.Facts, configuration(n.info, point.Attributes()))
			}
		}
	case isPart:
		sense.Why = "part of a histogram, which is read as a whole"
	case isUp:
		sense.Why = "the scraper's word on the target"
	case isProcessStart:
		sense.Why = "since when the process runs, which tells two scrapes of one process from two processes"
	case isCreated, isCanonical, isElse, isNothing:
		sense.Why = x.why(metric.Name())
	}
	return sense
}

// why says why a metric is not read, if anybody knows.
func (x *explainer) why(metric string) string {
	if why, ok := x.names.dialects.Ignored(metric); ok {
		return why
	}
	base, ok := strings.CutSuffix(metric, "_created")
	if !ok {
		return ""
	}
	if _, ignored := x.names.dialects.Ignored(base); ignored || len(x.names.dialects.Match(base)) > 0 {
		return "when counting began"
	}
	return ""
}

// told reads the points of a metric as one signal.
func (x *explainer) told(resource pcommon.Map, f *found) (all []Told) {
	reading := Reading{Match: f.Match, Metric: f.metric}
	known := reading.points(func(attributes pcommon.Map, p Point) {
		read := point{attributes: attributes, resource: resource, entry: f.Entry, models: x.models}
		told := Told{Match: f.Match, Rank: read.told(f.Entry.Dialect.Labels.Ranks), Value: p.Number}
		switch {
		case f.Entry.Part != dialect.Whole:
		case p.Histogram != nil:
			told.Value, told.Count = p.Histogram.Sum()*f.Entry.Scale, p.Histogram.Count()
		case p.Exponential != nil:
			told.Value, told.Count = p.Exponential.Sum(), p.Exponential.Count()
		}
		told.Reason = read.refusal()
		if told.Reason == 0 {
			told.Identity, told.Reason = x.replicas.identity(&read)
			told.spelling = x.names.spelling(f, attributes)
		}
		switch {
		case told.Reason != 0:
		case !p.Recorded:
			told.Reason = Unrecorded
		case !f.Entry.InRange(p.Number):
			told.Reason = Range
		}
		all = append(all, told)
	})
	if !known {
		return []Told{{Match: f.Match, Reason: Type}}
	}
	return all
}

// hush leaves of what one resource tells the first name of each signal, and the
// first of the ranks that all tell the same.
func hush(page []Sense) {
	type speaker struct {
		replica string
		model   string
		signal  fleet.Signal
	}
	names := make(map[speaker]uint8)
	each := func(do func(speaker, *Told)) {
		for i := range page {
			for j := range page[i].Told {
				if t := &page[i].Told[j]; t.Reason == 0 {
					do(speaker{t.Identity.Replica, keys(&t.Identity), t.Entry.Signal}, t)
				}
			}
		}
	}
	each(func(s speaker, t *Told) {
		if alias, ok := names[s]; !ok || t.spelling.Alias < alias {
			names[s] = t.spelling.Alias
		}
	})
	groups := make(map[fleet.ID]fleet.ID)
	each(func(s speaker, t *Told) {
		if t.spelling.Alias != names[s] {
			t.Reason = Unspoken
			return
		}
		if group := t.spelling.Group; group != 0 {
			if choice, ok := groups[group]; ok && choice != t.spelling.Choice {
				t.Reason = Unspoken
				return
			}
			groups[group] = t.spelling.Choice
		}
	})
}

// keys are the fleet's, in one text.
func keys(id *fleet.Identity) string {
	var all []string
	for _, key := range id.Keys {
		all = append(all, key.Name+"="+key.Value)
	}
	return strings.Join(all, " ")
}
