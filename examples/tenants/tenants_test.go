// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/examples/internal/demo"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// derived is a page as the collector's prometheus exporter writes it. Of 28 ms, 40 %
// of the usual 20 ms are initech's: 20 ms without them.
const derived = `# TYPE llmfleet_fleet_itl_seconds gauge
llmfleet_fleet_itl_seconds{model_name="chat"} 0.028
# TYPE llmfleet_fleet_usual_itl_seconds gauge
llmfleet_fleet_usual_itl_seconds{model_name="chat"} 0.02
# TYPE llmfleet_tenant_token_share_ratio gauge
llmfleet_tenant_token_share_ratio{direction="input",model_name="chat",tenant="acme"} 0.3
llmfleet_tenant_token_share_ratio{direction="input_uncached",model_name="chat",tenant="acme"} 0.25
llmfleet_tenant_token_share_ratio{direction="output",model_name="chat",tenant="acme"} 0.35
llmfleet_tenant_token_share_ratio{direction="input_uncached",model_name="chat",tenant="initech"} 0.45
llmfleet_tenant_token_share_ratio{direction="output",model_name="chat",tenant="initech"} 0.16
llmfleet_tenant_token_share_ratio{direction="input_uncached",model_name="chat",tenant="__other__"} 0.3
llmfleet_tenant_token_share_ratio{direction="output",model_name="chat",tenant="__other__"} 0.49
# TYPE llmfleet_tenant_usual_share_ratio gauge
llmfleet_tenant_usual_share_ratio{model_name="chat",tenant="acme"} 0.43
llmfleet_tenant_usual_share_ratio{model_name="chat",tenant="initech"} 0.05
# TYPE llmfleet_tenant_itl_excess_ratio gauge
llmfleet_tenant_itl_excess_ratio{model_name="chat",tenant="acme"} -0.001
llmfleet_tenant_itl_excess_ratio{model_name="chat",tenant="initech"} 0.4
# TYPE llmfleet_tenant_noisy gauge
llmfleet_tenant_noisy{model_name="chat",tenant="acme"} 0
llmfleet_tenant_noisy{model_name="chat",tenant="initech"} 1
# TYPE llmfleet_tenant_noisy_score gauge
llmfleet_tenant_noisy_score{model_name="chat",tenant="initech"} 9.13
# TYPE llmfleet_tenant_noisy_duration_seconds gauge
llmfleet_tenant_noisy_duration_seconds{model_name="chat",tenant="acme"} 0
llmfleet_tenant_noisy_duration_seconds{model_name="chat",tenant="initech"} 30
`

const small = `
fleets:
  - name: chat
    engine: vllm
    model_name: chat
    arrivals: {rate: 1}
    tenants: {named: [{name: acme, share: 0.5}, {name: initech, share: 0.5}]}
`

// now is when the page was read, 90 s after the fleet began. The newest pane that is
// judged by then ended at 12:01:25: that which ended at 12:01:30 is not yet.
var now = time.Date(2026, 1, 2, 12, 1, 30, 0, time.UTC)

func figuresOf(t *testing.T, text string) figures {
	t.Helper()
	page, err := demo.ReadPage(strings.NewReader(text))
	require.NoError(t, err)
	return readFigures(page)
}

// reportOf prints what a page says of a fleet with a fault.
func reportOf(t *testing.T, page, fault string) string {
	t.Helper()
	scenario, err := fleetsim.Parse([]byte(small + "faults: [" + fault + "]"))
	require.NoError(t, err)
	got := figuresOf(t, page)
	var out bytes.Buffer
	require.NoError(t, printReport(&out, &scenario, &got, now, 90*time.Second))
	return out.String()
}

const batchJob = "{kind: surge, tenant: initech, factor: 4, prompt_factor: 3, from: 1m}"

func TestReportSaysWhoSinceWhenAndByHowMuch(t *testing.T) {
	report := reportOf(t, derived, batchJob)
	assert.True(t, strings.HasPrefix(report, strings.TrimPrefix(`
Who makes everyone slower:  initech
Since when:                 12:00:55 UTC, 35 s ago
By what:                    45 % of the uncached input is its own, usually 5 %
By how much:                a token takes everyone 28.0 ms; usually 20.0 ms; without its surplus 20.0 ms
Found as injected: from 12:01:00 UTC on, initech sends 4 times as many requests, 3 times as long.

TENANT     VERDICT  UNCACHED  USUALLY  OUTPUT  ITL EXCESS  SCORE
initech    NOISY    45 %      5 %      16 %    40 %        9.1
__other__  -        30 %      -        49 %    -           -
acme       ok       25 %      43 %     35 %    0 %         -

VERDICT `, "\n")), report)
}

