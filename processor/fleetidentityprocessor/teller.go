// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetidentityprocessor

import (
	"context"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/internal/window"
	"github.com/llmfleet/llmfleet/processor/fleetidentityprocessor/internal/metadata"
)

// teller tells what is known: which words a replica uses, how often its variant
// changed, and which part of the platform is silent.
type teller struct {
	writer     *emit.Writer
	changes    emit.Slot
	word       emit.Slot
	components emit.Slot
	labels     []fleet.Label
}

// silent is how long a signal may go untold before it is stale.
const silent = window.MaxGap

func newTeller(c *Config, set processor.Settings, next func(context.Context, pmetric.Metrics) error) *teller {
	w := emit.NewWriter(emit.Options{
		Component: componentType,
		Switches:  c.Metrics,
		ScopeName: metadata.ScopeName,
		Version:   set.BuildInfo.Version,
		Instance:  emit.Instance(set.ID),
		Next:      next,
	})
	return &teller{
		writer:     w,
		changes:    w.Slot(emit.ReplicaVariantChanges),
		word:       w.Slot(emit.IdentitySources),
		components: w.Slot(emit.ComponentSignals),
	}
}

// tell writes what is known at the time.
func (t *teller) tell(ctx context.Context, at window.Instant, residents []*fleet.Resident, clerk *intake.Clerk) error {
	t.writer.Begin(at)
	for _, r := range residents {
		t.resident(ctx, at, r)
	}
	for c := range dialect.ComponentCount {
		t.component(ctx, at, c, clerk)
	}
	return t.writer.End(ctx)
}

// lasting are the facts that are labels of a replica's series: those that do not
// change while it lives.
var lasting = []fleet.Fact{fleet.ModelName, fleet.Role, fleet.EngineName, fleet.GPUModel}

func (t *teller) resident(ctx context.Context, at window.Instant, r *fleet.Resident) {
	facts, where := r.Facts(), r.Where()
	t.labels = t.labels[:0]
	label := func(name, value string) {
		if value != "" {
			t.labels = append(t.labels, fleet.Label{Name: name, Value: value})
		}
	}
	label(keyCluster, where.Cluster)
	label(keyNamespace, where.Namespace)
	label(keyPod, where.Pod)
	for _, f := range lasting {
		label(f.String(), facts[f])
	}
	label(emit.AttributeReplica, r.ID)
	t.writer.About(ctx, t.labels)
	t.writer.Set(t.changes, float64(r.VariantChanges()))
	own, spoke := len(t.labels), false
	word := func(dialect, alias string) {
		spoke = true
		t.labels = t.labels[:own]
		label(emit.AttributeDialect, dialect)
		label(emit.AttributeAlias, alias)
		t.writer.About(ctx, t.labels)
		t.writer.Set(t.word, 1)
	}
	r.Spoken(at.Add(-silent), func(w fleet.Word) { word(w.Dialect, w.Alias) })
	if !spoke {
		word(noDialect, "")
	}
}

// noDialect is the dialect of a replica that tells no signal.
const noDialect = "none"

// component counts the signals of one part of the platform. What it should tell
// is what the dialects that were heard of it have; where none was heard, what
// any has.
func (t *teller) component(ctx context.Context, at window.Instant, c dialect.Component, clerk *intake.Clerk) {
	states := map[string]int{"seen": 0, "stale": 0, "missing": 0}
	for _, s := range clerk.Expected(c) {
		switch last := clerk.Heard(c, s); {
		case last == 0:
			states["missing"]++
		case at.Sub(last) > silent:
			states["stale"]++
		default:
			states["seen"]++
		}
	}
	for state, n := range states {
		t.labels = append(t.labels[:0],
			fleet.Label{Name: emit.AttributeComponent, Value: c.String()},
			fleet.Label{Name: emit.AttributeState, Value: state})
		t.writer.About(ctx, t.labels)
		t.writer.Set(t.components, float64(n))
	}
}
