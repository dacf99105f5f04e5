// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/judge/outlier"
	"github.com/llmfleet/llmfleet/internal/settings"
	"github.com/llmfleet/llmfleet/internal/window"
)

// AlarmConfig is when a replica is flagged as an outlier.
type AlarmConfig struct {
	// FalseAlarmsPerWeek is the budget of onsets while nothing is wrong, of all
	// fleets, replicas and signals of this collector together.
	FalseAlarmsPerWeek float64 `mapstructure:"false_alarms_per_week"`
	// Tolerance is how many times slower than its fleet a replica may have been
	// all along.
	Tolerance float64 `mapstructure:"tolerance"`
	// Signals are the latencies that raise the alarm, beside the error ratio.
	Signals []string `mapstructure:"signals"`
	// Pane is the alarm's own clock. It is rounded up to whole intervals of the
	// processor, stretched to twice the observed scrape interval where that is
	// longer, and at most the window.
	Pane time.Duration `mapstructure:"pane"`
	// ClearAfter is how long a flagged replica has to be quiet before it is clear.
	ClearAfter time.Duration `mapstructure:"clear_after"`
	// Warmup is how long a replica is watched before it can be flagged.
	Warmup time.Duration `mapstructure:"warmup"`
	// prevent unkeyed literals
	_ struct{}
}

const keyAlarm = "alarm"

func createDefaultAlarm() *AlarmConfig {
	return &AlarmConfig{
		FalseAlarmsPerWeek: 1,
		Tolerance:          1.25,
		Signals:            []string{fleet.TTFT.String(), fleet.ITL.String()},
		Pane:               time.Minute,
		ClearAfter:         10 * time.Minute,
		Warmup:             time.Hour,
	}
}

const (
	// leastTolerance is what the change detector tolerates: less would be noise.
	leastTolerance = 1.1
	mostTolerance  = 10
	mostBudget     = 10_000
)

func (c *Config) validAlarm() error {
	a := c.Alarm
	if a == nil {
		return nil
	}
	errs := []error{
		settings.Duration("alarm.pane", a.Pane),
		settings.Duration("alarm.clear_after", a.ClearAfter),
		settings.Duration("alarm.warmup", a.Warmup),
		validLatencies("alarm.signals", a.Signals),
	}
	if !(a.FalseAlarmsPerWeek > 0 && a.FalseAlarmsPerWeek <= mostBudget) { // NaN is in no range
		errs = append(errs, fmt.Errorf("alarm.false_alarms_per_week: %v is out of range: use more than 0 and at most %d, as in 1, or `alarm: null` for no alarm",
			a.FalseAlarmsPerWeek, mostBudget))
	}
	if !(a.Tolerance >= leastTolerance && a.Tolerance <= mostTolerance) {
		errs = append(errs, fmt.Errorf("alarm.tolerance: %v is out of range: use %v to %d times slower, as in 1.25", a.Tolerance, leastTolerance, mostTolerance))
	}
	return errors.Join(errs...)
}

// options are the configuration as the alarm reads it.
func (c *AlarmConfig) options(strain func(window.Instant, *fleet.Identity) fleet.Strain) outlier.AlarmOptions {
	return outlier.AlarmOptions{
		FalseAlarmsPerWeek: c.FalseAlarmsPerWeek,
		Tolerance:          c.Tolerance,
		Signals:            parsed(c.Signals),
		ClearAfter:         c.ClearAfter,
		Warmup:             c.Warmup,
		Strain:             strain,
	}
}

// jitter is how much later than expected a scrape may come.
const jitter = 1.05

// pane is the length of the alarm's pane that ends at end, of a fleet whose
// replicas report at this interval; zero if none ends then. It is as configured,
// or as long as it has to be: twice the interval, so that each pane has news of
// everyone, and whole panes of the processor.
func (c *Config) pane(end window.Instant, interval time.Duration) time.Duration {
	pane := max(c.Alarm.Pane, time.Duration(2*float64(interval)/jitter))
	pane = (pane + c.Interval - 1) / c.Interval * c.Interval
	pane = min(pane, c.Window)
	if int64(end)%int64(pane) != 0 {
		return 0
	}
	return pane
}

// validLatencies checks a list of latency signals.
func validLatencies(key string, names []string) error {
	if len(names) == 0 {
		return fmt.Errorf("%s: there are none: use one or more, as in [ttft, itl]", key)
	}
	var errs []error
	for i, name := range names {
		if s, ok := fleet.ParseSignal(name); !ok || !s.IsLatency() {
			errs = append(errs, fmt.Errorf("%s: unknown latency signal %q: use ttft, itl, tpot, e2e or queue_time", key, name))
		}
		if slices.Contains(names[:i], name) {
			errs = append(errs, fmt.Errorf("%s: %s is there twice: remove one", key, name))
		}
	}
	return errors.Join(errs...)
}
