// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canarydeltaprocessor

import (
	"context"

	"go.opentelemetry.io/collector/consumer"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/judge/canary"
	"github.com/llmfleet/llmfleet/internal/window"
	"github.com/llmfleet/llmfleet/processor/canarydeltaprocessor/internal/metadata"
)

// reason is why a figure is not given. The first reasons are the judgement's.
type reason uint8

// The reasons that are no canary.Withheld.
const (
	fleetLimit  = reason(canary.WithheldCount) + iota // there are as many fleets as may be
	reasonCount                                       // how many reasons there are; not a reason
)

// String is the reason's name as it stands in self-telemetry.
func (r reason) String() string {
	if r == fleetLimit {
		return "limit"
	}
	return canary.Withheld(r).String()
}

// ofTheWhole are the reasons that are told of the overall verdict alone.
const ofTheWhole = 1<<canary.Promoted | 1<<canary.NoTraffic | 1<<canary.NoBaseline | 1<<canary.BurnIn | 1<<canary.ColdCache |
	1<<canary.TrafficMix | 1<<canary.FewReplicas

// families are the metrics of measures whose values have one unit.
var families = [canary.FamilyCount]*emit.CanaryFamily{
	canary.Latency: &emit.CanaryLatency,
	canary.Share:   &emit.CanaryShare,
	canary.Length:  &emit.CanaryLength,
	canary.Rate:    &emit.CanaryRate,
	canary.Quality: &emit.CanaryQuality,
}

// reportWriter writes reports as metrics. Its slots are those of one comparison,
// of one measure of it, and of one statistic of that: engines name reasons for
// which requests end, so statistics are not known beforehand.
type reportWriter struct {
	writer *emit.Writer
	// of a comparison
	replicas, age [canary.ArmCount]emit.Slot
	others        emit.Slot // replicas of neither arm
	duration      emit.Slot
	// of a measure
	verdict      [canary.VerdictCount]emit.Slot
	reason       [canary.ReasonCount]emit.Slot
	driver       emit.Slot
	evidence     [canary.VerdictCount]emit.Slot // none of Inconclusive
	observations [canary.ArmCount]emit.Slot
	boundary     [canary.FamilyCount]emit.Slot
	// of a statistic
	values           [canary.FamilyCount][canary.ArmCount]emit.Slot
	delta            [canary.FamilyCount]emit.Slot
	ratio, low, high emit.Slot

	labels   []fleet.Label
	withheld [reasonCount]uint64 // figures so far
}

func newReportWriter(c *Config, version, instance string, next consumer.Metrics) *reportWriter {
	w := emit.NewWriter(emit.Options{
		Component: componentType,
		Switches:  c.Metrics,
		ScopeName: metadata.ScopeName,
		Version:   version,
		Instance:  instance,
		Next:      next.ConsumeMetrics,
	})
	r := &reportWriter{
		writer: w, duration: w.Slot(emit.CanaryDuration), driver: w.Slot(emit.CanaryDriver),
		ratio: w.Slot(emit.CanaryRatio), low: w.Slot(emit.CanaryLowRatio), high: w.Slot(emit.CanaryHighRatio),
	}
	for a := range canary.ArmCount {
		arm := fleet.Label{Name: emit.AttributeArm, Value: a.String()}
		r.replicas[a], r.age[a] = w.Slot(emit.CanaryReplicas, arm), w.Slot(emit.CanaryAge, arm)
		r.observations[a] = w.Slot(emit.CanaryObservations, arm)
	}
	r.others = w.Slot(emit.CanaryReplicas, fleet.Label{Name: emit.AttributeArm, Value: "other"})
	for v := range canary.VerdictCount {
		verdict := fleet.Label{Name: emit.AttributeVerdict, Value: v.String()}
		r.verdict[v], r.evidence[v] = w.Slot(emit.CanaryVerdict, verdict), emit.None
		if v != canary.Inconclusive {
			r.evidence[v] = w.Slot(emit.CanaryEvidence, verdict)
		}
	}
	for why := range canary.ReasonCount {
		r.reason[why] = w.Slot(emit.CanaryReason, fleet.Label{Name: emit.AttributeReason, Value: why.String()})
	}
	for i, f := range families {
		r.values[i] = [canary.ArmCount]emit.Slot{canary.Canary: w.Slot(f.Value), canary.Baseline: w.Slot(f.BaselineValue)}
		r.delta[i], r.boundary[i] = w.Slot(f.Delta), emit.None
		if f.Boundary != "" {
			r.boundary[i] = w.Slot(f.Boundary)
		}
	}
	return r
}

