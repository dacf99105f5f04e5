// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"time"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// Report is one start of a replica, whole. All times are by the control plane's
// clock, as far as the clocks could be compared.
type Report struct {
	// ID is the uid of the pod, or of the leader of the replica group; the trace
	// has it as its id.
	ID string
	// Pod is who started: the leader's of a group, with the model wherever a member
	// knew it.
	Pod lifecycle.Pod
	// Root spans the start; Spans[0] is the root and parents come before children.
	Spans []Span
	// Total is the root's length, and the sum of all Spans' Critical.
	Total time.Duration
	// Unattributed is the part of Total that nothing known accounts for.
	Unattributed time.Duration
	// Overlap is what running stages beside each other saved: the sum of the
	// stages' lengths less the part of Total that they account for.
	Overlap time.Duration
	// Wasted is the time of attempts that failed, with the waiting after them.
	Wasted time.Duration
	// Attempts is how often the main container was started.
	Attempts int
	// Adjusted is the largest move of a boundary that clocks or order asked for.
	Adjusted time.Duration
	// Dominant is the stage with the most critical time.
	Dominant Stage
	// Class is how much had to be done.
	Class Class
	// NodeWarm and ImageCached are Yes if the node, all images, were there before
	// the pod.
	NodeWarm, ImageCached Answer
	// Outcome is Served, or how the start ended otherwise.
	Outcome Outcome
	// Stopped is the stage at which a start ended that did not serve.
	Stopped Stage
	// Links are the spans of other traces that tell of this start.
	Links []lifecycle.Link
}

// Span is a stage, or what stages belong to: the whole start, a pod of a group,
// an attempt.
type Span struct {
	Stage Stage
	// Parent is an index into Report.Spans, -1 for the root.
	Parent     int
	Start, End window.Instant
	// Critical is the part of the span that is on the critical path, its children
	// not included. The Critical of all spans add up to Report.Total.
	Critical time.Duration
	// Pod is the uid, Container the name of who the span is of; empty for the
	// whole replica, the whole pod.
	Pod, Container string
	// Attempt is the restart count of the container.
	Attempt int
	// Missing are the facts that would explain an unattributed span.
	Missing []lifecycle.Name
	// Failure says that the span ended in error, and why.
	Failure string
	// Adjusted is how far the span's boundaries were moved at most.
	Adjusted time.Duration
	// Reason and Message are the source's: why a pod was not schedulable, who asked
	// for the replica.
	Reason, Message string
	// Count is how often it happened, for what repeats: back-offs, failed
	// schedulings. 0 and 1 are once.
	Count int
	// Cached says that there was nothing to do.
	Cached bool

	// idle is until when it waited for another pod of its group.
	idle window.Instant
}

// Class is how much a start had to do.
type Class uint8

const (
	// ClassNotKnown: nothing told of nodes or images.
	ClassNotKnown Class = iota
	// Cold: a node was made or an image pulled.
	Cold
	// Warm: node and images were there.
	Warm
	// Hot: the compiled graphs were there as well, and the model needed no
	// download.
	Hot
)

// Answer is Yes, No or NotKnown.
type Answer uint8

// The answers.
const (
	NotKnown Answer = iota
	Yes
	No
)

// Outcome is how a start ended.
type Outcome uint8

const (
	// Served: the replica was ready.
	Served Outcome = iota
	// Gone: it was deleted or ended before it was ready.
	Gone
	// Expired: it was not ready after the time to live.
	Expired
)
