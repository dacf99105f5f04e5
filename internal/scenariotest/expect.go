// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package scenariotest

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Expectation is what is told at one time.
type Expectation struct {
	At      time.Duration // since simulated time began
	Only    bool          // nothing else is
	Figures []Figure
}

// Expectations reads a section of them. Their blocks have no word but only.
func Expectations(t T, text string) []Expectation {
	t.Helper()
	all := []Expectation{}
	for _, block := range Blocks(t, text) {
		for _, word := range block.Words {
			require.Equal(t, "only", word)
		}
		for _, at := range block.Times {
			all = append(all, Expectation{At: at, Only: len(block.Words) > 0, Figures: Figures(t, block.Body)})
		}
	}
	return all
}

// tolerance is how far a value may be from its calculation, relative to it: the
// order of additions differs.
const tolerance = 1e-9

// Check compares the points of that time with what is said of them: of each
// figure there is one point, and with only nothing else.
func (e *Expectation) Check(t T, points []Point) {
	t.Helper()
	claimed := map[string]bool{}
	for _, f := range e.Figures {
		var found []Point
		var alike []string
		for _, p := range points {
			if p.Name != f.Name {
				continue
			}
			alike = append(alike, p.Series())
			if p.has(f.Labels) {
				found = append(found, p)
			}
		}
		at := fmt.Sprintf("@%s %s", e.At, f.Text)
		if f.State == "absent" {
			assert.Empty(t, found, at)
			continue
		}
		if !assert.Len(t, found, 1, "%s, of\n%s", at, strings.Join(alike, "\n")) {
			continue
		}
		p := found[0]
		claimed[p.Series()] = true
		assert.Equal(t, f.State == "ended", p.Ended, at)
		if f.Value == 0 {
			assert.Zero(t, p.Value, at)
		} else {
			assert.InEpsilon(t, f.Value, p.Value, tolerance, "%s, is %v", at, p.Value)
		}
	}
	if e.Only {
		for _, p := range points {
			assert.True(t, claimed[p.Series()], "@%s unexpected %s %v", e.At, p.Series(), p.Value)
		}
	}
}
