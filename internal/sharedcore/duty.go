// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package sharedcore

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Duty is what one of the users of a core does for all: reading what all are given,
// or sending what is told once. It falls to the one that joined first; when that one
// leaves, the next takes over. The zero value is ready, and safe for concurrent use.
type Duty[User any] struct {
	mu     sync.Mutex
	joined []*User // oldest first
	holder atomic.Pointer[User]
}

// Join has a user take the duty, or wait for it.
func (d *Duty[User]) Join(u *User) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.joined = append(d.joined, u)
	d.holder.Store(d.joined[0])
}

// Leave has a user do so no more. It tells whether it had joined.
func (d *Duty[User]) Leave(u *User) (joined bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.Index(d.joined, u)
	if i < 0 {
		return false
	}
	d.joined = slices.Delete(d.joined, i, i+1)
	var next *User
	if len(d.joined) > 0 {
		next = d.joined[0]
	}
	d.holder.Store(next)
	return true
}

// Holder is whose duty it is now; nil if nobody has joined.
func (d *Duty[User]) Holder() *User { return d.holder.Load() }

// Alone tells whether a user has the duty and nobody waits for it.
func (d *Duty[User]) Alone(u *User) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.joined) == 1 && d.joined[0] == u
}
