// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package settingstest tests the configuration of a component as the collector
// reads it.
package settingstest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

// Load reads and validates the body of one configuration.
func Load[C interface{ Validate() error }](t *testing.T, factory component.Factory, file string) (C, error) {
	t.Helper()
	conf, err := confmaptest.LoadConf(file)
	require.NoError(t, err)
	config := factory.CreateDefaultConfig().(C)
	if err := conf.Unmarshal(config); err != nil {
		return config, err
	}
	return config, config.Validate()
}

// Refused holds that every file of testdata/config/invalid is refused, and what
// a user is told of each: the key, and what to write instead.
func Refused[C interface{ Validate() error }](t *testing.T, factory component.Factory, remedies map[string][]string) {
	t.Helper()
	files, err := filepath.Glob("testdata/config/invalid/*.yaml")
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		seen[name] = true
		t.Run(name, func(t *testing.T) {
			require.Contains(t, remedies, name)
			_, err := Load[C](t, factory, file)
			require.Error(t, err)
			for _, part := range remedies[name] {
				assert.ErrorContains(t, err, part)
			}
		})
	}
	for name := range remedies {
		assert.True(t, seen[name], "no file for %s", name)
	}
}
