// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetidentityprocessor

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/internal/settings"
)

// Config is the configuration of the fleet_identity processor.
type Config struct {
	// Points says which data points get the attributes: those of signals, or all
	// of a page on which an engine speaks.
	Points string `mapstructure:"points"`
	// Stamps are the attributes that are added, each where known.
	Stamps []string `mapstructure:"stamps"`
	// Sources is where facts come from, the first that tells one counts:
	// see fleet.Sources.
	Sources []string `mapstructure:"sources"`
	// Labels are the labels and annotations of pods and nodes that tell a fact.
	Labels map[string][]string `mapstructure:"labels"`
	// Groups are lists of pod labels that together name a replica group.
	Groups [][]string `mapstructure:"groups"`
	// EndpointAttributes are span attributes in which a gateway names the
	// endpoint that it chose.
	EndpointAttributes []string `mapstructure:"endpoint_attributes"`
	// ModelAttributes are span attributes in which a gateway names the model.
	ModelAttributes []string `mapstructure:"model_attributes"`
	// ModelAliases are other names of models, and of each the name that counts.
	ModelAliases map[string]string `mapstructure:"model_aliases"`
	// Dialects are spellings of engines beside those that are known: files, or
	// their keys inline.
	Dialects dialect.Sources `mapstructure:"dialects"`
	// EmitCanonical adds each engine signal in one spelling, llmfleet.engine.*.
	EmitCanonical bool `mapstructure:"emit_canonical"`
	// DropRaw drops the engines' own metrics of these signals.
	DropRaw bool `mapstructure:"drop_raw"`
	// Interval is how often is told what is known.
	Interval time.Duration `mapstructure:"interval"`
	// ForgetAfter is how long a replica is known that is silent.
	ForgetAfter time.Duration `mapstructure:"forget_after"`
	// MaxReplicas bounds how many replicas are known.
	MaxReplicas int `mapstructure:"max_replicas"`
	// Metrics turns single metrics on or off.
	Metrics emit.Switches `mapstructure:"metrics"`
	// prevent unkeyed literals
	_ struct{}
}

var (
	_ component.Config    = (*Config)(nil)
	_ confmap.Unmarshaler = (*Config)(nil)
)

const (
	pointsOfSignals = "signals"
	pointsAll       = "all"

	defaultInterval    = 30 * time.Second
	defaultForgetAfter = time.Hour // longer than any engine takes to start
	defaultMaxReplicas = 20_000
	mostReplicas       = 1_000_000
	longestInterval    = silent / 2 // what is silent must show
)

func createDefaultConfig() component.Config {
	return &Config{
		Points:  pointsOfSignals,
		Stamps:  intake.StampNames(),
		Sources: fleet.Sources(),
		Labels: map[string][]string{
			"model_name":     {"llm-d.ai/model"},
			"role":           {"llm-d.ai/role"},
			"engine_name":    {"llm-d.ai/engine-type", "inference.networking.k8s.io/engine-type"},
			"model_revision": {"model-revision"},
			"config_hash": {
				"leaderworkerset.sigs.k8s.io/template-revision-hash", "rollouts-pod-template-hash", "pod-template-hash", "controller-revision-hash",
			},
			"gpu_model": {
				"nvidia.com/gpu.product", "gpu.nvidia.com/productName", "amd.com/gpu.product-name",
				"cloud.google.com/gke-accelerator", "karpenter.k8s.aws/instance-gpu-name",
			},
		},
		Groups: [][]string{
			{"leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/group-index"},
			{"ray.io/cluster"},
		},
		EndpointAttributes: []string{
			"x-gateway-destination-endpoint-served", "x-gateway-destination-endpoint",
			"http.response.header.x-gateway-destination-endpoint-served",
			"http.response.header.x-gateway-destination-endpoint", "http.request.header.x-gateway-destination-endpoint",
			"upstream_address", "upstream.address",
		},
		ModelAttributes: []string{"gen_ai.request.model"},
		Interval:        defaultInterval,
		ForgetAfter:     defaultForgetAfter,
		MaxReplicas:     defaultMaxReplicas,
	}
}

// Unmarshal refuses unknown keys. What is said of the labels of one fact leaves
// those of the others as they are.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return settings.Unmarshal(conf, c) }

