// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/judge/outlier"
	"github.com/llmfleet/llmfleet/internal/settings"
)

// Config is the configuration of the fleet_outlier processor.
type Config struct {
	// Interval is how often every fleet is judged, and the length of a pane.
	Interval time.Duration `mapstructure:"interval"`
	// Window is how far a judgement looks back. A multiple of Interval.
	Window time.Duration `mapstructure:"window"`
	// Lateness is how long after its end a pane is judged, and how far ahead of
	// the clock a sample may be. At most Interval.
	Lateness time.Duration `mapstructure:"lateness"`
	// Quantiles that are judged, each between 0 and 1.
	Quantiles []float64 `mapstructure:"quantiles"`
	// Signals that are judged: ttft, itl, tpot, e2e, queue_time.
	Signals []string `mapstructure:"signals"`
	// CompareTo is what a replica is compared to: its peers, the whole fleet, or
	// the replica in the middle.
	CompareTo string `mapstructure:"compare_to"`
	// GroupBy is the keys that make a fleet: attributes of points or resources.
	GroupBy []string `mapstructure:"group_by"`
	// MinObservations is how many observations a quantile has to stand on;
	// zero: ceil(3/(1-q)).
	MinObservations int64 `mapstructure:"min_observations"`
	// MinReplicas is how many replicas it takes to compare one.
	MinReplicas int `mapstructure:"min_replicas"`
	// DepartedAfter is how long a replica may be silent before it counts as
	// departed; unset: three times its own observed interval.
	DepartedAfter *time.Duration `mapstructure:"departed_after"`
	// MaxReplicas bounds how many replicas are followed.
	MaxReplicas int `mapstructure:"max_replicas"`
	// Alarm is when a replica is flagged as an outlier; null: never.
	Alarm *AlarmConfig `mapstructure:"alarm"`
	// Storage is the extension that keeps the alarm's evidence over a restart;
	// unset: it is gathered anew.
	Storage *component.ID `mapstructure:"storage"`
	// Overrides change some of these settings for the fleets that match.
	Overrides []Override `mapstructure:"overrides"`
	// ModelAliases are other names of models, and of each the name that counts.
	ModelAliases map[string]string `mapstructure:"model_aliases"`
	// Dialects are spellings of engines beside those that are known: files, or
	// their keys inline.
	Dialects dialect.Sources `mapstructure:"dialects"`
	// Metrics turns single derived metrics on or off.
	Metrics emit.Switches `mapstructure:"metrics"`
	// prevent unkeyed literals
	_ struct{}
}

// Override changes settings for the fleets whose keys have all the values of
// Match. The first override that matches a fleet is its only one.
type Override struct {
	// Match is values of keys of the fleet.
	Match map[string]string `mapstructure:"match"`
	// Window, CompareTo, MinObservations and MinReplicas stand for the
	// processor's own, each where set.
	Window          *time.Duration `mapstructure:"window"`
	CompareTo       string         `mapstructure:"compare_to"`
	MinObservations int64          `mapstructure:"min_observations"`
	MinReplicas     int            `mapstructure:"min_replicas"`
	// prevent unkeyed literals
	_ struct{}
}

var (
	_ component.Config    = (*Config)(nil)
	_ confmap.Unmarshaler = (*Config)(nil)
)

// Unmarshal refuses unknown keys. An alarm that is null is off.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if conf.IsSet(keyAlarm) {
		switch value := conf.Get(keyAlarm).(type) {
		case nil:
			c.Alarm = nil
			conf.Delete(keyAlarm)
		case map[string]any:
		default:
			return fmt.Errorf("alarm: %v is no section: use `alarm: null` for no alarm, or keys, as in {warmup: 30m}", value)
		}
	}
	return settings.Unmarshal(conf, c)
}

// Defaults that suit vLLM on Kubernetes, scraped every 15 s.
const (
	defaultInterval    = 30 * time.Second
	defaultWindow      = 5 * time.Minute
	defaultLateness    = 5 * time.Second // scrapes are stamped at their start, and take seconds at worst
	defaultMinReplicas = 2
	defaultMaxReplicas = 20_000

	comparePeers  = "peers"
	compareFleet  = "fleet"
	compareMedian = "median"
)

func createDefaultConfig() component.Config {
	return &Config{
		Interval:    defaultInterval,
		Window:      defaultWindow,
		Lateness:    defaultLateness,
		Quantiles:   []float64{0.5, 0.95},
		Signals:     []string{fleet.TTFT.String(), fleet.ITL.String()},
		CompareTo:   comparePeers,
		GroupBy:     []string{"cluster", "namespace", "model_name", "role", "engine_name", "gpu_model"},
		MinReplicas: defaultMinReplicas,
		MaxReplicas: defaultMaxReplicas,
		Alarm:       createDefaultAlarm(),
	}
}

