// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canarydeltaprocessor

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/judge/canary"
	"github.com/llmfleet/llmfleet/internal/settings"
)

// Bounds of what can be set.
const (
	longestPane   = 10 * time.Minute // a longer one finds a bad canary when it is too late
	longestBurnIn = 24 * time.Hour
	mostReplicas  = 1_000_000
	mostFleets    = 10_000
)

// taken are attributes that derived points have for another purpose.
var taken = []string{
	emit.AttributeCanary, emit.AttributeBaseline, emit.AttributeMeasure, emit.AttributeStatistic, emit.AttributeVerdict, emit.AttributeArm,
	emit.AttributeReason, emit.AttributeReplica, "instance", "job", "le",
}

// variantLabels are the labels of a variant that are read without being named.
var variantLabels = []string{
	"model_revision", "engine_version", "config_hash", "pod-template-hash", "rollouts-pod-template-hash", "controller-revision-hash",
}

// Validate reports every setting that cannot work, by its key and with a remedy.
func (c *Config) Validate() error {
	_, dialects := c.Dialects.Load()
	return errors.Join(
		c.validTimes(),
		c.validCanary(),
		c.validWatch(),
		between("false_fail", c.FalseFail, 0.0001, 0.5, "a probability, as in 0.05"),
		between("tolerance", c.Tolerance, 1, 10, "how many times worse a canary may be, as in 1.07"),
		between("pass_tolerance", c.PassTolerance, 1.01, 10, "how many times worse a canary that passes is shown not to be, as in 1.15"),
		c.validTolerances(),
		c.validQuality(),
		c.validGroupBy(),
		within("max_replicas", c.MaxReplicas, mostReplicas),
		within("max_fleets", c.MaxFleets, mostFleets),
		dialects,
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

func between(key string, x, least, most float64, what string) error {
	if !(x >= least && x <= most) { // NaN is in no range
		return fmt.Errorf("%s: %v is out of range: use %v to %v: %s", key, x, least, most, what)
	}
	return nil
}

// validTolerances holds that every canary can get a verdict.
func (c *Config) validTolerances() error {
	if c.PassTolerance < c.Tolerance {
		return fmt.Errorf("pass_tolerance: %v is less than tolerance (%v), so that a canary in between could neither pass nor fail: use as much or more",
			c.PassTolerance, c.Tolerance)
	}
	return nil
}

func (c *Config) validTimes() error {
	errs := []error{settings.Duration("pane", c.Pane), settings.Duration("lateness", c.Lateness), settings.Duration("burn_in", c.BurnIn)}
	if c.Pane > longestPane {
		errs = append(errs, fmt.Errorf("pane: %s is too long: use at most %q", c.Pane, longestPane.String()))
	}
	if c.Pane >= time.Second && c.Lateness > c.Pane {
		errs = append(errs, fmt.Errorf("lateness: %s is longer than pane (%s): use at most the pane", c.Lateness, c.Pane))
	}
	if c.BurnIn > longestBurnIn {
		errs = append(errs, fmt.Errorf("burn_in: %s is too long: use at most %q", c.BurnIn, longestBurnIn.String()))
	}
	if c.Baseline.AgeWithin != nil {
		errs = append(errs, settings.Duration("baseline.age_within", *c.Baseline.AgeWithin))
	}
	if c.DepartedAfter != nil {
		errs = append(errs, settings.Duration("departed_after", *c.DepartedAfter))
	}
	return errors.Join(errs...)
}

// validCanary holds that the labels of a canary have names and values.
func (c *Config) validCanary() error {
	var errs []error
	for _, l := range labelsOf(c.Canary.Match) {
		if l.Name == "" || l.Value == "" {
			errs = append(errs, fmt.Errorf("canary.match: %q: %q: a name or a value is missing: use labels that only the canary's replicas have, as in {track: canary}", l.Name, l.Value))
		}
	}
	return errors.Join(errs...)
}

// labelsOf are labels in the order of their names.
func labelsOf(m map[string]string) (labels []fleet.Label) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		labels = append(labels, fleet.Label{Name: name, Value: m[name]})
	}
	return labels
}

