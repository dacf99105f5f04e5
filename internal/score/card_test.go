// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLinesSayWhetherTheyHold(t *testing.T) {
	for want, line := range map[string]Line{
		"a 0.5 1 <=1 pass":                {Name: "a", Value: 0.5, Unit: "1", Target: atMost(1)},
		"a 1 1 <=1 pass":                  {Name: "a", Value: 1, Unit: "1", Target: atMost(1)},
		"a 2 1 <=1 fail":                  {Name: "a", Value: 2, Unit: "1", Target: atMost(1)},
		"b 0.95 1 >=0.95 pass # 19 of 20": {Name: "b", Value: 0.95, Unit: "1", Target: atLeast(0.95), Note: "19 of 20"},
		"b 0.9 1 >=0.95 fail":             {Name: "b", Value: 0.9, Unit: "1", Target: atLeast(0.95)},
		"c 17154 {onset}/wk - pass":       {Name: "c", Value: 17154.3, Unit: "{onset}/wk"},
		"d none min <=5 fail":             {Name: "d", Value: math.Inf(1), Unit: "min", Target: atMost(5)},
		"d none min - fail":               {Name: "d", Value: math.Inf(1), Unit: "min"},
		"e NaN 1 - fail":                  {Name: "e", Value: math.NaN(), Unit: "1"},
		"f none min - -":                  {Name: "f", Value: math.Inf(1), Unit: "min", Target: atMost(5), Peer: true},
	} {
		assert.Equal(t, want, line.String())
	}
}

func TestACardNamesTheLinesThatFail(t *testing.T) {
	var out strings.Builder
	card := Card{Lines: []Line{
		{Name: "good", Value: 1, Unit: "1", Target: atMost(1)},
		{Name: "bad", Value: 3, Unit: "min", Target: atMost(2)},
		{Name: "bad/peer", Value: 9, Unit: "min", Target: atMost(2), Peer: true},
	}}
	assert.EqualError(t, card.Write(&out), "bad is 3, not <=2")
	assert.Equal(t, "good 1 1 <=1 pass\nbad 3 min <=2 fail\nbad/peer 9 min - -\n", out.String())

	card.Lines = card.Lines[:1]
	assert.NoError(t, card.Write(&out))
	assert.Error(t, new(Card).Write(&out), "nothing was measured")
}
