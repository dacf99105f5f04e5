// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/llmfleet/llmfleet/internal/score"
)

func TestARunSaysItsSeedAndFailsIfNothingIsMeasured(t *testing.T) {
	var out strings.Builder
	err := run(&out, score.Options{Seed: 9}, "^no such world$")
	assert.EqualError(t, err, "the card is empty")
	assert.True(t, strings.HasPrefix(out.String(), "# name value unit target pass|fail # what it stands on"), "a legend comes first")
	assert.Contains(t, out.String(), "# seed 9, fleet-days")
}

func TestTheNamesOfWorldsAreARegularExpression(t *testing.T) {
	assert.ErrorContains(t, run(new(strings.Builder), score.Options{}, "["), "missing closing ]")
}
