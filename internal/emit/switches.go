// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package emit

import (
	"fmt"
	"slices"
	"strings"
)

// Switch turns one metric on or off.
type Switch struct {
	Enabled bool `mapstructure:"enabled"`
	// prevent unkeyed literals
	_ struct{}
}

// Switches turn metrics on or off by name, as `metrics` does in every component
// of the collector.
type Switches map[string]Switch

// Of is the table of the metrics of one component.
func Of(component string) []Metric {
	return slices.DeleteFunc(slices.Clone(Metrics), func(m Metric) bool { return m.Component != component })
}

// Validate refuses names that the component does not emit.
func (s Switches) Validate(component string) error {
	var known []string
	for _, m := range Of(component) {
		known = append(known, m.Name)
	}
	for name := range s {
		if !slices.Contains(known, name) {
			return fmt.Errorf("metrics: %s emits no metric %q: use one of %s", component, name, strings.Join(known, ", "))
		}
	}
	return nil
}

// Enabled tells whether a metric is to be emitted.
func (s Switches) Enabled(m *Metric) bool {
	if chosen, ok := s[m.Name]; ok {
		return chosen.Enabled
	}
	return m.Enabled
}

// On tells whether the metric of this name is to be emitted.
func (s Switches) On(name string) bool {
	return slices.ContainsFunc(Metrics, func(m Metric) bool { return m.Name == name && s.Enabled(&m) })
}
