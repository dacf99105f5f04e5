// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canarydeltaprocessor

import (
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/judge/canary"
	"github.com/llmfleet/llmfleet/internal/settings"
)

// Config is the configuration of the canary_delta processor.
type Config struct {
	// Pane is how often every canary is judged, and over how long observations of
	// both arms are held against each other.
	Pane time.Duration `mapstructure:"pane"`
	// Lateness is how long after its end a pane is judged, and how far ahead of
	// the clock a sample may be. At most Pane.
	Lateness time.Duration `mapstructure:"lateness"`
	// Canary is which variant is the canary.
	Canary CanaryConfig `mapstructure:"canary"`
	// Baseline is which replicas it is compared with.
	Baseline BaselineConfig `mapstructure:"baseline"`
	// Watch names the measures that the overall verdict is over: those of engines,
	// and those under Quality.
	Watch []string `mapstructure:"watch"`
	// FalseFail is how probable it may be that a canary that is no worse than
	// Tolerance is ever failed.
	FalseFail float64 `mapstructure:"false_fail"`
	// Tolerance is how many times worse than its baseline a canary may be, and
	// PassTolerance how many times worse it is shown not to be when it passes.
	Tolerance     float64 `mapstructure:"tolerance"`
	PassTolerance float64 `mapstructure:"pass_tolerance"`
	// BurnIn is for how long at most a new replica's first requests, and a cold
	// prefix cache, are waited for.
	BurnIn time.Duration `mapstructure:"burn_in"`
	// Quality are measures of how good answers are, by the name that each is told
	// under.
	Quality map[string]QualityConfig `mapstructure:"quality"`
	// GroupBy is the keys that make a fleet: attributes of points or resources.
	GroupBy []string `mapstructure:"group_by"`
	// ModelAliases are other names of models, and of each the name that counts.
	ModelAliases map[string]string `mapstructure:"model_aliases"`
	// Dialects are spellings of engines beside those that are known: files, or
	// their keys inline.
	Dialects dialect.Sources `mapstructure:"dialects"`
	// Storage is the extension that keeps verdicts and evidence over a restart;
	// unset: the comparison begins anew.
	Storage *component.ID `mapstructure:"storage"`
	// DepartedAfter is how long a replica may be silent before it counts as
	// departed; unset: three times its own observed interval.
	DepartedAfter *time.Duration `mapstructure:"departed_after"`
	// MaxReplicas and MaxFleets bound what is followed.
	MaxReplicas int `mapstructure:"max_replicas"`
	MaxFleets   int `mapstructure:"max_fleets"`
	// Metrics turns single derived metrics on or off.
	Metrics emit.Switches `mapstructure:"metrics"`
	// prevent unkeyed literals
	_ struct{}
}

// CanaryConfig is which variant of a model is its canary.
type CanaryConfig struct {
	// Match is labels that the canary's replicas have; empty: of two variants that
	// with fewer replicas, seen later.
	Match map[string]string `mapstructure:"match"`
	// prevent unkeyed literals
	_ struct{}
}

// BaselineConfig is which replicas a canary is compared with.
type BaselineConfig struct {
	// AgeWithin: only replicas whose processes began within so long of the
	// canary's; unset: all.
	AgeWithin *time.Duration `mapstructure:"age_within"`
	// prevent unkeyed literals
	_ struct{}
}

// QualityConfig is one measure of quality: a metric that tells of variants of a
// model, by their labels, how good their answers are.
type QualityConfig struct {
	// Metric is its name.
	Metric string `mapstructure:"metric"`
	// Type is how it is told: histogram; or gauge, of which every new value is one
	// observation.
	Type string `mapstructure:"type"`
	// Better is which values are good ones: higher or lower.
	Better string `mapstructure:"better"`
	// Attributes are labels that its points must have: the name of a criterion, for
	// one.
	Attributes map[string]string `mapstructure:"attributes"`
	// prevent unkeyed literals
	_ struct{}
}

// How a measure of quality is told, and which values are good.
const (
	typeHistogram = "histogram"
	typeGauge     = "gauge"
	betterHigher  = "higher"
	betterLower   = "lower"
)

var (
	_ component.Config    = (*Config)(nil)
	_ confmap.Unmarshaler = (*Config)(nil)
)

// Unmarshal refuses unknown keys.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return settings.Unmarshal(conf, c) }

// Defaults that suit engines that are scraped every 15 or 30 s.
const (
	defaultPane        = time.Minute
	defaultLateness    = 5 * time.Second // scrapes are stamped at their start, and take seconds at worst
	defaultMaxReplicas = 20_000
)

func createDefaultConfig() component.Config {
	return &Config{
		Pane:          defaultPane,
		Lateness:      defaultLateness,
		Watch:         canary.DefaultWatch(),
		FalseFail:     canary.DefaultFalseFail,
		Tolerance:     canary.DefaultTolerance,
		PassTolerance: canary.DefaultPassTolerance,
		BurnIn:        canary.DefaultBurnIn,
		GroupBy:       []string{"cluster", "namespace", "model_name", "role", "engine_name", "gpu_model"},
		MaxReplicas:   defaultMaxReplicas,
		MaxFleets:     canary.DefaultMaxFleets,
	}
}

// options are how canaries are judged.
func (c *Config) options() canary.Options {
	o := canary.DefaultOptions(c.Pane)
	o.Match, o.Watch = labelsOf(c.Canary.Match), c.Watch
	o.FalseFail, o.Tolerance, o.PassTolerance, o.BurnIn = c.FalseFail, c.Tolerance, c.PassTolerance, c.BurnIn
	o.MaxFleets = c.MaxFleets
	if c.Baseline.AgeWithin != nil {
		o.AgeWithin = *c.Baseline.AgeWithin
	}
	for i, name := range c.qualities() {
		worse := canary.Lower
		if c.Quality[name].Better == betterLower {
			worse = canary.Higher
		}
		o.Quality = append(o.Quality, canary.QualityMeasure(name, i, worse))
	}
	return o
}
