// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	"github.com/llmfleet/llmfleet/internal/window"
)

// Event is an event of Kubernetes about a pod, of core/v1 or of events.k8s.io/v1:
// what of it tells a start. Times are 0 where the object has null.
type Event struct {
	// Pod is the uid of the object that the event is about.
	Pod string
	// FieldPath names the container: spec.containers{engine},
	// spec.initContainers{fetch}.
	FieldPath string
	Reason    string // core/v1 reason, events.k8s.io/v1 reason
	Message   string // message, note
	// Component is reportingComponent, else source.component; Host is
	// source.host, else reportingInstance.
	Component, Host string
	// First, Last and Count are those of core/v1 (deprecated in events.k8s.io/v1).
	First, Last window.Instant
	Count       int
	// Time is eventTime; SeriesCount and SeriesLast are the series.
	Time        window.Instant
	SeriesCount int
	SeriesLast  window.Instant
	// Created is the event's own creationTimestamp.
	Created window.Instant
	// Learned as in Fact.
	Learned window.Instant
	// Pod's node, if who delivers the event knows it.
	Node string
}

// Began is when what the event tells happened first: eventTime, else
// firstTimestamp, else lastTimestamp, else the event's creation; 0 if it tells
// none. Grain is a second unless it is eventTime that has been told.
func (e *Event) Began() (at window.Instant, grain time.Duration) {
	switch {
	case e.Time != 0:
		return e.Time, 0
	case e.First != 0:
		return e.First, time.Second
	case e.Last != 0:
		return e.Last, time.Second
	}
	return e.Created, time.Second
}
