// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEventsAreReadAsTheyAreWritten(t *testing.T) {
	e := events{path: filepath.Join(t.TempDir(), "events.json")}
	next := func() []string {
		sentences, err := e.next()
		require.NoError(t, err)
		return sentences
	}
	require.NoError(t, e.forget())
	assert.Empty(t, next(), "there is no file")
	record := func(body string) string {
		return `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"` + body + `"}}]}]}]}` + "\n"
	}
	text := record("a is slow.") + record("b is slow.")
	write := func(n int) { require.NoError(t, os.WriteFile(e.path, []byte(text[:n]), 0o600)) }
	write(len(text) - 5)
	assert.Equal(t, []string{"a is slow."}, next())
	assert.Empty(t, next(), "a line in the making")
	write(len(text))
	assert.Equal(t, []string{"b is slow."}, next())
	require.NoError(t, e.forget())
	assert.NoFileExists(t, e.path)

	require.NoError(t, os.WriteFile(e.path, []byte("no event\n"), 0o600))
	_, err := e.next()
	require.ErrorContains(t, err, "read events")
}
