// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"strings"
	"sync"

	"github.com/llmfleet/llmfleet/internal/window"
)

// Word is a metric name by which a replica told a signal.
type Word struct {
	Dialect string
	Alias   string // the name, where the dialect prefers another; "" for all that it prefers
}

// maxWords bounds the words that are remembered of one resident, the newest.
const maxWords = 16

// spoken is which words a resident used, and when last.
type spoken struct {
	mu    sync.Mutex
	words []spokenWord
}

type spokenWord struct {
	Word
	last window.Instant
}

// Speak notes that the resident used a word.
func (r *Resident) Speak(w Word) {
	s, now := &r.spoken, window.Instant(r.directory.now.Load())
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest := 0
	for i := range s.words {
		if s.words[i].Word == w {
			s.words[i].last = now
			return
		}
		if s.words[i].last < s.words[oldest].last {
			oldest = i
		}
	}
	heard := spokenWord{Word{w.Dialect, strings.Clone(w.Alias)}, now}
	if len(s.words) < maxWords {
		s.words = append(s.words, heard)
	} else {
		s.words[oldest] = heard
	}
}

// Spoken calls each with every word that the resident used since the time.
func (r *Resident) Spoken(since window.Instant, each func(Word)) {
	s := &r.spoken
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.words {
		if w.last >= since {
			each(w.Word)
		}
	}
}
