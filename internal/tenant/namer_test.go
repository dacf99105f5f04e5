// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The expected values are the first eight bytes of RFC 4231's test cases 1 and 2.
func TestHashIsHMACSHA256(t *testing.T) {
	n := NewNamer(NamerOptions{Key: bytes.Repeat([]byte{0x0b}, 20)})
	assert.Equal(t, "b0344c61d8db3853", n.Name("Hi There"))
	n = NewNamer(NamerOptions{Key: []byte("Jefe")})
	assert.Equal(t, "5bdcc146bf60754e", n.Name("what do ya want for nothing?"))
	assert.Equal(t, "5bdcc146bf60754e", n.Name("what do ya want for nothing?"), "a hasher that was used before")
}

func TestNames(t *testing.T) {
	longest := strings.Repeat("x", 256)
	for _, c := range []struct {
		raw, plain string
		hashed     bool
	}{
		{"acme", "acme", true},
		{"Größe & Söhne, 東京", "Größe & Söhne, 東京", true},
		{longest, longest, true},
		{"", Unknown, false},
		{longest + "x", Invalid, false},
		{"two\nlines", Invalid, false},
		{"nul\x00", Invalid, false},
		{"\xff\xfe", Invalid, false},
		{"right\u202eto left", Invalid, false},
		{"no\u00a0break", Invalid, false},
		{Other, Invalid, true},
		{"__x", Invalid, true},
		{"_x", "_x", true},
		{"sk-proj-abcdef", Invalid, true},
		{"Bearer abcdef", Invalid, true},
		{"bearer abcdef", Invalid, true},
		{"Basic dXNlcjpwYXNz", Invalid, true},
		{"Basics", "Basics", true},
		{"eyJhbGciOiJIUzI1NiJ9.e30.abc", Invalid, true},
		{"AKIAIOSFODNN7EXAMPLE", Invalid, true},
		{"ghp_abcdef", Invalid, true},
		{"github_pat_abcdef", Invalid, true},
		{"glpat-abcdef", Invalid, true},
		{"hf_abcdef", Invalid, true},
		{"xoxb-1-2", Invalid, true},
		{" sk-abcdef", Invalid, true},
		{"team-sk-north", "team-sk-north", true},
	} {
		assert.Equal(t, c.plain, NewNamer(NamerOptions{Mode: Plain}).Name(c.raw), "%q", c.raw)
		name := NewNamer(NamerOptions{Key: []byte("key")}).Name(c.raw)
		if c.hashed {
			assert.Regexp(t, "^[0-9a-f]{16}$", name, "%q", c.raw)
		} else {
			assert.Equal(t, c.plain, name, "%q", c.raw)
		}
	}
}

func TestMapKnowsNobodyElse(t *testing.T) {
	names := map[string]string{"sk-north": "north", "sk-leak": "sk-leak", "mute": ""}
	n := NewNamer(NamerOptions{Mode: Map, Map: names})
	names["sk-late"] = "late"
	assert.Equal(t, "north", n.Name("sk-north"))
	assert.Equal(t, Unmapped, n.Name("sk-south"))
	assert.Equal(t, Unmapped, n.Name("sk-late"))
	assert.Equal(t, Invalid, n.Name("sk-leak"), "what a map calls someone is checked too")
	assert.Equal(t, Unknown, n.Name("mute"))
	assert.Equal(t, Unknown, n.Name(""))
}

func TestNamerIsConcurrent(t *testing.T) {
	n := NewNamer(NamerOptions{Key: []byte("Jefe")})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				assert.Equal(t, "5bdcc146bf60754e", n.Name("what do ya want for nothing?"))
				n.Name("somebody else")
			}
		})
	}
	all.Wait()
}

func TestParseKey(t *testing.T) {
	key, err := ParseKey([]byte(" sixteen bytes. \r\n"))
	require.NoError(t, err)
	assert.Equal(t, " sixteen bytes. ", string(key))
	for text, want := range map[string]string{"\n": "the key has 0 bytes", "fifteen bytes..\r\n": "the key has 15 bytes: use at least 16"} {
		_, err := ParseKey([]byte(text))
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "fifteen")
	}
}
