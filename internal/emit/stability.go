// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package emit

// Stability is what is promised of a metric's name, type, unit and labels, in
// the words of the OpenTelemetry Collector's component stability.
type Stability string

// The levels. docs/metrics.md says what each promises.
const (
	Development Stability = "development"
	Alpha       Stability = "alpha"
	Beta        Stability = "beta"
	Stable      Stability = "stable"
	Deprecated  Stability = "deprecated"
)

// Known tells whether it is one of the levels.
func (s Stability) Known() bool {
	switch s {
	case Development, Alpha, Beta, Stable, Deprecated:
		return true
	default:
		return false
	}
}

// Promised tells whether metrics of this level keep their names.
func (s Stability) Promised() bool { return s == Beta || s == Stable }
