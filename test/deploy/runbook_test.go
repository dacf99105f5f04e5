// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	runbookPage = "../../docs/operations.md"
	runbookURL  = "https://github.com/llmfleet/llmfleet/blob/main/docs/operations.md#"
	namesFile   = "../../docs/names/next.txt"
)

// runbooks are the parts of docs/operations.md under "Alerts", by their headings.
func runbooks(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile(runbookPage)
	require.NoError(t, err)
	_, alerts, found := strings.Cut(string(page), "\n## Alerts\n")
	require.True(t, found)
	parts := map[string]string{}
	for _, part := range strings.Split(alerts, "\n### ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		parts[name] = text
	}
	return parts
}

var ourOwn = regexp.MustCompile(`^(llmfleet_|otelcol_(processor_(fleet|tenant|canary)|connector_(tenant|fleet|cold)|receiver_k8s_fleet)_)`)

// ourNames are the series of llmfleet that a query reads.
func ourNames(t *testing.T, query string) []string {
	t.Helper()
	expr, err := promQL.ParseExpr(query)
	require.NoError(t, err, query)
	var names []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if v, ok := node.(*parser.VectorSelector); ok && ourOwn.MatchString(v.Name) {
			names = append(names, v.Name)
		}
		return nil
	})
	return names
}

// stabilities are how firm the name of each series is.
func stabilities(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(namesFile)
	require.NoError(t, err)
	firm := map[string]string{}
	for line := range strings.Lines(string(text)) {
		columns := strings.Split(strings.TrimSpace(line), " | ")
		name, stability := columns[0], columns[len(columns)-1]
		firm[name] = stability
		if len(columns) > 1 && columns[1] == "histogram" {
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				firm[name+suffix] = stability
			}
		}
	}
	require.Contains(t, firm, "llmfleet_replica_outlier")
	return firm
}

// TestEveryAlertHasItsRunbook: whoever is woken finds a part of the page that is about this alert, and no part is about an alert
// that is gone.
func TestEveryAlertHasItsRunbook(t *testing.T) {
	parts := runbooks(t)
	var alerts []string
	for _, group := range readRules(t, "../../deploy/prometheus/alerts.yaml").Groups {
		for _, rule := range group.Rules {
			alerts = append(alerts, rule.Alert)
			assert.Equal(t, runbookURL+strings.ToLower(rule.Alert), rule.Annotations["runbook_url"], rule.Alert)
			assert.NotEmpty(t, parts[rule.Alert], "%s has no part of docs/operations.md", rule.Alert)
		}
	}
	for name, text := range parts {
		assert.Contains(t, alerts, name, "a runbook of no alert")
		assert.Contains(t, text, "**When it lies:**", name)
	}
}

var promqlBlock = regexp.MustCompile("(?s)```promql\n(.*?)```")

// TestRunbooksAskWhatThereIs: each query is one, and reads metrics that llmfleet has.
func TestRunbooksAskWhatThereIs(t *testing.T) {
	known := stabilities(t)
	for name, text := range runbooks(t) {
		block := promqlBlock.FindStringSubmatch(text)
		if !assert.NotNil(t, block, "%s: what to look at first", name) {
			continue
		}
		for line := range strings.Lines(block[1]) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			assert.NotContains(t, line, "or vector(", name)
			for _, metric := range ourNames(t, line) {
				assert.NotEmpty(t, known[metric], "%s: llmfleet has no %s", name, metric)
			}
		}
	}
}

// TestRulesStandOnPromisedNames: an upgrade that renames what may be renamed breaks no alert that we ship.
func TestRulesStandOnPromisedNames(t *testing.T) {
	firm, asked := stabilities(t), 0
	for _, path := range ruleFiles {
		for _, group := range readRules(t, path).Groups {
			for _, rule := range group.Rules {
				for _, metric := range ourNames(t, rule.Expr) {
					asked++
					assert.True(t, slices.Contains([]string{"beta", "stable"}, firm[metric]), "%s%s reads %s, which is %q", rule.Alert, rule.Record, metric, firm[metric])
				}
			}
		}
	}
	assert.Positive(t, asked)
}
