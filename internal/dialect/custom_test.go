// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// TestCustomDialect: two forms share a name, which is known as OpenTelemetry and
// as Prometheus spell it.
func TestCustomDialect(t *testing.T) {
	first := &Entry{Signal: fleet.Quality(0), Kind: fleet.Gauge, Scale: 1}
	second := &Entry{Signal: fleet.Quality(1), Kind: fleet.Gauge, Scale: 1}
	d := &Dialect{Name: "custom", Forms: []*Form{
		{Entry: first, Names: []string{"eval.score"}},
		{Entry: second, Names: []string{"eval.score"}},
	}}
	s := Custom(d)
	require.Equal(t, []*Dialect{d}, s.Dialects())
	for _, name := range []string{"eval.score", "eval_score"} {
		assert.Equal(t, []Match{{Entry: first, Name: "eval.score"}, {Entry: second, Name: "eval.score"}}, s.Match(name))
	}
	assert.Same(t, d, first.Dialect)
	assert.Empty(t, s.Match("eval_score_total"))
	assert.Nil(t, s.Info("eval.score"))
	_, ignored := s.Ignored("eval.score")
	assert.False(t, ignored)
}
