// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// pollEvery is how often results are looked for.
const pollEvery = 500 * time.Millisecond

// Progress is how much of what is awaited there is.
type Progress uint8

// How far it can be.
const (
	Nothing  Progress = iota // no result yet
	Begun                    // results, but not all
	Complete                 // all that is awaited
)

// Wait is what is awaited and for how long.
type Wait struct {
	// First is the first result in words, for the error when there is none after
	// Patience.
	First    string
	Patience time.Duration
	// Suspense is how long after it all the others may take: they may never come.
	Suspense time.Duration
}

// Await looks until all results are there, and once more, because a page may be
// read while a result is still being written. It gives what there is after the
// suspense, and nothing (false) when ctx is done or the collector has ended.
func Await[T any](ctx context.Context, ended <-chan struct{}, w Wait, look func() (T, Progress, error)) (T, bool, error) {
	deadline := time.NewTimer(w.Patience)
	defer deadline.Stop()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	var newest, none T
	var failed error // of the newest look
	begun, complete := false, false
	for {
		select {
		case <-ctx.Done():
			return none, false, nil
		case <-ended:
			return none, false, nil
		case <-deadline.C:
			if begun {
				return newest, true, nil
			}
			return none, false, errors.Join(fmt.Errorf("there is no %s after %v: is the machine too busy?", w.First, w.Patience), failed)
		case <-poll.C:
		}
		got, progress, err := look()
		if failed = err; err != nil {
			continue // the collector is not up yet
		}
		if complete && progress == Complete {
			return got, true, nil
		}
		newest, complete = got, progress == Complete
		if !begun && progress != Nothing {
			begun = true
			deadline.Reset(w.Suspense)
		}
	}
}
