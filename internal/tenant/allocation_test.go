// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// The race detector makes pools forget, so that they allocate.
//go:build !race

package tenant

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNamesAllocateNothingElse(t *testing.T) {
	hash := NewNamer(NamerOptions{Key: []byte("key")})
	plain := NewNamer(NamerOptions{Mode: Plain})
	assert.LessOrEqual(t, testing.AllocsPerRun(1000, func() { hash.Name("tenant-0000000000000001") }), 1.0)
	assert.Zero(t, testing.AllocsPerRun(1000, func() { plain.Name("tenant-0000000000000001") }))
}
