// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
	"context"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/judge/outlier"
)

// alarmSlots are the series of what the alarm says of one replica.
type alarmSlots struct {
	outlier, evidence emit.Slot
	causes            []emit.Slot // by outlier.Cause; none of NoCause
	signals           []emit.Slot // a bit of outlier.Verdict.Raised each
}

func newAlarmSlots(w *emit.Writer, c *Config) alarmSlots {
	s := alarmSlots{outlier: w.Slot(emit.ReplicaOutlier), evidence: w.Slot(emit.ReplicaOutlierEvidence)}
	for cause := outlier.NoCause + 1; cause < outlier.CauseCount; cause++ {
		s.causes = append(s.causes, w.Slot(emit.ReplicaOutlierCause, fleet.Label{Name: emit.AttributeCause, Value: cause.String()}))
	}
	if c.Alarm != nil {
		for _, signal := range append(parsed(c.Alarm.Signals), fleet.Errors) {
			s.signals = append(s.signals, w.Slot(emit.ReplicaOutlierSignal, fleet.Label{Name: emit.AttributeSignal, Value: signal.String()}))
		}
	}
	return s
}

// writeVerdict writes what the alarm says of the replica that was written last.
// Of one that was never flagged there is no cause to tell.
func (w *reportWriter) writeVerdict(v *outlier.Verdict) {
	slots := &w.replica.alarm
	w.set(slots.outlier, v.Outlier)
	w.set(slots.evidence, v.Evidence)
	if !v.Known || v.Outlier.Withheld != outlier.Given {
		return
	}
	for i, slot := range slots.causes {
		w.writer.Set(slot, flag(v.Cause == outlier.Cause(i+1)))
	}
	for i, slot := range slots.signals {
		w.writer.Set(slot, flag(v.Raised>>i&1 != 0))
	}
}

// writeNodes writes of each node on which a replica was flagged whether it is
// slow itself.
func (w *reportWriter) writeNodes(ctx context.Context, a *outlier.Alarm) {
	for node, slow := range a.Nodes() {
		w.labels = w.labels[:0]
		if node.Cluster != "" {
			w.labels = append(w.labels, fleet.Label{Name: emit.AttributeCluster, Value: node.Cluster})
		}
		w.labels = append(w.labels, fleet.Label{Name: emit.AttributeNode, Value: node.Name})
		w.writer.About(ctx, w.labels)
		w.writer.Set(w.node, flag(slow))
	}
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
