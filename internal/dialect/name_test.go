// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNamesThatNoMetricHas: what would be accepted and never match is a mistake.
func TestNamesThatNoMetricHas(t *testing.T) {
	for _, c := range []struct{ kind, prefix, name, want string }{
		{"gauge", "acme", "acme:queue", "leave acme off acme:queue: prefix stands before every name"},
		{"gauge", "acme", "acme_queue", "leave acme off acme_queue: prefix stands before every name"},
		{"gauge", "", "queue.*", `"queue.*" is no name of a metric: use the whole name, without patterns or blanks`},
		{"gauge", "", "^queue$", `"^queue$" is no name of a metric: use the whole name, without patterns or blanks`},
		{"gauge", "", "queue length", `"queue length" is no name of a metric: use the whole name, without patterns or blanks`},
		{"gauge", "", "länge", `"länge" is no name of a metric: use the whole name, without patterns or blanks`},
		{"gauge", "", "up", "up is told of every target: it can be no signal"},
		{"gauge", "", "process_start_time_seconds", "process_start_time_seconds is told of every target: it can be no signal"},
		{"gauge", "", "queue_created", "queue_created is when a series began, and no signal"},
		{"histogram", "", "ttft_bucket", "leave _bucket off ttft_bucket: a histogram arrives whole"},
		{"histogram", "", "ttft_count", "leave _count off ttft_count: a histogram arrives whole"},
		{"histogram", "", "ttft_sum", "leave _sum off ttft_sum: a histogram arrives whole"},
	} {
		signal := map[string]string{"gauge": "waiting", "histogram": "ttft"}[c.kind]
		data := fmt.Sprintf("engine: acme\nsignals: {%s: {type: %s, names: [%q]}}\n", signal, c.kind, c.name)
		if c.prefix != "" {
			data += "prefix: " + c.prefix
		}
		_, err := Parse("acme.yaml", []byte(data))
		assert.EqualError(t, err, "acme.yaml:2: signals."+signal+".names: "+c.want, c.name)
	}
	_, err := Parse("acme.yaml", []byte("engine: acme\nsignals: {waiting: {type: gauge, names: [gen_ai.queue/length, a:b-c]}}\n"))
	assert.NoError(t, err, "OpenTelemetry's names")
}

func TestPrefixesThatNoNameHas(t *testing.T) {
	for _, prefix := range []string{"acme:", "acme_", "a b", ":a", "ac*"} {
		_, err := Parse("acme.yaml", []byte(fmt.Sprintf("engine: acme\nprefix: %q\nsignals: {waiting: {type: gauge, names: [queue]}}\n", prefix)))
		assert.EqualError(t, err, fmt.Sprintf(
			"acme.yaml:2: prefix: %q cannot stand before a name: use letters, digits and underscores, without the separator", prefix))
	}
}

// TestFilesThatAreNone: the collector must not wait for a pipe, nor read a disk.
func TestFilesThatAreNone(t *testing.T) {
	_, err := Sources{t.TempDir()}.Load()
	require.ErrorContains(t, err, "dialects[0]")
	require.ErrorContains(t, err, "is no file: use the path of a file")
	_, err = Sources{os.DevNull}.Load()
	require.ErrorContains(t, err, "is no file")

	large := filepath.Join(t.TempDir(), "large.yaml")
	require.NoError(t, os.WriteFile(large, make([]byte, maxFile+1), 0o600))
	_, err = Sources{large}.Load()
	require.ErrorContains(t, err, "has 1048577 bytes, more than 1048576")
}
