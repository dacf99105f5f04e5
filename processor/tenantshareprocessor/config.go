// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantshareprocessor

import (
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/settings"
)

// Config is the configuration of the tenant_share processor.
type Config struct {
	// Pane is how often every fleet is judged, and over how long its latency and
	// the tenants' tokens are taken together.
	Pane time.Duration `mapstructure:"pane"`
	// Window is over how long shares are told. A multiple of Pane.
	Window time.Duration `mapstructure:"window"`
	// Lateness is how long after its end a pane is judged, and how far ahead of
	// the clock a sample may be. At most Pane.
	Lateness time.Duration `mapstructure:"lateness"`
	// HalfLife is after how long what was seen counts half.
	HalfLife time.Duration `mapstructure:"half_life"`
	// Top is how many tenants of a fleet are named; the others are told together.
	Top int `mapstructure:"top"`
	// MinScore and MinExcess are what a tenant has to reach, Panes panes in a
	// row, to be called noisy.
	MinScore  float64 `mapstructure:"min_score"`
	MinExcess float64 `mapstructure:"min_excess"`
	Panes     int     `mapstructure:"panes"`
	// Sources are dialects that tell of tenants. Of those that tell of one model
	// the first counts; those that are not named come last.
	Sources []string `mapstructure:"sources"`
	// TenantLabels are the labels that name tenants, by dialect, in place of the
	// dialect's own.
	TenantLabels map[string][]string `mapstructure:"tenant_labels"`
	// GroupBy is the keys that make a fleet: attributes of points or resources.
	GroupBy []string `mapstructure:"group_by"`
	// ModelAliases are other names of models, and of each the name that counts.
	ModelAliases map[string]string `mapstructure:"model_aliases"`
	// Dialects are spellings of engines and gateways beside those that are known:
	// files, or their keys inline.
	Dialects dialect.Sources `mapstructure:"dialects"`
	// Storage is the extension that keeps what was learned over a restart; unset:
	// it is learned anew.
	Storage *component.ID `mapstructure:"storage"`
	// DepartedAfter is how long a replica or a tenant may be silent before it
	// counts as departed; unset: three times its own observed interval.
	DepartedAfter *time.Duration `mapstructure:"departed_after"`
	// MaxReplicas, MaxTenants and MaxFleets bound what is followed.
	MaxReplicas int `mapstructure:"max_replicas"`
	MaxTenants  int `mapstructure:"max_tenants"`
	MaxFleets   int `mapstructure:"max_fleets"`
	// Metrics turns single derived metrics on or off.
	Metrics emit.Switches `mapstructure:"metrics"`
	// prevent unkeyed literals
	_ struct{}
}

var (
	_ component.Config    = (*Config)(nil)
	_ confmap.Unmarshaler = (*Config)(nil)
)

// Unmarshal refuses unknown keys.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return settings.Unmarshal(conf, c) }

// Defaults that suit engines and gateways that are scraped every 15 or 30 s.
const (
	defaultPane        = time.Minute
	defaultWindow      = 3 * time.Minute // as many panes as it takes to call a tenant noisy: then its share is that of its burst
	defaultLateness    = 5 * time.Second // scrapes are stamped at their start, and take seconds at worst
	defaultHalfLife    = 30 * time.Minute
	defaultTop         = 20
	defaultMinScore    = 5
	defaultMinExcess   = 0.1
	defaultPanes       = 3
	defaultMaxReplicas = 20_000
	defaultMaxTenants  = 2_000
	defaultMaxFleets   = 256
)

func createDefaultConfig() component.Config {
	return &Config{
		Pane:        defaultPane,
		Window:      defaultWindow,
		Lateness:    defaultLateness,
		HalfLife:    defaultHalfLife,
		Top:         defaultTop,
		MinScore:    defaultMinScore,
		MinExcess:   defaultMinExcess,
		Panes:       defaultPanes,
		Sources:     []string{"tenant_usage", "epp", "genai", "litellm", "kong", "sglang"},
		GroupBy:     []string{"model_name"},
		MaxReplicas: defaultMaxReplicas,
		MaxTenants:  defaultMaxTenants,
		MaxFleets:   defaultMaxFleets,
	}
}
