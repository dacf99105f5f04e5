// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"time"

	"github.com/llmfleet/llmfleet/internal/window"
)

// Accelerator is one accelerator, or one instance that it is cut into, as one
// pod holds it. Who holds it next is another Accelerator: what happened before
// was none of its business.
type Accelerator struct {
	store    *Accelerators
	holder   *holder
	held     window.Instant // since when, by the evaluation before
	presence window.Presence
	clock    *window.Gauge // nil before it is told
	xid      xidCode
	counters []counter
}

// counter is one of the counters that add up to a signal.
type counter struct {
	signal   Signal
	name     ID
	increase window.Histogram
}

// countersPerAccelerator bounds the names that are followed of one accelerator.
const countersPerAccelerator = 32

// TellsStrain tells whether the signal says how an accelerator fares in a way
// that Strain tells.
func (s Signal) TellsStrain() bool {
	switch s {
	case SMClock, XIDCode, ThrottleTime, RemappedRows, PCIeReplays, NVLinkErrors:
		return true
	default:
		return false
	}
}

// throttleResolution is the step in which throttled time is counted: counters
// are whole numbers.
const throttleResolution = time.Millisecond

// ObserveGauge folds one sample of SMClock or XIDCode in, in the signal's unit.
func (x *Accelerator) ObserveGauge(signal Signal, at window.Instant, value float64) window.Outcome {
	x.store.mu.Lock()
	defer x.store.mu.Unlock()
	if o := x.admit(at); o != window.Accepted {
		return o
	}
	if signal == XIDCode {
		return x.xid.observe(at, int(value))
	}
	g := x.store.options.Grid
	if x.clock == nil {
		clock := window.NewGauge(g)
		x.clock = &clock
	}
	return x.clock.Observe(g, at, value)
}

// ObserveCounter folds one sample of ThrottleTime, RemappedRows, PCIeReplays or
// NVLinkErrors in, in the signal's unit; the sample's counts are not read. Name
// tells the counters apart that add up to the signal.
func (x *Accelerator) ObserveCounter(signal Signal, name ID, value float64, sample window.Sample) (window.Outcome, error) {
	x.store.mu.Lock()
	defer x.store.mu.Unlock()
	if o := x.admit(sample.At); o != window.Accepted {
		return o, nil
	}
	c := x.counter(signal, name)
	if c == nil {
		return 0, ErrLimit
	}
	if signal == ThrottleTime {
		value *= float64(time.Second / throttleResolution)
	}
	counts := [1]uint64{uint64(value)}
	sample.Counts = counts[:]
	return c.increase.Observe(x.store.options.Grid, &sample), nil
}

// Suspend notes that a gauge has no value at time at: the exporter was not
// reached, or stopped telling it. An XID code stays the last one.
func (x *Accelerator) Suspend(signal Signal, at window.Instant) {
	x.store.mu.Lock()
	defer x.store.mu.Unlock()
	if signal == SMClock && x.clock != nil && x.store.horizon.Admit(at) == window.Accepted {
		x.clock.Suspend(x.store.options.Grid, at)
	}
}

// admit holds a sample's time against the last evaluation's, and notes that the
// accelerator was heard.
func (x *Accelerator) admit(at window.Instant) window.Outcome {
	o := x.store.horizon.Admit(at)
	if o == window.Accepted {
		x.presence.Hear(at, window.MaxGap)
	}
	return o
}

// counter finds or makes the counter of that name; nil without room for it.
func (x *Accelerator) counter(signal Signal, name ID) *counter {
	for i := range x.counters {
		if x.counters[i].name == name {
			return &x.counters[i]
		}
	}
	if len(x.counters) >= countersPerAccelerator {
		return nil
	}
	x.counters = append(x.counters, counter{signal, name, window.NewHistogram(x.store.options.Grid, window.Counter())})
	return &x.counters[len(x.counters)-1]
}
