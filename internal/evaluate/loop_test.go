// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package evaluate

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	interval = 30 * time.Second
	lateness = 5 * time.Second
)

// midnight is when every synctest bubble begins: a multiple of the interval.
var midnight = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// evaluation is one call: which pane, and when.
type evaluation struct{ end, at time.Duration } // since midnight

// recorder is an evaluate function that remembers its calls and takes its time.
type recorder struct {
	takes time.Duration

	mu    sync.Mutex // guards calls
	calls []evaluation
}

func (r *recorder) evaluate(_ context.Context, end time.Time) {
	r.mu.Lock()
	r.calls = append(r.calls, evaluation{end.Sub(midnight), time.Since(midnight)})
	r.mu.Unlock()
	time.Sleep(r.takes)
}

// seen returns the calls so far.
func (r *recorder) seen() []evaluation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// seconds makes an evaluation of whole seconds since midnight.
func seconds(end, at int) evaluation {
	return evaluation{time.Duration(end) * time.Second, time.Duration(at) * time.Second}
}

// sleepUntil waits until a number of seconds after midnight, and for what is
// due then.
func sleepUntil(second int) {
	time.Sleep(time.Until(midnight.Add(time.Duration(second) * time.Second)))
	synctest.Wait()
}

// shutdown must succeed, as no evaluation is in its way for long.
func shutdown(t *testing.T, l *Loop) {
	t.Helper()
	assert.NoError(t, l.Shutdown(t.Context()))
}

func TestPanesAreAlignedAndLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(recorder)
		l := New(interval, lateness, r.evaluate)
		sleepUntil(17)
		l.Start()
		sleepUntil(100)
		assert.Equal(t, []evaluation{seconds(30, 35), seconds(60, 65), seconds(90, 95)}, r.seen())
		assert.Zero(t, l.Skipped())
		shutdown(t, l)
	})
}

// 7 s do not divide a minute: ends count from the Unix epoch, 946,684,800 s
// before midnight, which is 5 more than a multiple of 7.
func TestPanesAreAlignedToTheEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(recorder)
		l := New(7*time.Second, 0, r.evaluate)
		l.Start()
		sleepUntil(10)
		assert.Equal(t, []evaluation{seconds(2, 2), seconds(9, 9)}, r.seen())
		shutdown(t, l)
	})
}

func TestLatenessBeyondAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(recorder)
		l := New(interval, 70*time.Second, r.evaluate)
		l.Start()
		sleepUntil(105)
		assert.Equal(t, []evaluation{seconds(0, 70), seconds(30, 100)}, r.seen())
		assert.Zero(t, l.Skipped())
		shutdown(t, l)
		assert.Equal(t, seconds(90, 105), r.seen()[2])
		assert.Equal(t, uint64(1), l.Skipped(), "the pane that ended at 60 s")
	})
}

func TestSlowEvaluationSkipsToTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{takes: 80 * time.Second}
		l := New(interval, lateness, r.evaluate)
		sleepUntil(17)
		l.Start()
		sleepUntil(194)
		assert.Equal(t, []evaluation{seconds(30, 35), seconds(90, 115)}, r.seen())
		assert.Equal(t, uint64(1), l.Skipped(), "the pane that ended at 60 s")
		shutdown(t, l)
		assert.Equal(t, seconds(180, 195), r.seen()[2], "the one flushed when the second is done")
		assert.Equal(t, uint64(3), l.Skipped(), "and those that ended at 120 s and 150 s")
	})
}

func TestShutdownEvaluatesTheClosedPane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(recorder)
		l := New(interval, lateness, r.evaluate)
		sleepUntil(17)
		l.Start()
		sleepUntil(62)
		shutdown(t, l)
		sleepUntil(1000)
		assert.Equal(t, []evaluation{seconds(30, 35), seconds(60, 62)}, r.seen())
	})
}

func TestShutdownLeavesTheOpenPane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(recorder)
		l := New(interval, lateness, r.evaluate)
		sleepUntil(17)
		l.Start()
		sleepUntil(59)
		shutdown(t, l)
		sleepUntil(1000)
		assert.Equal(t, []evaluation{seconds(30, 35)}, r.seen())
	})
}

// One process judges the pane that ended at 30 s when it stops; the next starts before
// the lateness of that pane has passed, and does not judge it again.
func TestSuccessorLeavesThePanesOfItsPredecessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := new(recorder), new(recorder)
		l := New(interval, lateness, first.evaluate)
		l.Start()
		sleepUntil(31)
		shutdown(t, l)
		l = New(interval, lateness, second.evaluate)
		sleepUntil(32)
		l.Start()
		sleepUntil(66)
		shutdown(t, l)
		assert.Equal(t, []evaluation{seconds(0, 5), seconds(30, 31)}, first.seen())
		assert.Equal(t, []evaluation{seconds(60, 65)}, second.seen())
		assert.Zero(t, l.Skipped())
	})
}

func TestShutdownTwiceEvaluatesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(recorder)
		l := New(interval, lateness, r.evaluate)
		sleepUntil(17)
		l.Start()
		sleepUntil(31)
		shutdown(t, l)
		sleepUntil(62)
		shutdown(t, l)
		assert.Equal(t, []evaluation{seconds(30, 31)}, r.seen())
	})
}

func TestShutdownWithoutStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(recorder)
		l := New(interval, lateness, r.evaluate)
		sleepUntil(62)
		shutdown(t, l)
		l.Start()
		sleepUntil(1000)
		assert.Empty(t, r.seen(), "a loop that was shut down does not start")
	})
}

func TestStartTwiceRunsOneLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(recorder)
		l := New(interval, lateness, r.evaluate)
		sleepUntil(17)
		l.Start()
		l.Start()
		sleepUntil(40)
		assert.Equal(t, []evaluation{seconds(30, 35)}, r.seen())
		shutdown(t, l)
	})
}

// A consumer downstream hangs: Shutdown gives up at its deadline, tells the
// evaluation so, and what comes back late is not followed by another.
func TestShutdownDeadlineEndsAStuckEvaluation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cause error
		calls := 0
		l := New(interval, lateness, func(ctx context.Context, _ time.Time) {
			calls++
			<-ctx.Done()
			cause = ctx.Err()
		})
		sleepUntil(17)
		l.Start()
		sleepUntil(62)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		assert.ErrorIs(t, l.Shutdown(ctx), context.DeadlineExceeded)
		assert.Equal(t, 65*time.Second, time.Since(midnight))
		synctest.Wait()
		assert.ErrorIs(t, cause, context.Canceled)
		assert.Equal(t, 1, calls)
	})
}

func TestEvaluationOutlivesTheShutdownCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var during error
		l := New(interval, lateness, func(ctx context.Context, _ time.Time) {
			time.Sleep(10 * time.Second)
			during = ctx.Err()
		})
		sleepUntil(17)
		l.Start()
		sleepUntil(36)
		shutdown(t, l)
		assert.NoError(t, during, "not cancelled by Shutdown itself, only by its context")
		assert.Equal(t, 45*time.Second, time.Since(midnight), "Shutdown waits for it")
	})
}

// steppedLoop runs with a wall clock that is set off the timers' by offset, as
// when NTP steps it or the machine was suspended.
func steppedLoop(r *recorder, offset *atomic.Int64) *Loop {
	l := New(interval, lateness, r.evaluate)
	l.now = func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
	return l
}

func TestClockSteppedForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, offset := new(recorder), new(atomic.Int64)
		l := steppedLoop(r, offset)
		sleepUntil(17)
		l.Start()
		sleepUntil(40)
		offset.Store(int64(10 * time.Minute))
		sleepUntil(66)
		assert.Equal(t, []evaluation{seconds(30, 35), seconds(660, 65)}, r.seen())
		assert.Equal(t, uint64(20), l.Skipped(), "those that ended at 60 s to 630 s")
		sleepUntil(96)
		assert.Equal(t, seconds(690, 95), r.seen()[2])
		shutdown(t, l)
	})
}

func TestClockSteppedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, offset := new(recorder), new(atomic.Int64)
		l := steppedLoop(r, offset)
		sleepUntil(17)
		l.Start()
		sleepUntil(66)
		offset.Store(int64(-45 * time.Second))
		sleepUntil(139)
		assert.Equal(t, []evaluation{seconds(30, 35), seconds(60, 65)}, r.seen(), "no pane is judged twice")
		sleepUntil(141)
		assert.Equal(t, seconds(90, 140), r.seen()[2], "when the stepped clock shows 95 s")
		assert.Zero(t, l.Skipped())
		shutdown(t, l)
		assert.Len(t, r.seen(), 3)
	})
}

// A step back by an hour and its correction must not cost an hour of silence.
func TestClockSteppedBackAndForth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, offset := new(recorder), new(atomic.Int64)
		l := steppedLoop(r, offset)
		sleepUntil(17)
		l.Start()
		sleepUntil(40)
		offset.Store(int64(-time.Hour))
		sleepUntil(100)
		offset.Store(0)
		sleepUntil(126)
		assert.Equal(t, []evaluation{seconds(30, 35), seconds(120, 125)}, r.seen())
		assert.Equal(t, uint64(2), l.Skipped(), "those that ended at 60 s and 90 s")
		shutdown(t, l)
	})
}
