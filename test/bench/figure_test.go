// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFigureLine(t *testing.T) {
	for _, tt := range []struct {
		value float64
		line  string
		pass  bool
	}{
		{14.99, "page_us 14.99 us <=15 pass", true},
		{15, "page_us 15 us <=15 pass", true},
		{15.01, "page_us 15.01 us <=15 fail", false},
		{14_131.5, "page_us 14132 us <=15 fail", false},
		{math.NaN(), "page_us NaN us <=15 fail", false},
	} {
		f := figure{"page_us", "us", atMost(15), func(context.Context) (float64, error) { return tt.value, nil }, ""}
		line, pass, err := f.line(t.Context())
		require.NoError(t, err)
		assert.Equal(t, tt.line, line)
		assert.Equal(t, tt.pass, pass)
	}
}

func TestFigureThatHasToBeHigh(t *testing.T) {
	for value, line := range map[float64]string{
		300_000: "spans_per_s 300000 {span}/s >=300000 pass", 299_999: "spans_per_s 299999 {span}/s >=300000 fail",
	} {
		f := figure{"spans_per_s", "{span}/s", atLeast(300_000), func(context.Context) (float64, error) { return value, nil }, ""}
		got, pass, err := f.line(t.Context())
		require.NoError(t, err)
		assert.Equal(t, line, got)
		assert.Equal(t, value >= 300_000, pass)
	}
	assert.False(t, atLeast(1).met(math.NaN()))
	assert.False(t, untargeted.met(math.NaN()), "what is no number was not measured")
}

func TestFigureLineWithNote(t *testing.T) {
	f := figure{"page_us", "us", untargeted, func(context.Context) (float64, error) { return 3, nil }, "of one core"}
	line, pass, err := f.line(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "page_us 3 us - pass # of one core", line)
	assert.True(t, pass)
}

func TestFigureThatCannotBeMeasured(t *testing.T) {
	f := figure{"page_us", "us", atMost(15), func(context.Context) (float64, error) { return 0, errors.New("no page") }, ""}
	_, pass, err := f.line(t.Context())
	require.EqualError(t, err, "page_us: no page")
	assert.False(t, pass)
}

func TestMedian(t *testing.T) {
	assert.InDelta(t, 2.0, median([]float64{9, 1, 2}), 0)
	assert.InDelta(t, 2.5, median([]float64{9, 3, 1, 2}), 0)
}
