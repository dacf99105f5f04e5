// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// expectation is what is told at one time.
type expectation struct {
	at      time.Duration
	only    bool // nothing else is
	figures []scenariotest.Figure
}

func readExpectations(t scenariotest.T, text string) []expectation {
	t.Helper()
	var all []expectation
	for _, block := range scenariotest.Blocks(t, text) {
		for _, at := range block.Times {
			e := expectation{at: at, figures: scenariotest.Figures(t, block.Body)}
			for _, word := range block.Words {
				require.Equal(t, "only", word)
				e.only = true
			}
			all = append(all, e)
		}
	}
	return all
}

// checkExpectation compares what was told at one time with what was expected.
func checkExpectation(t scenariotest.T, e *expectation, points []point) {
	t.Helper()
	var told []scenariotest.Point
	for _, p := range points {
		told = append(told, scenariotest.Point{Name: p.name, Labels: p.labels, Value: p.value, Ended: p.ended})
	}
	scenariotest.Check(t, e.at.String(), e.figures, e.only, told)
}

// checkTelemetry compares the counts. Reasons of `ignored` that are not listed
// must not have occurred.
func checkTelemetry(t *testing.T, expected []scenariotest.Figure, telemetry *componenttest.Telemetry) {
	t.Helper()
	if expected != nil {
		scenariotest.CheckTelemetry(t, expected, readTelemetry(t, telemetry), "ignored")
	}
}

func readTelemetry(t *testing.T, telemetry *componenttest.Telemetry) map[string]float64 {
	t.Helper()
	return scenariotest.Telemetry(t, telemetry, "otelcol_processor_fleet_outlier_")
}
