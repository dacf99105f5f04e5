// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// ReadMetrics calls each with the facts that metrics tell: the times of
// kube-state-metrics, how long an engine's stages took, and the first token of a
// replica, as it stops to be at zero. What gauges of durations tell has no time
// (At is 0): they say how long, not when. Derived metrics are passed over. The
// fact is borrowed until each returns.
func (l *Lifecycle) ReadMetrics(md pmetric.Metrics, each func(*lifecycle.Fact)) {
	for _, rm := range md.ResourceMetrics().All() {
		page := metricPage{Lifecycle: l, resource: rm.Resource().Attributes(), each: each}
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() == podInfo {
					page.info(m)
				}
			}
		}
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				page.read(m)
			}
		}
		page.token()
	}
}

// Names of kube-state-metrics that are no signals.
const (
	podInfo     = "kube_pod_info"
	podUID      = "uid"
	rankLabel   = "tp_rank"
	phaseLabel  = "phase"
	newestClock = 1 << 33 // seconds since 1970: a time past that is none
)

// metricPage is the metrics of one resource.
type metricPage struct {
	*Lifecycle
	resource pcommon.Map
	each     func(*lifecycle.Fact)
	speaks   *narrator // nil until something is told

	zero, made window.Instant // when tokens were counted: none, some
}

func (p *metricPage) narrator() *narrator {
	if p.speaks == nil {
		p.speaks = narratorOf(p.resource)
	}
	return p.speaks
}

func (p *metricPage) read(m pmetric.Metric) {
	if isDerived(m.Name()) {
		return
	}
	for _, match := range p.dialects.Match(m.Name()) {
		switch e := match.Entry; {
		case e.Dialect.Component == dialect.Engine && (e.Signal == fleet.GenerationTokens || e.Signal == fleet.TTFT):
			p.count(m)
		case podTimes[e.Signal] != lifecycle.Unknown:
			p.time(podTimes[e.Signal], e, m)
		}
	}
	for _, phase := range p.startup.Metric(m.Name()) {
		p.phase(phase, m)
	}
}

// podTimes are the facts whose times kube-state-metrics tells.
var podTimes = map[fleet.Signal]lifecycle.Name{
	fleet.PodCreated: lifecycle.Created, fleet.PodScheduled: lifecycle.Scheduled, fleet.PodInitialized: lifecycle.Initialized,
	fleet.PodStarted: lifecycle.ContainerStarted, fleet.PodReady: lifecycle.Ready,
}

// info notes the nodes of pods, whose kubelets' clocks tell the later times.
func (p *metricPage) info(m pmetric.Metric) {
	eachNumber(m, func(point pmetric.NumberDataPoint) {
		uid, node := text(point.Attributes(), podUID), text(point.Attributes(), "node")
		if uid == "" || node == "" {
			return
		}
		p.mu.Lock()
		p.nodes.put(uid, node)
		p.mu.Unlock()
	})
}

// time reads when pods went through a stage.
func (p *metricPage) time(name lifecycle.Name, e *dialect.Entry, m pmetric.Metric) {
	eachNumber(m, func(point pmetric.NumberDataPoint) {
		v, attributes := number(point), point.Attributes()
		if !(v > 0 && v < newestClock) || !marked(e, attributes) {
			return
		}
		uid := text(attributes, podUID)
		p.mu.Lock()
		node, _ := p.nodes.get(uid)
		p.mu.Unlock()
		about := &lifecycle.Pod{Name: text(attributes, e.Dialect.Labels.Pod...), Namespace: text(attributes, e.Dialect.Labels.Namespace...), Node: node}
		f := lifecycle.Fact{Pod: uid, Name: name, At: window.Instant(v) * window.Instant(time.Second), Grain: time.Second, Attempt: -1, About: about}
		if name != lifecycle.Created && name != lifecycle.Scheduled {
			f.Clock = lifecycle.Clock{Kind: lifecycle.Node, Of: node}
		}
		if name == lifecycle.ContainerStarted {
			f.Container = text(attributes, "exported_container", "container")
		}
		p.each(&f)
	})
}

// measure is a part of a start of which it was told how long it took.
type measure struct {
	pod, metric, phase, rank string
	name                     lifecycle.Name
}

// phase reads how long a part of the engine's start took, and tells it once.
func (p *metricPage) phase(phase *dialect.Phase, m pmetric.Metric) {
	only := dialect.Entry{Only: phase.Only}
	eachNumber(m, func(point pmetric.NumberDataPoint) {
		took, attributes := duration(number(point)), point.Attributes()
		if took == 0 || !marked(&only, attributes) {
			return
		}
		s := p.narrator()
		key := measure{s.pod, strings.Clone(m.Name()), text(attributes, phaseLabel), text(attributes, rankLabel), phase.Tells}
		p.mu.Lock()
		known, _ := p.measured.get(key)
		p.measured.put(key, took)
		p.mu.Unlock()
		if known == took {
			return
		}
		f := s.own(phase.Tells, 0)
		f.Took, f.Reason, f.Copy = took, key.phase, key.rank
		p.each(&f)
	})
}

// count notes whether tokens were counted.
func (p *metricPage) count(m pmetric.Metric) {
	note := func(at pcommon.Timestamp, flags pmetric.DataPointFlags, some bool) {
		switch {
		case flags.NoRecordedValue():
		case some:
			p.made = max(p.made, instant(at))
		default:
			p.zero = max(p.zero, instant(at))
		}
	}
	eachNumber(m, func(point pmetric.NumberDataPoint) { note(point.Timestamp(), point.Flags(), number(point) > 0) })
	switch m.Type() {
	case pmetric.MetricTypeHistogram:
		for _, point := range m.Histogram().DataPoints().All() {
			note(point.Timestamp(), point.Flags(), point.Count() > 0)
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, point := range m.ExponentialHistogram().DataPoints().All() {
			note(point.Timestamp(), point.Flags(), point.Count() > 0)
		}
	default:
	}
}

// token tells that the replica has made its first token, if it was seen without
// one before: somewhere between the two times.
func (p *metricPage) token() {
	pod := textOf(p.resource, lifecycle.KeyPod)
	if pod == "" || p.zero == 0 && p.made == 0 {
		return
	}
	p.mu.Lock()
	known, _ := p.tokens.get(pod)
	zero, news := known.zero, !known.made && p.made != 0 && known.zero != 0
	switch {
	case known.made:
	case p.made != 0:
		known.made, known.first = true, p.made
		p.tokens.put(pod, known)
	default:
		known.zero = max(known.zero, p.zero)
		p.tokens.put(pod, known)
	}
	p.mu.Unlock()
	if news && p.made > zero {
		f := p.narrator().own(lifecycle.FirstToken, p.made)
		f.Clock, f.Took = lifecycle.Clock{}, p.made.Sub(zero)
		p.each(&f)
	}
}

// eachNumber calls each with the points that have a number.
func eachNumber(m pmetric.Metric, each func(pmetric.NumberDataPoint)) {
	var points pmetric.NumberDataPointSlice
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		points = m.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		points = m.Sum().DataPoints()
	default:
		return
	}
	for _, point := range points.All() {
		if !point.Flags().NoRecordedValue() {
			each(point)
		}
	}
}
