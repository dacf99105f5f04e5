// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTableLinesUpInColumns(t *testing.T) {
	table := NewTable("NAME", "A", "B")
	table.Row("long name", Number("%.1f", 12.34), "x")
	table.Gap()
	table.Row("b", Number("%.1f", math.NaN()), "")
	var out bytes.Buffer
	require.NoError(t, table.Print(&out))
	assert.Equal(t, `
NAME       A     B
long name  12.3  x

b          -
`, out.String())
}
