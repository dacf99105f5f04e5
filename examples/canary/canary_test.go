// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/examples/internal/demo"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// derived is a page as the collector's prometheus exporter writes it, LABELS the
// labels that all series have.
var derived = strings.ReplaceAll(`# TYPE llmfleet_canary_verdict gauge
llmfleet_canary_verdict{LABELS,measure="overall",verdict="fail"} 1
llmfleet_canary_verdict{LABELS,measure="overall",verdict="inconclusive"} 0
llmfleet_canary_verdict{LABELS,measure="overall",verdict="pass"} 0
llmfleet_canary_verdict{LABELS,measure="errors",verdict="inconclusive"} 1
llmfleet_canary_verdict{LABELS,measure="errors",verdict="fail"} 0
llmfleet_canary_verdict{LABELS,measure="ttft",verdict="fail"} 1
llmfleet_canary_verdict{LABELS,measure="ttft",verdict="pass"} 0
llmfleet_canary_verdict{LABELS,measure="output_length",verdict="fail"} 1
# TYPE llmfleet_canary_reason gauge
llmfleet_canary_reason{LABELS,measure="overall",reason="few_replicas"} 0
llmfleet_canary_reason{LABELS,measure="overall",reason="undecided"} 0
llmfleet_canary_reason{LABELS,measure="errors",reason="insufficient_data"} 1
# TYPE llmfleet_canary_driver gauge
llmfleet_canary_driver{LABELS,measure="errors"} 0
llmfleet_canary_driver{LABELS,measure="ttft"} 1
# TYPE llmfleet_canary_evidence gauge
llmfleet_canary_evidence{LABELS,measure="errors",verdict="fail"} 0
llmfleet_canary_evidence{LABELS,measure="errors",verdict="pass"} 0.61
llmfleet_canary_evidence{LABELS,measure="ttft",verdict="fail"} 1.19
llmfleet_canary_evidence{LABELS,measure="ttft",verdict="pass"} -0.2
llmfleet_canary_evidence{LABELS,measure="output_length",verdict="fail"} 4
# TYPE llmfleet_canary_observations gauge
llmfleet_canary_observations{LABELS,measure="errors",arm="canary"} 412
llmfleet_canary_observations{LABELS,measure="errors",arm="baseline"} 2390
llmfleet_canary_observations{LABELS,measure="ttft",arm="canary"} 420
llmfleet_canary_observations{LABELS,measure="ttft",arm="baseline"} 2400
llmfleet_canary_observations{LABELS,measure="output_length",arm="canary"} 412
llmfleet_canary_observations{LABELS,measure="output_length",arm="baseline"} 2390
# TYPE llmfleet_canary_latency_value_seconds gauge
llmfleet_canary_latency_value_seconds{LABELS,measure="ttft",statistic="p50"} 0.13
llmfleet_canary_latency_value_seconds{LABELS,measure="ttft",statistic="p95"} 0.24
# TYPE llmfleet_canary_latency_baseline_value_seconds gauge
llmfleet_canary_latency_baseline_value_seconds{LABELS,measure="ttft",statistic="p50"} 0.1
llmfleet_canary_latency_baseline_value_seconds{LABELS,measure="ttft",statistic="p95"} 0.2
# TYPE llmfleet_canary_share_value_ratio gauge
llmfleet_canary_share_value_ratio{LABELS,measure="errors",statistic="ratio"} 0.0025
# TYPE llmfleet_canary_share_baseline_value_ratio gauge
llmfleet_canary_share_baseline_value_ratio{LABELS,measure="errors",statistic="ratio"} 0
# TYPE llmfleet_canary_length_value gauge
llmfleet_canary_length_value{LABELS,measure="output_length",statistic="mean"} 42
# TYPE llmfleet_canary_length_baseline_value gauge
llmfleet_canary_length_baseline_value{LABELS,measure="output_length",statistic="mean"} 60
# TYPE llmfleet_canary_ratio gauge
llmfleet_canary_ratio{LABELS,measure="ttft",statistic="p50"} 1.3
llmfleet_canary_ratio{LABELS,measure="ttft",statistic="p95"} 1.2
llmfleet_canary_ratio{LABELS,measure="output_length",statistic="mean"} 0.7
# TYPE llmfleet_canary_low_ratio gauge
llmfleet_canary_low_ratio{LABELS,measure="ttft",statistic="p50"} 1.14
llmfleet_canary_low_ratio{LABELS,measure="output_length",statistic="mean"} 0.64
# TYPE llmfleet_canary_high_ratio gauge
llmfleet_canary_high_ratio{LABELS,measure="ttft",statistic="p50"} 1.5
llmfleet_canary_high_ratio{LABELS,measure="output_length",statistic="mean"} 0.77
# TYPE llmfleet_canary_replicas gauge
llmfleet_canary_replicas{LABELS,arm="canary"} 3
llmfleet_canary_replicas{LABELS,arm="baseline"} 17
llmfleet_canary_replicas{LABELS,arm="other"} 1
# TYPE llmfleet_canary_duration_seconds gauge
llmfleet_canary_duration_seconds{LABELS} 70
`, "LABELS", `model_name="chat",canary="new",baseline="old"`)

