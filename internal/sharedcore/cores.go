// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package sharedcore makes one thing of the many components that the collector
// makes of one: a processor for each pipeline and signal, a connector for each pair
// of signals, a receiver for each signal. All of one name are given the same
// configuration, and find their common core by it.
package sharedcore

import "sync"

// Cores are the cores of one type of component that are in use, by configuration.
// The zero value is ready, and safe for concurrent use.
type Cores[Config comparable, Core any] struct {
	mu sync.Mutex
	of map[Config]*shared[Core]
}

type shared[Core any] struct {
	core  Core
	users int
}

// Acquire returns the core of a configuration for one user more. For the first, it
// is made.
func (c *Cores[Config, Core]) Acquire(config Config, create func() (Core, error)) (Core, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.of[config]
	if s == nil {
		core, err := create()
		if err != nil {
			return core, err
		}
		s = &shared[Core]{core: core}
		if c.of == nil {
			c.of = make(map[Config]*shared[Core])
		}
		c.of[config] = s
	}
	s.users++
	return s.core, nil
}

// Release gives a core up, once for each time that it was acquired. It tells
// whether that was its last user: who comes next is given another core.
func (c *Cores[Config, Core]) Release(config Config) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.of[config]
	if s.users--; s.users > 0 {
		return false
	}
	delete(c.of, config)
	return true
}

// Len is how many cores are in use.
func (c *Cores[Config, Core]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.of)
}
