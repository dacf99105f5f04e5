// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var ratio = Wait{First: "ratio", Patience: 2 * time.Minute, Suspense: 90 * time.Second}

// notUp is a collector that does not answer yet.
const notUp = Progress(99)

// answers plays looks that find the given progress, one a call; the last one
// stays. Each gives its number.
func answers(calls *int, all ...Progress) func() (int, Progress, error) {
	return func() (int, Progress, error) {
		*calls++
		progress := all[min(*calls, len(all))-1]
		if progress == notUp {
			return 0, Nothing, errors.New("not up yet")
		}
		return *calls, progress, nil
	}
}

func TestWaitsUntilAllIsThereTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		got, ok, err := Await(t.Context(), nil, ratio, answers(&calls, notUp, Nothing, Begun, Complete, Begun, Complete, Complete))
		require.NoError(t, err)
		assert.True(t, ok)
		assert.Equal(t, 7, calls)
		assert.Equal(t, 7, got)
	})
}

func TestWaitsNoLongerThanItMakesSense(t *testing.T) {
	calls := 0
	synctest.Test(t, func(t *testing.T) {
		_, ok, err := Await(t.Context(), nil, ratio, answers(&calls, Nothing))
		require.ErrorContains(t, err, "no ratio after 2m0s")
		assert.False(t, ok)
	})
	synctest.Test(t, func(t *testing.T) {
		_, _, err := Await(t.Context(), nil, ratio, answers(&calls, notUp))
		require.ErrorContains(t, err, "not up yet", "why")
	})
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		got, ok, err := Await(t.Context(), nil, ratio, answers(&calls, Begun))
		require.NoError(t, err)
		assert.True(t, ok)
		assert.Equal(t, calls, got, "what there is")
		assert.Equal(t, pollEvery+ratio.Suspense, time.Since(start))
	})
	ended := make(chan struct{})
	close(ended)
	_, ok, err := Await(t.Context(), ended, ratio, answers(&calls, Complete))
	require.NoError(t, err)
	assert.False(t, ok)
}
