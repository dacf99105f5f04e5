// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleeteventsconnector

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/llmfleet/llmfleet/internal/settings"
)

// Config is the configuration of the fleet_events connector.
type Config struct {
	// Storage is the extension that keeps over a restart which flags are on and
	// which verdicts are given, so that these are not told again. Unset: nothing is
	// kept.
	Storage *component.ID `mapstructure:"storage"`
	// MaxSeries bounds how many flagged replicas, nodes and tenants and compared
	// canaries are followed, and of how many replicas the variant.
	MaxSeries int `mapstructure:"max_series"`
	// ForgetAfter is how long something is followed of which nothing is heard.
	ForgetAfter time.Duration `mapstructure:"forget_after"`
	// prevent unkeyed literals
	_ struct{}
}

var (
	_ component.Config    = (*Config)(nil)
	_ confmap.Unmarshaler = (*Config)(nil)
)

const (
	defaultMaxSeries   = 20_000 // the replicas that fleet_outlier and fleet_identity follow
	defaultForgetAfter = time.Hour
	mostSeries         = 1_000_000
)

func createDefaultConfig() component.Config {
	return &Config{MaxSeries: defaultMaxSeries, ForgetAfter: defaultForgetAfter}
}

// Unmarshal refuses unknown keys.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return settings.Unmarshal(conf, c) }

// Validate reports every setting that cannot work, by its key and with a remedy.
func (c *Config) Validate() error {
	errs := []error{settings.Duration("forget_after", c.ForgetAfter)}
	if c.MaxSeries < 1 || c.MaxSeries > mostSeries {
		errs = append(errs, fmt.Errorf("max_series: %d is out of range: use 1 to %d", c.MaxSeries, mostSeries))
	}
	return errors.Join(errs...)
}
