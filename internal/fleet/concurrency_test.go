// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/llmfleet/llmfleet/internal/window"
)

// Pages arrive while panes are judged: nothing is lost and nothing counted
// twice. The race detector watches.
func TestPagesArriveWhilePanesAreJudged(t *testing.T) {
	const (
		senders = 8
		pages   = 300
		each    = 3 // first tokens a page
	)
	// A page a nanosecond: the pace says nothing about departure.
	tl := newTimeline(func(o *Options) { o.DepartedAfter = length })
	var reading sync.WaitGroup
	for sender := range ID(senders) {
		reading.Go(func() {
			for page := range pages {
				// Two senders tell of one replica, by two targets and as two ranks.
				s := tl.scrape(sender, fmt.Sprint(sender/2))
				s.spelling.Rank = sender
				s.total(after(1)+window.Instant(page), uint64(each*(page+1)))
				if page%7 == 0 {
					s.gauge(after(1)+window.Instant(page), Waiting, 1)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { reading.Wait(); close(done) }()
	for judged := false; !judged; {
		select {
		case <-done:
			judged = true
		default:
		}
		tl.registry.Close(noon, Ask{Signals: []Signal{TTFT}}, func(f *Frame) { viewOf(f) })
		tl.registry.Members()
	}

	v := tl.run(30)[30]
	assert.Len(t, v.members, senders/2)
	assert.Equal(t, uint64(senders*each*(pages-1)), v.pool, "all but each sender's first page, its baseline")
	assert.Equal(t, int64(2*senders), tl.registry.seriesCount.Load())
}

// Targets appear and are forgotten at the same time: whoever holds one, holds
// one that is in the registry.
func TestTargetsAppearWhileOthersAreForgotten(t *testing.T) {
	tl := newTimeline()
	var arriving sync.WaitGroup
	for range 4 {
		arriving.Go(func() {
			for n := range ID(500) {
				target, err := tl.registry.Acquire(n%50, true)
				if err != nil {
					t.Error(err)
					return
				}
				if target.removed {
					t.Error("a target that was forgotten is handed out")
				}
				if n%3 == 0 {
					s := tl.scrape(n%50, fmt.Sprint(n%50))
					if _, err := s.series(target, TTFT); err != nil {
						t.Error(err)
					}
				}
				target.Unlock()
			}
		})
	}
	done := make(chan struct{})
	go func() { arriving.Wait(); close(done) }()
	for judged := false; !judged; {
		select {
		case <-done:
			judged = true
		default:
		}
		tl.registry.Close(noon, Ask{Signals: []Signal{TTFT}}, func(*Frame) {})
	}
	tl.registry.Close(after(30), Ask{}, func(*Frame) {})
	assertForgotten(t, tl.registry)
}
