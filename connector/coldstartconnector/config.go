// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstartconnector

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/judge/coldstart"
	"github.com/llmfleet/llmfleet/internal/settings"
)

// Config is the configuration of the cold_start connector.
type Config struct {
	// Interval is how often starts that are over are looked for, and told.
	Interval time.Duration `mapstructure:"interval"`
	// Wait is how long after a replica is ready facts that come late are waited for.
	Wait time.Duration `mapstructure:"wait"`
	// TTL is how long a pod may take to be ready, and how long one that is done is
	// remembered.
	TTL time.Duration `mapstructure:"ttl"`
	// MaxAge is how long before it was first heard of a pod may have been ready for
	// its start to be told.
	MaxAge time.Duration `mapstructure:"max_age"`
	// MaxPods is how many pods are kept, those that are remembered included.
	MaxPods int `mapstructure:"max_pods"`
	// Window is the time whose starts the ratios are over.
	Window time.Duration `mapstructure:"window"`
	// MaxModels is how many models have series of their own, told apart by
	// namespace and GPU as well.
	MaxModels int `mapstructure:"max_models"`
	// ForgetAfter is how long a model of which nothing starts keeps its series.
	ForgetAfter time.Duration `mapstructure:"forget_after"`
	// Duration says how durations are counted.
	Duration DurationConfig `mapstructure:"duration"`
	// Dialects are spellings of engines beside those that are known: files, or
	// their keys inline.
	Dialects dialect.Sources `mapstructure:"dialects"`
	// Storage is the extension that keeps open starts, and which were told, over a
	// restart.
	Storage *component.ID `mapstructure:"storage"`
	// Metrics turns single metrics on or off.
	Metrics emit.Switches `mapstructure:"metrics"`
	// prevent unkeyed literals
	_ struct{}
}

// DurationConfig says how durations are counted.
type DurationConfig struct {
	// Bounds are the upper bounds of buckets, in seconds.
	Bounds []float64 `mapstructure:"bounds"`
	// Exponential makes the metrics exponential histograms instead.
	Exponential bool `mapstructure:"exponential"`
	// prevent unkeyed literals
	_ struct{}
}

var (
	_ component.Config    = (*Config)(nil)
	_ confmap.Unmarshaler = (*Config)(nil)
)

// defaultBounds reach from the seconds of a warm start to the two hours of ttl.
var defaultBounds = []float64{
	1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 420, 600, 900, 1200, 1800, 2700, 3600, 5400, 7200,
}

func createDefaultConfig() component.Config {
	return &Config{
		Interval:    10 * time.Second,
		Wait:        30 * time.Second,
		TTL:         2 * time.Hour,
		MaxAge:      10 * time.Minute,
		MaxPods:     20_000,
		Window:      time.Hour,
		MaxModels:   100,
		ForgetAfter: 24 * time.Hour,
		Duration:    DurationConfig{Bounds: slices.Clone(defaultBounds)},
	}
}

// The most that may be asked for: every bound of memory stays one.
const (
	mostPods   = 200_000
	mostModels = 1000
	mostBounds = 160
	mostTTL    = 24 * time.Hour
)

// Unmarshal refuses unknown keys.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return settings.Unmarshal(conf, c) }

// Validate reports every setting that cannot work, by its key and with a remedy.
func (c *Config) Validate() error {
	_, dialects := c.Dialects.Load()
	errs := []error{
		settings.Duration("interval", c.Interval),
		settings.Duration("wait", c.Wait),
		settings.Duration("ttl", c.TTL),
		settings.Duration("max_age", c.MaxAge),
		settings.Duration("window", c.Window),
		settings.Duration("forget_after", c.ForgetAfter),
		inRange("max_pods", c.MaxPods, mostPods),
		inRange("max_models", c.MaxModels, mostModels),
		c.Duration.validate(),
		dialects,
		c.Metrics.Validate(componentType),
	}
	if c.TTL > mostTTL {
		errs = append(errs, fmt.Errorf("ttl: %s is too long, a start that never ends would be told after it: use at most %q", c.TTL, mostTTL))
	}
	if c.Wait >= time.Second && c.TTL >= time.Second && c.Wait >= c.TTL {
		errs = append(errs, fmt.Errorf("wait: %s is not shorter than ttl (%s): use at most %q", c.Wait, c.TTL, c.TTL/2))
	}
	if c.Interval >= time.Second && c.Window >= time.Second && c.Window < c.Interval {
		errs = append(errs, fmt.Errorf("window: %s is shorter than interval (%s): use at least %q", c.Window, c.Interval, c.Interval))
	}
	if c.ForgetAfter >= time.Second && c.ForgetAfter < c.Window {
		errs = append(errs, fmt.Errorf("forget_after: %s is shorter than window (%s): use at least %q", c.ForgetAfter, c.Window, c.Window))
	}
	return errors.Join(errs...)
}

func inRange(key string, n, most int) error {
	if n < 1 || n > most {
		return fmt.Errorf("%s: %d is out of range: use 1 to %d", key, n, most)
	}
	return nil
}

func (c *DurationConfig) validate() error {
	if len(c.Bounds) == 0 || len(c.Bounds) > mostBounds {
		return fmt.Errorf("duration.bounds: there are %d: use 1 to %d upper bounds of buckets, in seconds", len(c.Bounds), mostBounds)
	}
	last := 0.0
	for _, bound := range c.Bounds {
		if !(bound > last) || math.IsInf(bound, 1) { // NaN fails the first
			return fmt.Errorf("duration.bounds: %v does not follow %v: use numbers of seconds above 0 that ascend", bound, last)
		}
		last = bound
	}
	return nil
}

func (c *Config) bookOptions() coldstart.Options {
	return coldstart.Options{MaxPods: c.MaxPods, TTL: c.TTL, Grace: c.Wait, MaxAge: c.MaxAge}
}
