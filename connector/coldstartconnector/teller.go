// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstartconnector

import (
	"context"

	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/connector/coldstartconnector/internal/metadata"
	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/judge/coldstart"
	"github.com/llmfleet/llmfleet/internal/window"
)

// teller writes the figures as metrics.
type teller struct {
	writer       *emit.Writer
	whole        emit.Slot
	stages       [stageCount]emit.Slot
	critical     [stageCount]emit.Slot
	inProgress   [stageCount]emit.Slot
	failed       [stageCount][outcomeCount]emit.Slot
	unattributed emit.Slot
	labels       []fleet.Label
}

func newTeller(c *Config, set connector.Settings, next func(context.Context, pmetric.Metrics) error) *teller {
	w := emit.NewWriter(emit.Options{
		Component: componentType,
		Switches:  c.Metrics,
		ScopeName: metadata.ScopeName,
		Version:   set.BuildInfo.Version,
		Instance:  emit.Instance(set.ID),
		Next:      next,
	})
	t := &teller{writer: w, whole: w.Slot(emit.ColdStartDuration), unattributed: w.Slot(emit.ColdStartUnattributed)}
	for _, stage := range coldstart.Stages() {
		label := fleet.Label{Name: emit.AttributeStage, Value: stage.String()}
		t.stages[stage] = w.Slot(emit.ColdStartStageDuration, label)
		t.critical[stage] = w.Slot(emit.ColdStartCritical, label)
		t.inProgress[stage] = w.Slot(emit.ColdStartInProgress, label)
		for outcome := range outcomes {
			t.failed[stage][outcome] = w.Slot(emit.ColdStartFailed, label, fleet.Label{Name: emit.AttributeOutcome, Value: outcomes[outcome]})
		}
	}
	return t
}

// tell writes the figures of all models.
func (t *teller) tell(ctx context.Context, at window.Instant, f *figures) error {
	t.writer.Begin(at)
	for key, m := range f.models {
		t.labels = key.labels(t.labels[:0])
		t.writer.AboutSince(ctx, t.labels, m.since)
		t.model(m)
		own := len(t.labels)
		for k, d := range m.kinds {
			t.labels = k.labels(t.labels[:own])
			t.writer.AboutSince(ctx, t.labels, d.since)
			t.durations(d)
		}
	}
	return t.writer.End(ctx)
}

// model writes what is told of all kinds of starts together.
func (t *teller) model(m *model) {
	var sum pane
	for i := range m.panes {
		p := &m.panes[i]
		sum.total += p.total
		for stage, critical := range p.critical {
			sum.critical[stage] += critical
		}
	}
	if sum.total > 0 {
		t.writer.Set(t.unattributed, sum.critical[coldstart.Unattributed].Seconds()/sum.total.Seconds())
	}
	for _, stage := range coldstart.Stages() {
		if sum.critical[stage] > 0 {
			t.writer.Set(t.critical[stage], sum.critical[stage].Seconds()/sum.total.Seconds())
		}
		if m.shown[stage] {
			t.writer.Set(t.inProgress[stage], float64(m.starting[stage]))
		}
		for outcome, n := range m.failed[stage] {
			if n > 0 {
				t.writer.Set(t.failed[stage][outcome], float64(n))
			}
		}
	}
}

// durations writes those of one kind of starts.
func (t *teller) durations(d *durations) {
	if d.whole != nil {
		t.writer.SetDistribution(t.whole, d.whole.distribution())
	}
	for stage, h := range d.stages {
		if h != nil {
			t.writer.SetDistribution(t.stages[stage], h.distribution())
		}
	}
}

// overflowLabel marks the series of all that have none of their own.
var overflowLabel = fleet.Label{Name: "otel.metric.overflow", Value: "true"}

func (k *modelKey) labels(to []fleet.Label) []fleet.Label {
	if k.overflow {
		return append(to, overflowLabel)
	}
	to = known(to, emit.AttributeNamespace, k.namespace)
	to = known(to, emit.AttributeModelName, k.model)
	return known(to, emit.AttributeGPUModel, k.gpu)
}

func (k *kind) labels(to []fleet.Label) []fleet.Label {
	to = known(to, emit.AttributeNodeWarm, answers[k.nodeWarm])
	to = known(to, emit.AttributeImageCached, answers[k.imageCached])
	return known(to, emit.AttributeStartClass, classes[k.class])
}

var answers = [...]string{coldstart.NotKnown: "", coldstart.Yes: "true", coldstart.No: "false"}

func known(to []fleet.Label, name, value string) []fleet.Label {
	if value == "" {
		return to
	}
	return append(to, fleet.Label{Name: name, Value: value})
}