// verdictIs is the page with another overall verdict.
func verdictIs(verdict string, reasons ...string) string {
	page := strings.Replace(derived, `measure="overall",verdict="fail"} 1`, `measure="overall",verdict="fail"} 0`, 1)
	page = strings.Replace(page, `measure="overall",verdict="`+verdict+`"} 0`, `measure="overall",verdict="`+verdict+`"} 1`, 1)
	for _, reason := range reasons {
		page = strings.Replace(page, `measure="overall",reason="`+reason+`"} 0`, `measure="overall",reason="`+reason+`"} 1`, 1)
	}
	return page
}

const small = "fleets: [{name: chat, engine: vllm, model_name: chat, replicas: 20, arrivals: {rate: 1}}]\n"

const slower = "{kind: new_revision, replicas: [17, 18, 19], revision: new, prefill_factor: 1.5, output_factor: 0.7, from: 1m}"

// now is when the page was read, two minutes after the fleet began.
var now = time.Date(2026, 1, 2, 12, 2, 0, 0, time.UTC)

func comparisonOf(t *testing.T, text string) comparison {
	t.Helper()
	page, err := demo.ReadPage(strings.NewReader(text))
	require.NoError(t, err)
	return readComparison(page)
}

// reportOf prints what a page says of a fleet with a fault.
func reportOf(t *testing.T, page, fault string) string {
	t.Helper()
	scenario, err := fleetsim.Parse([]byte(small + "faults: [" + fault + "]"))
	require.NoError(t, err)
	got := comparisonOf(t, page)
	var out bytes.Buffer
	require.NoError(t, printReport(&out, &scenario, &got, now, 2*time.Minute))
	return out.String()
}

func TestReportSaysWhatDrivesTheVerdictAndByHowMuch(t *testing.T) {
	report := reportOf(t, derived, slower)
	assert.True(t, strings.HasPrefix(report, strings.TrimPrefix(`
Verdict:      FAIL, of revision new of chat after 70 s beside old
Driver:       ttft
By how much:  p50 130 ms, baseline 100 ms: a ratio of 1.30, between 1.14 and 1.50
By how much:  p95 240 ms, baseline 200 ms: a ratio of 1.20
Standing on:  420 observations of 3 replicas, beside 2400 of 17
Failed rightly: from 12:01:00 UTC on, 3 of 20 replicas serve new.
It takes 1.5 times as long for a prompt token, and answers in 0.7 times as many tokens.

MEASURE        VERDICT       EVIDENCE  STATISTIC  CANARY     BASELINE   RATIO  BETWEEN        OBSERVATIONS
ttft *         fail          1.19      p50        130 ms     100 ms     1.30   1.14 and 1.50  420 and 2400
errors *       inconclusive  0.00      ratio      0.3 %      0.0 %      -      -              412 and 2390
output_length  fail          4.00      mean       42 tokens  60 tokens  0.70   0.64 and 0.77  412 and 2390

VERDICT `, "\n")), report)
}

