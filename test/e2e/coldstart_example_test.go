// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/binarytest"
)

// TestColdStartExample: the demo plays its recordings through the built binary, and ends by itself. Its own tests compare what it
// prints with the recordings line by line; here its processes, ports and exporters are the real ones.
func TestColdStartExample(t *testing.T) {
	demo := filepath.Join(t.TempDir(), "coldstart")
	built, err := exec.Command("go", "build", "-C", "../..", "-o", demo, "./examples/coldstart").CombinedOutput()
	require.NoError(t, err, "%s", built)
	collector := binarytest.Collector(t)
	for recording, stages := range map[string]string{
		// Of the recording: the kubelet's sentence, and what lies between created and ready.
		"cold.json":    `(?s)ready after 7m45s\n.*\nimage\.pull \(engine\) +1m34\.8s +2m38\.2s +█+\n.*\nfirst_token +7m45s `,
		"restart.json": `(?s)ready after 1m58s\n.*\nattempt \(engine\) +4s +29s +─+\n.*\nWasted +40s \(34 %\)\n`,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		printed, err := exec.CommandContext(ctx, demo, "-collector", collector, "-config", "../../examples/coldstart/config.yaml",
			"-recording", "../../examples/coldstart/"+recording).CombinedOutput()
		cancel()
		require.NoError(t, err, "%s", printed)
		assert.Regexp(t, stages, string(printed))
	}
}
