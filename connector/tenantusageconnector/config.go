// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantusageconnector

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/internal/settings"
	"github.com/llmfleet/llmfleet/internal/tenant"
)

// Config is the configuration of the tenant_usage connector.
type Config struct {
	// Interval is how often metrics are emitted.
	Interval time.Duration `mapstructure:"interval"`
	// Top is how many tenants of a model have series of their own.
	Top int `mapstructure:"top"`
	// Track is how many tenants of a model are followed to find those.
	Track int `mapstructure:"track"`
	// HalfLife is after how long what a tenant took counts half, when the top is
	// chosen.
	HalfLife time.Duration `mapstructure:"half_life"`
	// TTL is how long a silent tenant, or a silent model, keeps its series.
	TTL time.Duration `mapstructure:"ttl"`
	// MaxModels is how many models are told apart.
	MaxModels int `mapstructure:"max_models"`
	// MaxTiers is how many tiers of a model are told apart.
	MaxTiers int `mapstructure:"max_tiers"`
	// Tenant says who a request is of.
	Tenant TenantConfig `mapstructure:"tenant"`
	// Tier says which class of service a request asks for.
	Tier TierConfig `mapstructure:"tier"`
	// Spans are whose spans count as requests: gateway, router, engine.
	Spans []string `mapstructure:"spans"`
	// InputIncludesCached says of sources whether the input tokens that they tell
	// include those that were found in a cache.
	InputIncludesCached map[string]bool `mapstructure:"input_includes_cached"`
	// Attributes are the names of the attributes of spans that tell a field: the
	// first that says something counts.
	Attributes map[string][]string `mapstructure:"attributes"`
	// ModelAliases are other names of models, and of each the name that counts.
	ModelAliases map[string]string `mapstructure:"model_aliases"`
	// TTFT says how times to first token are counted.
	TTFT TTFTConfig `mapstructure:"ttft"`
	// Events says which log records are made.
	Events EventsConfig `mapstructure:"events"`
	// Metrics turns single metrics on or off.
	Metrics emit.Switches `mapstructure:"metrics"`
	// prevent unkeyed literals
	_ struct{}
}

// TenantConfig says who a request is of.
type TenantConfig struct {
	// From are attributes of spans, or of their resources, that name the tenant:
	// the first that says something counts.
	From []string `mapstructure:"from"`
	// ID is what becomes of the name: hash, map or plain.
	ID string `mapstructure:"id"`
	// KeyEnv is the environment variable that holds the key of the hash.
	KeyEnv string `mapstructure:"key_env"`
	// KeyFile is the file that holds the key of the hash.
	KeyFile string `mapstructure:"key_file"`
	// MapFile is a YAML file of tenants as spans name them, and of each the name
	// that it goes by.
	MapFile string `mapstructure:"map_file"`
	// prevent unkeyed literals
	_ struct{}
}

// TierConfig says which class of service a request asks for.
type TierConfig struct {
	// From are attributes, as those of tenants.
	From []string `mapstructure:"from"`
	// prevent unkeyed literals
	_ struct{}
}

// TTFTConfig says how times to first token are counted.
type TTFTConfig struct {
	// Bounds are the upper bounds of buckets, in seconds.
	Bounds []float64 `mapstructure:"bounds"`
	// Exponential makes the metrics exponential histograms instead.
	Exponential bool `mapstructure:"exponential"`
	// prevent unkeyed literals
	_ struct{}
}

// EventsConfig says which log records are made.
type EventsConfig struct {
	// Window is the time that one record of a tenant tells of.
	Window time.Duration `mapstructure:"window"`
	// MaxTenants is how many tenants of a window are kept until its end.
	MaxTenants int `mapstructure:"max_tenants"`
	// EachRequest makes a record of each request as well.
	EachRequest bool `mapstructure:"each_request"`
	// prevent unkeyed literals
	_ struct{}
}

var (
	_ component.Config    = (*Config)(nil)
	_ confmap.Unmarshaler = (*Config)(nil)
)

// What becomes of a tenant's name.
const (
	idHash  = "hash"
	idPlain = "plain"
	idMap   = "map"
)

const (
	defaultInterval   = 30 * time.Second
	defaultTop        = 20
	defaultTrack      = 512
	defaultHalfLife   = 10 * time.Minute
	defaultTTL        = time.Hour
	defaultMaxModels  = 32
	defaultMaxTiers   = 16
	defaultWindow     = time.Minute
	defaultMaxTenants = 20_000
)

// windowsWaiting is how many windows that ended are kept for a next component that
// takes its time, the one that it is being given included.
const windowsWaiting = 3

func createDefaultConfig() component.Config {
	return &Config{
		Interval:  defaultInterval,
		Top:       defaultTop,
		Track:     defaultTrack,
		HalfLife:  defaultHalfLife,
		TTL:       defaultTTL,
		MaxModels: defaultMaxModels,
		MaxTiers:  defaultMaxTiers,
		Tenant:    TenantConfig{From: intake.DefaultTenantAttributes(), ID: idHash},
		Tier:      TierConfig{From: intake.DefaultTierAttributes()},
		Spans:     defaultSpans(),
		TTFT:      TTFTConfig{Bounds: slices.Clone(tenant.DefaultBounds)},
		Events:    EventsConfig{Window: defaultWindow, MaxTenants: defaultMaxTenants},
	}
}

// Unmarshal refuses unknown keys.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return settings.Unmarshal(conf, c) }

func defaultSpans() (names []string) {
	for _, class := range intake.DefaultRequestClasses() {
		names = append(names, class.String())
	}
	return names
}

func (c *Config) requestOptions() intake.RequestOptions {
	o := intake.RequestOptions{
		Tenants: c.Tenant.From, Tiers: c.Tier.From, Attributes: c.Attributes,
		IncludesCached: c.InputIncludesCached, Aliases: c.ModelAliases,
	}
	for _, name := range c.Spans {
		if class, ok := intake.RequestClassOf(name); ok {
			o.Classes = append(o.Classes, class)
		}
	}
	return o
}

func (c *Config) ledgerOptions() tenant.LedgerOptions {
	return tenant.LedgerOptions{
		Top: c.Top, Track: c.Track, HalfLife: c.HalfLife, TTL: c.TTL, MaxModels: c.MaxModels, MaxTiers: c.MaxTiers,
		Bounds: c.TTFT.Bounds, Exponential: c.TTFT.Exponential,
	}
}

func (c *Config) journalOptions() tenant.JournalOptions {
	return tenant.JournalOptions{
		Window: c.Events.Window, MaxTenants: c.Events.MaxTenants, MaxEnded: windowsWaiting, Bounds: c.TTFT.Bounds,
	}
}
