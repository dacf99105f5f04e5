// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// handling is one thing that the product must do to be equal to Prometheus, as the one place in its source that does it,
// and that place without it.
type handling struct {
	name   string
	file   string // below the repository
	does   string
	lacks  string
	needed string // the class of histories in which it shows
}

var handlings = []handling{
	{ // a fall is no new beginning
		name: "reset", file: "internal/window/histogram.go", needed: "restarts",
		does:  "if c < h.count(i) {",
		lacks: "if off := true; !off && c < h.count(i) {",
	},
	{ // the sample before the window is no anchor: what grew across a pane's edge is lost
		name: "anchor", file: "internal/window/histogram.go", needed: "steady",
		does:  "case s.At.Sub(h.at) > MaxGap:",
		lacks: "case g.Pane(s.At) != g.Pane(h.at) || s.At.Sub(h.at) > MaxGap:",
	},
	{ // a marker does not make a gauge unknown
		name: "suspend", file: "internal/fleet/series.go", needed: "failures",
		does:  "if g := s.gauge(); g != nil && s.source.admit(at) == window.Accepted {",
		lacks: "if g, off := s.gauge(), true; !off && g != nil {",
	},
	{ // what grew in a gap is lost
		name: "gap", file: "internal/window/grid.go", needed: "gaps",
		does:  "const MaxGap = 5 * time.Minute",
		lacks: "const MaxGap = time.Minute",
	},
	{ // finer buckets are no new beginning
		name: "finer buckets", file: "internal/window/grow.go", needed: "growth",
		does:  "case !s.Delta && h.restarted(e):",
		lacks: "case s.Start < 0 && !s.Delta && h.restarted(e):",
	},
	{ // what was counted in finer buckets is counted again in wider ones
		name: "wider buckets", file: "internal/window/grow.go", needed: "growth",
		does:  "narrow[j] = h.count(j)",
		lacks: "narrow[j] = 0 * h.count(j)",
	},
	{ // of two zero buckets, the smaller
		name: "zero bucket", file: "internal/window/exponential.go", needed: "growth",
		does:  "a.ZeroThreshold = max(a.ZeroThreshold, b.ZeroThreshold)",
		lacks: "a.ZeroThreshold = min(a.ZeroThreshold, b.ZeroThreshold)",
	},
	{ // observations spread evenly in an exponential bucket, not their logarithms
		name: "logarithm", file: "internal/stats/exponential.go", needed: "exponential",
		does:  "return math.Exp2(lower + (upper-lower)*at.fraction)",
		lacks: "return math.Exp2(lower) + (math.Exp2(upper)-math.Exp2(lower))*at.fraction",
	},
}

// TestSwitchedOff builds the product without each of these handlings, and runs TestHistories on it: it has to fail, by
// figures that differ. An oracle that cannot fail proves nothing.
func TestSwitchedOff(t *testing.T) {
	for _, h := range handlings {
		t.Run(h.name, func(t *testing.T) {
			overlay := h.overlay(t)
			oracle := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-overlay="+overlay,
				"-run=^TestHistories$/^"+h.needed+"$", ".", "-histories=20")
			output, err := oracle.CombinedOutput()
			assert.Error(t, err, "the oracle is blind to a missing %s handling", h.name)
			assert.Contains(t, string(output), "figures differ", "it failed otherwise")
		})
	}
}

// overlay writes the product's source without the handling, and the file that tells go to build with it.
func (h *handling) overlay(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", filepath.FromSlash(h.file)))
	require.NoError(t, err)
	source, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(source), h.does), "%s is not once in %s", h.does, h.file)
	dir := t.TempDir()
	without := filepath.Join(dir, "without.go")
	require.NoError(t, os.WriteFile(without, []byte(strings.Replace(string(source), h.does, h.lacks, 1)), 0o600)) //nolint:gosec // in the test's own folder
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: without}})
	require.NoError(t, err)
	overlay := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlay, replace, 0o600))
	return overlay
}