func (w *reportWriter) begin(at window.Instant) { w.writer.Begin(at) }

func (w *reportWriter) end(ctx context.Context) error { return w.writer.End(ctx) }

// write writes the report on the canary of the fleet that has these keys: in one
// piece, so that whoever reads a verdict has its numbers beside it.
func (w *reportWriter) write(ctx context.Context, keys []fleet.Label, r *canary.Report) {
	w.writer.Flush(ctx)
	w.labels = append(append(w.labels[:0], keys...),
		fleet.Label{Name: emit.AttributeCanary, Value: r.Of[canary.Canary]},
		fleet.Label{Name: emit.AttributeBaseline, Value: r.Of[canary.Baseline]})
	w.writer.About(ctx, w.labels)
	for a := range canary.ArmCount {
		w.writer.Set(w.replicas[a], float64(r.Replicas[a]))
		w.set(w.age[a], r.Age[a])
	}
	w.writer.Set(w.others, float64(r.Others))
	w.writer.Set(w.duration, r.For.Seconds())

	w.about(ctx, emit.AttributeMeasure, canary.Overall, func() {
		w.writeVerdict(r.Verdict, r.Reasons, 0)
	})
	for i := range r.Measures {
		m := &r.Measures[i]
		w.about(ctx, emit.AttributeMeasure, m.Name, func() {
			w.writeVerdict(m.Verdict, m.Reasons, ofTheWhole)
			if m.Watched {
				w.writer.Set(w.driver, flag(r.Driver == i))
			}
			w.writeMeasure(m)
			for k := range m.Statistics {
				s := &m.Statistics[k]
				w.about(ctx, emit.AttributeStatistic, s.Name, func() { w.writeStatistic(m.Family, s) })
			}
		})
	}
}

// about has write write of what one label more tells apart.
func (w *reportWriter) about(ctx context.Context, name, value string, write func()) {
	w.labels = append(w.labels, fleet.Label{Name: name, Value: value})
	w.writer.About(ctx, w.labels)
	write()
	w.labels = w.labels[:len(w.labels)-1]
}

// writeVerdict writes a verdict and what is to be known of it, some reasons left
// out.
func (w *reportWriter) writeVerdict(verdict canary.Verdict, reasons, without canary.Reasons) {
	for v, slot := range w.verdict {
		w.writer.Set(slot, flag(canary.Verdict(v) == verdict))
	}
	for i, slot := range w.reason {
		if why := canary.Reason(i); !without.Has(why) {
			w.writer.Set(slot, flag(reasons.Has(why)))
		}
	}
}

func (w *reportWriter) writeMeasure(m *canary.MeasureReport) {
	for v, slot := range w.evidence {
		w.writer.Set(slot, m.Evidence[v])
	}
	for a, slot := range w.observations {
		w.writer.Set(slot, float64(m.Observations[a]))
	}
	w.set(w.boundary[m.Family], m.Boundary)
}

func (w *reportWriter) writeStatistic(f canary.Family, s *canary.Statistic) {
	for a, slot := range w.values[f] {
		w.set(slot, s.Values[a])
	}
	w.set(w.delta[f], s.Delta)
	w.set(w.ratio, s.Ratio)
	w.set(w.low, s.Low)
	w.set(w.high, s.High)
}

// set writes a figure, or counts why not.
func (w *reportWriter) set(s emit.Slot, f canary.Figure) {
	switch {
	case s == emit.None:
	case f.Withheld != canary.Given:
		w.withheld[f.Withheld]++
	default:
		w.writer.Set(s, f.Value)
	}
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
