// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package sharedcore

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type (
	config struct{ name string }
	core   struct{ of *config }
)

func TestCoreIsSharedUntilItsLastUserLeaves(t *testing.T) {
	var cores Cores[*config, *core]
	made := 0
	acquire := func(c *config) *core {
		got, err := cores.Acquire(c, func() (*core, error) {
			made++
			return &core{of: c}, nil
		})
		require.NoError(t, err)
		return got
	}
	one, other := &config{"a"}, &config{"a"}
	first := acquire(one)
	assert.Same(t, first, acquire(one))
	assert.NotSame(t, first, acquire(other), "equal configurations are not the same")
	assert.Equal(t, 2, made)
	assert.Equal(t, 2, cores.Len())

	assert.False(t, cores.Release(one))
	assert.Same(t, first, acquire(one))
	assert.False(t, cores.Release(one))
	assert.True(t, cores.Release(one))
	assert.NotSame(t, first, acquire(one), "a core that was given up is not taken up again")
	assert.Equal(t, 3, made)
}

func TestCoreThatCannotBeMadeIsNotKept(t *testing.T) {
	var cores Cores[*config, *core]
	c := new(config)
	refused := errors.New("no")
	_, err := cores.Acquire(c, func() (*core, error) { return nil, refused })
	require.ErrorIs(t, err, refused)
	got, err := cores.Acquire(c, func() (*core, error) { return &core{of: c}, nil })
	require.NoError(t, err)
	assert.Same(t, c, got.of)
	assert.True(t, cores.Release(c))
}

func TestDutyFallsToTheOldest(t *testing.T) {
	var d Duty[core]
	a, b, c := new(core), new(core), new(core)
	assert.Nil(t, d.Holder())
	for _, u := range []*core{a, b, c} {
		d.Join(u)
		assert.Same(t, a, d.Holder())
	}
	assert.False(t, d.Alone(a))
	assert.True(t, d.Leave(b), "one that waits")
	assert.Same(t, a, d.Holder())
	assert.True(t, d.Leave(a))
	assert.Same(t, c, d.Holder())
	assert.True(t, d.Alone(c))
	assert.False(t, d.Leave(a), "it has left before")
	assert.True(t, d.Leave(c))
	assert.Nil(t, d.Holder())
	assert.False(t, d.Alone(c))
}

// TestOneAtATimeHasTheDuty: users that come and go at once.
func TestOneAtATimeHasTheDuty(t *testing.T) {
	var (
		cores Cores[*config, *core]
		d     Duty[core]
		all   sync.WaitGroup
	)
	c := new(config)
	for range 50 {
		all.Go(func() {
			got, err := cores.Acquire(c, func() (*core, error) { return &core{of: c}, nil })
			assert.NoError(t, err)
			assert.Same(t, c, got.of)
			u := new(core)
			d.Join(u)
			assert.NotNil(t, d.Holder())
			assert.True(t, d.Leave(u))
			assert.NotSame(t, u, d.Holder())
			cores.Release(c)
		})
	}
	all.Wait()
	assert.Nil(t, d.Holder())
	assert.Zero(t, cores.Len())
}