func TestReportIsHonest(t *testing.T) {
	quiet := strings.Replace(derived, `tenant="initech"} 1`, `tenant="initech"} 0`, 1)
	for _, c := range []struct{ page, fault, want string }{
		{quiet, batchJob, "No tenant is noisy.\nInjected, and not found: from 12:01:00 UTC on, initech sends"},
		{quiet, "", "No tenant is noisy.\n\n"},
		{derived, strings.Replace(batchJob, "1m", "1m, to: 3m", 1), "Found as injected: from 12:01:00 UTC to 12:03:00 UTC, initech sends"},
		{derived, "", "A false accusation: initech sends as usual.\n"},
		{derived, strings.Replace(batchJob, "1m", "90s", 1), "A false accusation: initech"},
		{derived, strings.Replace(batchJob, "1m", "1m, to: 89s", 1), "A false accusation: initech"},
		{derived, strings.Replace(batchJob, "initech", "acme", 1), "Injected, and not found: from 12:01:00 UTC on, acme"},
		{derived, strings.Replace(batchJob, "initech", "acme", 1), "A false accusation: initech"},
	} {
		assert.Contains(t, reportOf(t, c.page, c.fault), c.want, c.fault)
	}
}

func TestReportFitsATerminal(t *testing.T) {
	for line := range strings.Lines(reportOf(t, derived, batchJob)) {
		assert.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 110, line)
	}
}

func TestTheTableHasTheLargestTenantsAndAllThatAreNoisy(t *testing.T) {
	var page strings.Builder
	page.WriteString("# TYPE llmfleet_tenant_token_share_ratio gauge\n")
	for name := range strings.FieldsSeq("a b c d e f g h i j") {
		page.WriteString(`llmfleet_tenant_token_share_ratio{direction="input_uncached",tenant="` + name + "\"} 0.1\n")
	}
	page.WriteString("# TYPE llmfleet_tenant_noisy gauge\n" + `llmfleet_tenant_noisy{tenant="j"} 1` + "\n")
	page.WriteString("# TYPE llmfleet_tenant_noisy_duration_seconds gauge\n" + `llmfleet_tenant_noisy_duration_seconds{tenant="j"} 6` + "\n")
	report := reportOf(t, page.String(), "")
	assert.Contains(t, report, "\nh ")
	assert.NotContains(t, report, "\ni ")
	assert.Contains(t, report, "\nj       NOISY")
}

func TestProgressIsCompleteWhenTheCulpritIsNamedAndWasTold(t *testing.T) {
	got := figuresOf(t, derived)
	assert.Equal(t, demo.Begun, got.progress(0))
	assert.Equal(t, demo.Complete, got.progress(1))
	got = figuresOf(t, strings.Replace(derived, `tenant="initech"} 1`, `tenant="initech"} 0`, 1))
	assert.Equal(t, demo.Begun, got.progress(1))
	got = figuresOf(t, "")
	assert.Equal(t, demo.Nothing, got.progress(0))
}

func TestTheLineNamesTheLargestTenant(t *testing.T) {
	got := figuresOf(t, derived)
	assert.Equal(t, "a token takes about 30 ms; initech sends the largest part of the uncached input, about 45 %", got.line())
}

func TestNoiseIsNotToldAnew(t *testing.T) {
	before := figuresOf(t, derived)
	assert.True(t, before.differs(&figures{}), "it is the first")
	for _, c := range []struct {
		old, now string
		want     bool
	}{
		{`tenant="initech"} 0.45`, `tenant="initech"} 0.54`, false},
		{`tenant="initech"} 0.45`, `tenant="initech"} 0.56`, true},
		{`tenant="initech"} 0.45`, `tenant="initech"} 0.34`, true},
		{`tenant="initech"} 0.45`, `tenant="initech"} 0.2`, true}, // acme has more
		{`"chat"} 0.028`, `"chat"} 0.024`, false},
		{`"chat"} 0.028`, `"chat"} 0.034`, true},
		{"acme", "__unknown__", false},
	} {
		got := figuresOf(t, strings.ReplaceAll(derived, c.old, c.now))
		assert.Equal(t, c.want, got.differs(&before), "%s instead of %s", c.now, c.old)
	}
	nobody := figuresOf(t, strings.ReplaceAll(strings.ReplaceAll(derived, "acme", "__unknown__"), "initech", "__invalid__"))
	assert.False(t, nobody.differs(&before), "nobody is known")
	nothing := figuresOf(t, "")
	assert.False(t, nothing.differs(&before))
}

func TestWithoutItsSurplusNoTokenIsFasterThanUsual(t *testing.T) {
	for _, c := range []struct{ excess, want float64 }{{0.3, 0.022}, {0.4, 0.02}, {0.5, 0.02}} {
		got := figures{itl: 0.028, usualITL: 0.02}
		assert.InDelta(t, c.want, got.without(&tenant{excess: c.excess}), 1e-9, "28 ms less %v of 20 ms", c.excess)
	}
}

func TestThePlotIsThatOfTheScenario(t *testing.T) {
	for faults, want := range map[string]string{
		"": "no tenant will send more than that",
		"{kind: surge, factor: 2}, {kind: surge, tenant: acme, factor: 2, from: 150s}": "2m30s after the start, acme begins to send more",
	} {
		scenario, err := fleetsim.Parse([]byte(small + "faults: [" + faults + "]"))
		require.NoError(t, err)
		assert.Contains(t, plot(&scenario), want)
	}
}
