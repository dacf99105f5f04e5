// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleeteventsconnector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/llmfleet/llmfleet/internal/settingstest"
)

// remedies is what a user is told of each file in testdata/config/invalid: the
// key, and what to write instead.
var remedies = map[string][]string{
	"unknown_key":               {"storag: unknown key: use one of forget_after, max_series, storage"},
	"storage_no_id":             {"storage", "the part after / should not be empty"},
	"max_series_zero":           {"max_series: 0 is out of range: use 1 to 1000000"},
	"max_series_too_many":       {"max_series: 1000001 is out of range: use 1 to 1000000"},
	"forget_after_without_unit": {`forget_after: 3.6µs is under a second; a number without a unit is read as nanoseconds: write the unit, as in "3600s"`},
	"forget_after_zero":         {"forget_after: must not be 0s: use a span of time of at least 1s"},
	"forget_after_negative":     {`forget_after: -1h0m0s is negative: use a positive span of time`},
}

func TestInvalidConfig(t *testing.T) { settingstest.Refused[*Config](t, NewFactory(), remedies) }

func TestAllErrorsAtOnce(t *testing.T) {
	err := (&Config{}).Validate()
	require.ErrorContains(t, err, "max_series")
	require.ErrorContains(t, err, "forget_after")
}

func TestEmptyBodyHasDocumentedDefaults(t *testing.T) {
	config, err := settingstest.Load[*Config](t, NewFactory(), "testdata/config/empty.yaml")
	require.NoError(t, err)
	assert.Equal(t, &Config{MaxSeries: 20_000, ForgetAfter: time.Hour}, config)
}

func TestEverySetting(t *testing.T) {
	config, err := settingstest.Load[*Config](t, NewFactory(), "testdata/config/full.yaml")
	require.NoError(t, err)
	storage := component.MustNewIDWithName("file_storage", "events")
	assert.Equal(t, &Config{Storage: &storage, MaxSeries: 500, ForgetAfter: 2 * time.Hour}, config)
}