// Validate reports every setting that cannot work, by its key and with a remedy.
func (c *Config) Validate() error {
	errs := []error{
		c.validPoints(),
		c.validStamps(),
		c.validSources(),
		c.validLabels(),
		c.validLists(),
		settings.Aliases("model_aliases", c.ModelAliases),
		settings.Duration("interval", c.Interval),
		settings.Duration("forget_after", c.ForgetAfter),
		c.Metrics.Validate(componentType),
	}
	if _, err := c.Dialects.Load(); err != nil {
		errs = append(errs, err)
	}
	if c.DropRaw && !c.EmitCanonical {
		errs = append(errs, errors.New("drop_raw: would leave no trace of the engines: set emit_canonical: true as well"))
	}
	if c.Interval > longestInterval {
		errs = append(errs, fmt.Errorf("interval: %s is too long: use at most %q", c.Interval, longestInterval.String()))
	}
	if c.Interval >= time.Second && c.ForgetAfter < 2*c.Interval && c.ForgetAfter >= time.Second {
		errs = append(errs, fmt.Errorf("forget_after: %s is shorter than two intervals (%s): use at least %q",
			c.ForgetAfter, c.Interval, (2*c.Interval).String()))
	}
	if c.MaxReplicas < 1 || c.MaxReplicas > mostReplicas {
		errs = append(errs, fmt.Errorf("max_replicas: %d is out of range: use 1 to %d", c.MaxReplicas, mostReplicas))
	}
	return errors.Join(errs...)
}

func (c *Config) validPoints() error {
	if c.Points != pointsOfSignals && c.Points != pointsAll {
		return fmt.Errorf("points: unknown choice %q: use %q or %q", c.Points, pointsOfSignals, pointsAll)
	}
	return nil
}

func (c *Config) validStamps() error {
	known := strings.Join(intake.StampNames(), ", ")
	if len(c.Stamps) == 0 {
		return errors.New("stamps: there are none, so nothing would be stamped: use one or more of " + known)
	}
	var errs []error
	for i, name := range c.Stamps {
		if _, ok := intake.ParseStamp(name); !ok {
			errs = append(errs, fmt.Errorf("stamps: %s is nothing that is stamped: use one or more of %s", name, known))
		}
		if slices.Contains(c.Stamps[:i], name) {
			errs = append(errs, fmt.Errorf("stamps: %s is there twice: remove one", name))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) validSources() error {
	known := strings.Join(fleet.Sources(), ", ")
	if len(c.Sources) == 0 {
		return errors.New("sources: there are none, so nothing would be known: use one or more of " + known)
	}
	var errs []error
	for i, name := range c.Sources {
		if fleet.OriginsOf(name) == nil {
			errs = append(errs, fmt.Errorf("sources: unknown source %q: use one or more of %s", name, known))
		}
		if slices.Contains(c.Sources[:i], name) {
			errs = append(errs, fmt.Errorf("sources: %s is there twice: remove one", name))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) validLabels() error {
	var (
		errs  []error
		known []string
	)
	for f := range fleet.FactCount {
		known = append(known, f.String())
	}
	for _, name := range slices.Sorted(maps.Keys(c.Labels)) {
		if _, ok := fleet.ParseFact(name); !ok {
			errs = append(errs, fmt.Errorf("labels: %s is nothing that labels tell: use %s", name, strings.Join(known, ", ")))
		}
		if slices.Contains(c.Labels[name], "") {
			errs = append(errs, fmt.Errorf("labels.%s: a label is empty: use the key of a pod's or node's label", name))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) validLists() error {
	var errs []error
	for i, labels := range c.Groups {
		if len(labels) == 0 || slices.Contains(labels, "") {
			errs = append(errs, fmt.Errorf("groups[%d]: names no labels, or an empty one: use the labels that together name a group", i))
		}
	}
	for key, list := range map[string][]string{"endpoint_attributes": c.EndpointAttributes, "model_attributes": c.ModelAttributes} {
		if slices.Contains(list, "") {
			errs = append(errs, fmt.Errorf("%s: one is empty: use the key of a span attribute", key))
		}
	}
	return errors.Join(errs...)
}