var baselines = map[string]outlier.Baseline{
	comparePeers: outlier.Peers, compareFleet: outlier.WholeFleet, compareMedian: outlier.Median,
}

// mostReplicas is more than one collector can follow.
const mostReplicas = 1_000_000

// longestInterval keeps arithmetic on panes far from overflowing.
const longestInterval = time.Hour

// maxPanes bounds the memory of a window: each replica keeps every pane.
const maxPanes = 720

// taken are attributes that derived points have for another purpose.
var taken = []string{
	emit.AttributeReplica, emit.AttributeSignal, emit.AttributeQuantile, emit.AttributeState, emit.AttributeCause, "instance", "job", "le",
}

// Validate reports every setting that cannot work, by its key and with a remedy.
func (c *Config) Validate() error {
	errs := []error{
		settings.Duration("interval", c.Interval),
		settings.Duration("lateness", c.Lateness),
		c.validWindow("window", c.Window),
		validBaseline("compare_to", c.CompareTo),
		c.validQuantiles(),
		validLatencies("signals", c.Signals),
		settings.GroupBy(c.GroupBy, taken),
		c.validOverrides(),
		c.validAlarm(),
		c.Metrics.Validate(componentType),
	}
	if c.Interval >= time.Second && c.Lateness > c.Interval {
		errs = append(errs, fmt.Errorf("lateness: %s is longer than interval (%s): use at most the interval", c.Lateness, c.Interval))
	}
	errs = append(errs, validMinObservations("min_observations", c.MinObservations))
	if c.MinReplicas < 1 {
		errs = append(errs, fmt.Errorf("min_replicas: %d is too few: use 1 or more", c.MinReplicas))
	}
	if c.MaxReplicas < 1 || c.MaxReplicas > mostReplicas {
		errs = append(errs, fmt.Errorf("max_replicas: %d is out of range: use 1 to %d", c.MaxReplicas, mostReplicas))
	}
	if c.Interval > longestInterval {
		errs = append(errs, fmt.Errorf("interval: %s is too long: use at most %q", c.Interval, longestInterval.String()))
	}
	if c.DepartedAfter != nil {
		errs = append(errs, settings.Duration("departed_after", *c.DepartedAfter))
	}
	if _, err := c.Dialects.Load(); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, settings.Aliases("model_aliases", c.ModelAliases))
	return errors.Join(errs...)
}

func (c *Config) validWindow(key string, window time.Duration) error {
	return settings.Window(key, window, "interval", c.Interval, maxPanes)
}

func validMinObservations(key string, n int64) error {
	if n < 0 {
		return fmt.Errorf("%s: %d is negative: use 1 or more, or leave it out for ceil(3/(1-q))", key, n)
	}
	return nil
}

func validBaseline(key, name string) error {
	if _, ok := baselines[name]; !ok {
		return fmt.Errorf("%s: unknown baseline %q: use %q, %q or %q", key, name, comparePeers, compareFleet, compareMedian)
	}
	return nil
}

func (c *Config) validQuantiles() error {
	if len(c.Quantiles) == 0 {
		return errors.New("quantiles: there are none: use one or more, as in [0.5, 0.95]")
	}
	var errs []error
	for i, q := range c.Quantiles {
		if !(q > 0 && q < 1) { // NaN is in no range
			errs = append(errs, fmt.Errorf("quantiles: %v is not between 0 and 1: use a share, as in 0.95", q))
		}
		if slices.Contains(c.Quantiles[:i], q) {
			errs = append(errs, fmt.Errorf("quantiles: %v is there twice: remove one", q))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) validOverrides() error {
	var errs []error
	for i, o := range c.Overrides {
		at := fmt.Sprintf("overrides[%d]", i)
		if len(o.Match) == 0 {
			errs = append(errs, fmt.Errorf("%s.match: there is none: name the fleets, as in {model_name: llama}", at))
		}
		if o.Window == nil && o.CompareTo == "" && o.MinObservations == 0 && o.MinReplicas == 0 {
			errs = append(errs, fmt.Errorf("%s: changes nothing: use window, compare_to, min_observations or min_replicas", at))
		}
		for key := range o.Match {
			if !slices.Contains(c.GroupBy, key) {
				errs = append(errs, fmt.Errorf("%s.match: %s is no key of a fleet: use one of group_by (%s)",
					at, key, strings.Join(c.GroupBy, ", ")))
			}
		}
		if o.Window != nil {
			errs = append(errs, c.validWindow(at+".window", *o.Window))
		}
		if o.CompareTo != "" {
			errs = append(errs, validBaseline(at+".compare_to", o.CompareTo))
		}
		errs = append(errs, validMinObservations(at+".min_observations", o.MinObservations))
		if o.MinReplicas < 0 {
			errs = append(errs, fmt.Errorf("%s.min_replicas: %d is too few: use 1 or more", at, o.MinReplicas))
		}
	}
	return errors.Join(errs...)
}
