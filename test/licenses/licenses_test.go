// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/binarytest"
)

const repository = "../.."

// TestReport: all licenses are accepted ones, both files say what the collector has in it now, and its own build
// information names the same modules.
func TestReport(t *testing.T) {
	modules, err := linked(repository)
	require.NoError(t, err)
	require.NoError(t, check(modules))
	for name, render := range map[string]func(*bytes.Buffer, []module) error{"licenses.csv": table, "licenses.txt": texts} {
		var now bytes.Buffer
		require.NoError(t, render(&now, modules))
		written, err := os.ReadFile(repository + "/docs/" + name)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(written, now.Bytes()), "docs/%s is not current: run `make generate`", name)
	}

	info, err := buildinfo.ReadFile(binarytest.Collector(t))
	require.NoError(t, err)
	built := []string{standard}
	for _, dependency := range info.Deps {
		if dependency.Path != own {
			built = append(built, dependency.Path)
		}
	}
	var listed []string
	for _, m := range modules {
		listed = append(listed, m.path)
	}
	slices.Sort(built)
	assert.Equal(t, built, listed)
}

// isc is the ISC license, whose text its SPDX page gives.
const isc = `Copyright (c) 2026 Somebody

Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted,
provided that the above copyright notice and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED
WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT, INDIRECT, OR
CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT,
NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
`

// TestCheck: one file that asks for more, or that nobody knows, is enough to refuse a module.
func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		files   []file
		refused string
	}{
		"known":        {files: []file{{"LICENSE", []byte(isc)}}},
		"with notice":  {files: []file{{"LICENSE", []byte(isc)}, {"NOTICE", []byte("By Somebody.")}}},
		"none":         {refused: "unknown"},
		"notice alone": {files: []file{{"NOTICE", []byte(isc)}}, refused: "unknown"},
		"nobody's":     {files: []file{{"LICENSE", []byte("Ask before you use it, and ask nicely, please.")}}, refused: "unknown"},
		"with a condition": {
			files:   []file{{"LICENSE", []byte(isc + strings.Repeat("No machine may run it on a Sunday. ", 10))}},
			refused: "unknown",
		},
		"copyleft below": {
			files:   []file{{"LICENSE", []byte(isc)}, {"engine/COPYING", []byte("https://www.gnu.org/licenses/agpl.txt")}},
			refused: "AGPL-3.0",
		},
	} {
		err := check([]module{{path: "example.com/m", version: "v1.0.0", files: c.files}})
		if c.refused == "" {
			assert.NoError(t, err, name)
			continue
		}
		assert.ErrorContains(t, err, "example.com/m v1.0.0", name)
		assert.ErrorContains(t, err, c.refused, name)
	}
}