// validGroupBy holds that the two variants of a model are in one fleet.
func (c *Config) validGroupBy() error {
	errs := []error{settings.GroupBy(c.GroupBy, taken)}
	for _, key := range c.GroupBy {
		if c.tellsVariants(key) {
			errs = append(errs, fmt.Errorf("group_by: %s tells a canary from its baseline, so they would be no fleet: remove it", key))
		}
	}
	return errors.Join(errs...)
}

// tellsVariants tells whether a key is a label that tells the canary apart, however
// it is spelled: as a label of a pod, or as Prometheus has that.
func (c *Config) tellsVariants(key string) bool {
	return slices.ContainsFunc(slices.Concat(variantLabels, slices.Collect(maps.Keys(c.Canary.Match))), func(label string) bool {
		return flat(key) == flat(label)
	})
}

// flat is a label without what stands before the name of a pod's, as Prometheus
// spells it.
func flat(label string) string {
	for _, prefix := range []string{"k8s.pod.label.", "k8s.pod.labels.", "__meta_kubernetes_pod_label_"} {
		label = strings.TrimPrefix(label, prefix)
	}
	return strings.NewReplacer(".", "_", "-", "_", "/", "_").Replace(label)
}

// validWatch holds that there is something to watch, and that it is known.
func (c *Config) validWatch() error {
	if len(c.Watch) == 0 {
		return errors.New("watch: there are no measures, so that nothing could fail: use one or more, as in [ttft, errors]")
	}
	asked := fleet.PromptLength.String()
	known := slices.DeleteFunc(append(canary.Names(), c.qualities()...), func(name string) bool { return name == asked })
	var errs []error
	for i, name := range c.Watch {
		switch {
		case name == asked:
			errs = append(errs, fmt.Errorf("watch: %s is what the canary is asked, not how it answers, and cannot fail it: remove it; that both are asked the same is always checked", name))
		case !slices.Contains(known, name):
			errs = append(errs, fmt.Errorf("watch: unknown measure %q: use some of %s, or name it under quality", name, strings.Join(known, ", ")))
		}
		if slices.Contains(c.Watch[:i], name) {
			errs = append(errs, fmt.Errorf("watch: %s is there twice: remove one", name))
		}
	}
	return errors.Join(errs...)
}

// qualities are the names of the measures of quality, in their order.
func (c *Config) qualities() []string { return slices.Sorted(maps.Keys(c.Quality)) }

func (c *Config) validQuality() error {
	var errs []error
	if len(c.Quality) > fleet.Qualities {
		errs = append(errs, fmt.Errorf("quality: %d measures are too many: use at most %d", len(c.Quality), fleet.Qualities))
	}
	reserved := append(canary.Names(), canary.Overall)
	for _, name := range c.qualities() {
		q := c.Quality[name]
		if name == "" || slices.Contains(reserved, name) {
			errs = append(errs, fmt.Errorf("quality: %q is no name for a measure: use another than %s", name, strings.Join(reserved, ", ")))
		}
		errs = append(errs, q.valid("quality."+name))
	}
	return errors.Join(errs...)
}

func (q *QualityConfig) valid(key string) error {
	var errs []error
	switch {
	case q.Metric == "":
		errs = append(errs, fmt.Errorf("%s.metric: is missing: name the metric that tells it, as in answer_score", key))
	case strings.HasPrefix(q.Metric, "llmfleet.") || strings.HasPrefix(q.Metric, "llmfleet_"):
		errs = append(errs, fmt.Errorf("%s.metric: %s is derived by llmfleet, which is not read: use the metric of whoever judges answers", key, q.Metric))
	}
	if _, known := qualityTypes[q.Type]; !known {
		errs = append(errs, fmt.Errorf("%s.type: unknown type %q: use %q or %q", key, q.Type, typeHistogram, typeGauge))
	}
	if q.Better != betterHigher && q.Better != betterLower {
		errs = append(errs, fmt.Errorf("%s.better: unknown direction %q: use %q or %q", key, q.Better, betterHigher, betterLower))
	}
	for _, l := range labelsOf(q.Attributes) {
		if l.Name == "" || l.Value == "" {
			errs = append(errs, fmt.Errorf("%s.attributes: %q: %q: a name or a value is missing: use labels that the points must have, as in {criterion: helpful}", key, l.Name, l.Value))
		}
	}
	return errors.Join(errs...)
}
