// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"log/slog"
	"os"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAlertsThatAreShown: Prometheus takes the rules of docs/outliers.md, which come first there; each says how urgent it
// is, and about what.
func TestAlertsThatAreShown(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/outliers.md")
	require.NoError(t, err)
	block := yamlBlock.FindSubmatch(page)
	require.NotNil(t, block)
	groups, errs := rulefmt.Parse(block[1], false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.Default())
	require.Empty(t, errs)
	require.Len(t, groups.Groups, 1)
	require.NotEmpty(t, groups.Groups[0].Rules)
	for _, rule := range groups.Groups[0].Rules {
		assert.NotEmpty(t, rule.Alert)
		assert.NotEmpty(t, rule.Labels["severity"], rule.Alert)
		assert.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
	}
}
