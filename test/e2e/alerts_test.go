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

// TestAlertsThatAreShown: Prometheus takes the rules of the pages that begin with some; each says how urgent it is, and
// about what.
func TestAlertsThatAreShown(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"outliers.md", "canary.md"} {
		t.Run(page, func(t *testing.T) {
			text, err := os.ReadFile("../../docs/" + page)
			require.NoError(t, err)
			checkAlerts(t, text)
		})
	}
}

func checkAlerts(t *testing.T, page []byte) {
	t.Helper()
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