func TestReportIsHonest(t *testing.T) {
	same := "{kind: new_revision, pick: 3, revision: new, from: 1m}"
	for _, c := range []struct{ page, fault, want string }{
		{derived, same, "A false fail: from 12:01:00 UTC on, 3 of 20 replicas serve new.\nIt does the same as the one before.\n"},
		{verdictIs("pass"), same, "Passed rightly: "},
		{verdictIs("pass"), slower, "Passed, although it is worse: from 12:01:00 UTC on"},
		{verdictIs("inconclusive"), slower, "Not yet judged: "},
		{verdictIs("inconclusive", "few_replicas", "undecided"), slower, "Verdict:      INCONCLUSIVE (few_replicas, undecided), of revision new"},
		{derived, "", "Nothing was rolled out.\n"},
		{derived, strings.Replace(slower, "1m", "2m", 1), "Nothing was rolled out.\n"},
		{derived, strings.Replace(same, "revision: new", "revision: new, error_share: 0.02", 1), "It fails 2.0 % of its requests.\n"},
		{derived, strings.Replace(same, "revision: new", "revision: new, prompt_factor: 1.3", 1), "A false fail: "},
	} {
		assert.Contains(t, reportOf(t, c.page, c.fault), c.want, c.fault)
	}
}

func TestReportDoesNotJudgeWhatIsNotSimulated(t *testing.T) {
	page := derived
	for old, now := range map[string]string{
		`,measure="ttft"} 1`:   `,measure="ttft"} 0`,
		`,measure="errors"} 0`: `,measure="errors"} 0` + "\n" + `llmfleet_canary_driver{model_name="chat",measure="relevance"} 1`,
	} {
		page = strings.Replace(page, old, now, 1)
	}
	page += "# TYPE llmfleet_canary_quality_value gauge\n" + `llmfleet_canary_quality_value{measure="relevance",statistic="mean"} 0.65` + "\n"
	page += "# TYPE llmfleet_canary_quality_baseline_value gauge\n" + `llmfleet_canary_quality_baseline_value{measure="relevance",statistic="mean"} 0.8` + "\n"
	report := reportOf(t, page, slower)
	assert.Contains(t, report, "Driver:       relevance\nBy how much:  mean 0.65, baseline 0.80: ")
	assert.Contains(t, report, "\nNobody simulates relevance: whoever sends the scores knows whether that is right.\n")
	assert.NotContains(t, report, "rightly:")
}

func TestReportFitsATerminal(t *testing.T) {
	for line := range strings.Lines(reportOf(t, derived, slower)) {
		assert.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 110, line)
	}
}

func TestProgressIsCompleteWhenTheVerdictIsGivenAndWasTold(t *testing.T) {
	for page, want := range map[string][2]demo.Progress{
		"":                        {demo.Nothing, demo.Nothing},
		verdictIs("inconclusive"): {demo.Begun, demo.Begun},
		verdictIs("pass"):         {demo.Begun, demo.Complete},
		derived:                   {demo.Begun, demo.Complete},
	} {
		got := comparisonOf(t, page)
		for told, progress := range want {
			assert.Equal(t, progress, got.progress(told), "%s, %d events", got.verdict, told)
		}
	}
}

func TestTheLineSaysWhatIsKnownSoFar(t *testing.T) {
	for page, want := range map[string]string{
		derived:                           "3 replicas of new beside 17 of old: fail",
		verdictIs("pass", "few_replicas"): "3 replicas of new beside 17 of old: pass (few_replicas)",
		verdictIs("inconclusive"):         "3 replicas of new beside 17 of old: inconclusive; evidence of a fail: ttft 1.00",
		strings.Replace(verdictIs("inconclusive", "undecided"), `"fail"} 1.19`, `"fail"} 0.2`, 1): "3 replicas of new beside 17 of old: inconclusive (undecided)",
	} {
		got := comparisonOf(t, page)
		assert.Equal(t, want, got.line())
	}
}

func TestThePlotIsThatOfTheScenario(t *testing.T) {
	for faults, want := range map[string]string{
		"":     "Nothing is rolled out, and there should be no canary",
		slower: "1m0s after the start, 3 of 20 replicas are replaced by revision new",
	} {
		scenario, err := fleetsim.Parse([]byte(small + fmt.Sprintf("faults: [%s]", faults)))
		require.NoError(t, err)
		assert.Equal(t, want, plot(&scenario))
	}
}
