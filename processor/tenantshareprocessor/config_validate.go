// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantshareprocessor

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/settings"
)

// Bounds of what can be set.
const (
	longestPane     = 10 * time.Minute // a longer one tells of a burst when it is over
	maxPanes        = 720              // of a window: each tenant keeps every pane
	leastHalfLife   = 5                // in panes: fewer make no line
	longestHalfLife = 24 * time.Hour
	mostTop         = 1_000
	mostReplicas    = 1_000_000
	mostTenants     = 100_000
	mostFleets      = 10_000
)

// taken are attributes that derived points have for another purpose.
var taken = []string{emit.AttributeTenant, emit.AttributeDirection, emit.AttributeReplica, "instance", "job", "le"}

// Validate reports every setting that cannot work, by its key and with a remedy.
func (c *Config) Validate() error {
	return errors.Join(
		c.validTimes(),
		within("top", c.Top, mostTop),
		within("max_replicas", c.MaxReplicas, mostReplicas),
		within("max_tenants", c.MaxTenants, mostTenants),
		within("max_fleets", c.MaxFleets, mostFleets),
		c.validVerdict(),
		settings.GroupBy(c.GroupBy, taken),
		c.validDialects(),
		settings.Aliases("model_aliases", c.ModelAliases),
		c.Metrics.Validate(componentType),
	)
}

func within(key string, n, most int) error {
	if n < 1 || n > most {
		return fmt.Errorf("%s: %d is out of range: use 1 to %d", key, n, most)
	}
	return nil
}

func (c *Config) validTimes() error {
	errs := []error{settings.Duration("pane", c.Pane), settings.Duration("lateness", c.Lateness), settings.Window("window", c.Window, "pane", c.Pane, maxPanes), c.validHalfLife()}
	if c.Pane > longestPane {
		errs = append(errs, fmt.Errorf("pane: %s is too long: use at most %q", c.Pane, longestPane.String()))
	}
	if c.Pane >= time.Second && c.Lateness > c.Pane {
		errs = append(errs, fmt.Errorf("lateness: %s is longer than pane (%s): use at most the pane", c.Lateness, c.Pane))
	}
	if c.DepartedAfter != nil {
		errs = append(errs, settings.Duration("departed_after", *c.DepartedAfter))
	}
	return errors.Join(errs...)
}

func (c *Config) validHalfLife() error {
	if err := settings.Duration("half_life", c.HalfLife); err != nil || c.Pane < time.Second {
		return err
	}
	if least := min(leastHalfLife*c.Pane, longestHalfLife); c.HalfLife < least || c.HalfLife > longestHalfLife {
		return fmt.Errorf("half_life: %s is out of range: use %q (%d panes) to %q", c.HalfLife, least.String(), leastHalfLife, longestHalfLife.String())
	}
	return nil
}

// validVerdict holds that what calls a tenant noisy is something, and can be
// reached.
func (c *Config) validVerdict() error {
	var errs []error
	if !(c.MinScore >= 1 && c.MinScore <= 100) { // NaN is in no range
		errs = append(errs, fmt.Errorf("min_score: %v is out of range: use 1 to 100, as in 5", c.MinScore))
	}
	if !(c.MinExcess >= 0.01 && c.MinExcess <= 10) {
		errs = append(errs, fmt.Errorf("min_excess: %v is out of range: use 0.01 to 10 times the usual latency, as in 0.1", c.MinExcess))
	}
	if c.Panes < 1 || c.Panes > 60 {
		errs = append(errs, fmt.Errorf("panes: %d is out of range: use 1 to 60", c.Panes))
	}
	return errors.Join(errs...)
}

// validDialects holds that the dialects can be read, and that those are known
// that sources and tenant_labels name.
func (c *Config) validDialects() error {
	known, err := c.Dialects.Load()
	if err != nil {
		return err
	}
	var errs []error
	for i, name := range c.Sources {
		if slices.Contains(c.Sources[:i], name) {
			errs = append(errs, fmt.Errorf("sources: %s is there twice: remove one", name))
		}
		errs = append(errs, knownDialect("sources", name, known))
	}
	for _, name := range slices.Sorted(maps.Keys(c.TenantLabels)) {
		errs = append(errs, knownDialect("tenant_labels", name, known))
		if labels := c.TenantLabels[name]; len(labels) == 0 || slices.Contains(labels, "") {
			errs = append(errs, fmt.Errorf("tenant_labels.%s: a name is missing: use the labels that name tenants, as in [team]", name))
		}
	}
	return errors.Join(errs...)
}

func knownDialect(key, name string, known *dialect.Set) error {
	var names []string
	for _, d := range known.Dialects() {
		if d.Name == name {
			return nil
		}
		names = append(names, d.Name)
	}
	return fmt.Errorf("%s: there is no dialect %q: use one of %s, or add it under dialects", key, name, strings.Join(names, ", "))
}
