// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// Event is what an event about a pod tells of its start, if it tells anything.
// Node is the pod's, "" if it is not known.
func Event(e *corev1.Event, node string) (lifecycle.Fact, bool) {
	event := lifecycle.Event{
		Pod: string(e.InvolvedObject.UID), FieldPath: e.InvolvedObject.FieldPath, Reason: e.Reason, Message: e.Message,
		Component: cmp.Or(e.ReportingController, e.Source.Component), Host: cmp.Or(e.Source.Host, e.ReportingInstance),
		First: known(e.FirstTimestamp), Last: known(e.LastTimestamp), Count: int(e.Count), Created: known(e.CreationTimestamp),
		Node: node,
	}
	if !e.EventTime.IsZero() {
		event.Time = instant(e.EventTime.Time)
	}
	if e.Series != nil {
		event.SeriesCount = int(e.Series.Count)
		if !e.Series.LastObservedTime.IsZero() {
			event.SeriesLast = instant(e.Series.LastObservedTime.Time)
		}
	}
	return event.Fact()
}

// known is a time of the API; 0 where it has null.
func known(t metav1.Time) window.Instant {
	if t.IsZero() {
		return 0
	}
	return instant(t.Time)
}
