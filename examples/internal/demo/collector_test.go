// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// script writes an executable that stands in for the collector.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "collector")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o700))
	return path
}

func TestAnEarlyEndOfTheCollectorShowsItsLog(t *testing.T) {
	c, err := StartCollector(script(t, "echo cannot read $2 >&2; exit 3"), "my.yaml")
	require.NoError(t, err)
	<-c.Ended
	err = c.Stop()
	require.ErrorContains(t, err, "exit status 3")
	require.ErrorContains(t, err, "cannot read my.yaml")

	_, err = StartCollector(filepath.Join(t.TempDir(), "none"), "my.yaml")
	require.ErrorContains(t, err, "make build")
}

func TestStopEndsTheCollector(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	c, err := StartCollector(script(t, "trap 'exit 0' TERM; touch "+ready+"; while :; do sleep 0.05; done"), "")
	require.NoError(t, err)
	require.Eventually(t, func() bool { _, err := os.Stat(ready); return err == nil }, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, c.Stop())
	assert.True(t, c.command.ProcessState.Exited())
}

func TestLogTailIsBounded(t *testing.T) {
	var log tail
	for i := range 5000 {
		fmt.Fprintf(&log, "line %d\n", i)
	}
	assert.LessOrEqual(t, len(log.String()), tailBytes)
	assert.True(t, strings.HasSuffix(log.String(), "line 4999"))
}
