// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleeteventsconnector

import (
	"context"
	"hash/maphash"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/scenariotest"
	"github.com/llmfleet/llmfleet/internal/window"
)

// TestSentencesOfVerdicts: what is said of each kind of measure, and of what is
// withheld. Each case is what one evaluation shows of canary v2 of m, the labels of
// which are left out of its lines.
func TestSentencesOfVerdicts(t *testing.T) {
	const v2 = "Canary v2 of m "
	failing, passing := turn{of: "overall", was: inconclusive, is: fail}, turn{of: "overall", was: inconclusive, is: pass}
	for name, c := range map[string]struct {
		turn  turn
		shown string
		want  string
	}{
		"a latency without a ratio": {
			failing, `
			driver{measure="queue_time"} 1
			latency_value{measure="queue_time",statistic="p50"} 0.02
			latency_baseline_value{measure="queue_time",statistic="p50"} 0
			observations{measure="queue_time",arm="canary"} 600
			observations{measure="queue_time",arm="baseline"} 11400`,
			v2 + "fails against v1: queue_time p50 20.0 ms against 0 ms, 20.0 ms more, on 600 and 11400 observations.",
		},
		"a rate that fell, without a ratio": {
			failing, `
			driver{measure="generation_tokens"} 1
			rate_value{measure="generation_tokens",statistic="mean"} 410.4
			rate_baseline_value{measure="generation_tokens",statistic="mean"} 530`,
			v2 + "fails against v1: generation_tokens mean 410 tokens/s against 530 tokens/s, 120 tokens/s less.",
		},
		"a quality, bounded above alone": {
			failing, `
			driver{measure="helpfulness"} 1
			quality_value{measure="helpfulness",statistic="mean"} 0.612
			quality_baseline_value{measure="helpfulness",statistic="mean"} 0.72
			ratio{measure="helpfulness",statistic="mean"} 0.85
			high_ratio{measure="helpfulness",statistic="mean"} 0.97`,
			v2 + "fails against v1: helpfulness mean 0.612 against 0.720, 0.850 times (at most 0.970).",
		},
		"a length, bounded below alone": {
			failing, `
			driver{measure="output_length"} 1
			length_value{measure="output_length",statistic="mean"} 1333
			length_baseline_value{measure="output_length",statistic="mean"} 1000
			ratio{measure="output_length",statistic="mean"} 1.333
			low_ratio{measure="output_length",statistic="mean"} 1.2`,
			v2 + "fails against v1: output_length mean 1333 tokens against 1000 tokens, 1.33 times (at least 1.20).",
		},
		"a ratio that nothing bounds": {
			failing, `
			driver{measure="e2e"} 1
			latency_value{measure="e2e",statistic="p95"} 12.34
			latency_baseline_value{measure="e2e",statistic="p95"} 9.996
			ratio{measure="e2e",statistic="p95"} 1.234`,
			v2 + "fails against v1: e2e p95 12.3 s against 10.0 s, 1.23 times.",
		},
		"a share that is none of the canary's": {
			failing, `
			driver{measure="prefix_hits"} 1
			share_value_ratio{measure="prefix_hits",statistic="ratio"} 0
			share_baseline_value_ratio{measure="prefix_hits",statistic="ratio"} 0.8125
			ratio{measure="prefix_hits",statistic="ratio"} 0
			observations{measure="prefix_hits",arm="canary"} 120000
			observations{measure="prefix_hits",arm="baseline"} 2280000`,
			v2 + "fails against v1: prefix_hits none of 120000 against 81.2 % of 2280000.",
		},
		"shares of unknown counts": {
			failing, `
			driver{measure="errors"} 1
			share_value_ratio{measure="errors",statistic="ratio"} 1
			share_baseline_value_ratio{measure="errors",statistic="ratio"} 0`,
			v2 + "fails against v1: errors 100 % against none.",
		},
		"no ratio, and yet a bound of it": {
			failing, `
			driver{measure="errors"} 1
			share_value_ratio{measure="errors",statistic="ratio"} 0.01
			share_baseline_value_ratio{measure="errors",statistic="ratio"} 0
			low_ratio{measure="errors",statistic="ratio"} 1.3434
			observations{measure="errors",arm="canary"} 400
			observations{measure="errors",arm="baseline"} 7600`,
			v2 + "fails against v1: errors 1 % of 400 against none of 7600, at least 1.34 times.",
		},
		"a bound that is none": {
			passing, `
			driver{measure="errors"} 1
			share_value_ratio{measure="errors",statistic="ratio"} 0
			share_baseline_value_ratio{measure="errors",statistic="ratio"} 0
			low_ratio{measure="errors",statistic="ratio"} 0
			observations{measure="errors",arm="canary"} 1200
			observations{measure="errors",arm="baseline"} 1200`,
			v2 + "passes against v1: errors none of 1200 against none of 1200.",
		},
		"the statistic that both arms have": {
			failing, `
			driver{measure="ttft"} 1
			latency_baseline_value{measure="ttft",statistic="p95"} 9
			latency_value{measure="ttft",statistic="p99"} 99
			latency_value{measure="ttft",statistic="p50"} 0.3
			latency_baseline_value{measure="ttft",statistic="p50"} 0.2`,
			v2 + "fails against v1: ttft p50 300 ms against 200 ms, 100 ms more.",
		},
		"no statistic that both have": {
			failing, `
			driver{measure="ttft"} 1
			latency_baseline_value{measure="ttft",statistic="p95"} 9
			observations{measure="ttft",arm="canary"} 40
			observations{measure="ttft",arm="baseline"} 900`,
			v2 + "fails against v1: ttft, on 40 and 900 observations.",
		},
		"a pass has its own evidence": {
			passing, `
			driver{measure="ttft"} 1
			evidence{measure="ttft",verdict="fail"} 0.1
			evidence{measure="ttft",verdict="pass"} 1.26
			duration 5400`,
			v2 + "passes against v1: ttft; evidence 1.3; compared for 1h30m.",
		},
		"nothing but the verdict": {passing, `verdict{measure="overall",verdict="pass"} 1`, "Canary v2 of m passes against v1."},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, verdictSentence(c.turn, shownOf(t, `model_name="m",canary="v2",baseline="v1"`, c.shown)))
		})
	}
	for name, labels := range map[string]string{"no names": "", "names that are none": `,canary="none",baseline="none"`} {
		rd := shownOf(t, `model_name="m",engine_name="vllm",namespace="prod"`+labels, `duration 60`)
		assert.Equal(t, "The canary of m (vllm) in prod passes against its baseline: compared for 1m.", verdictSentence(passing, rd), name)
		ended := turn{of: "overall", was: fail, is: off, why: silent, lasted: 90 * time.Second}
		assert.Equal(t, "The canary of m (vllm) in prod is not heard of any more; its verdict had been fail for 1m30s: compared for 1m.", verdictSentence(ended, rd), name)
	}
}

// shownOf reads the lines of one evaluation as a call would bring them: metrics of
// canaries without their prefix and the labels that all have.
func shownOf(t *testing.T, labels, text string) *reading {
	t.Helper()
	var page strings.Builder
	for line := range strings.Lines(strings.TrimSpace(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, own, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
		page.WriteString("llmfleet.canary." + name + "{" + strings.TrimSuffix(labels+","+own, ",") + "} " + value + "\n")
	}
	p := scenariotest.Page{Target: map[string]string{}, Lines: scenariotest.Lines(t, page.String(), 1)[0]}
	all := reader{seed: maphash.MakeSeed()}.read(scenariotest.Targets{}.Scrape(&p, scenariotest.Epoch))
	require.Len(t, all, 1)
	return all[0]
}

// TestVerdictsOfOurWriter: what emit.Writer writes of a canary is what is read, its
// ends in a call of their own.
func TestVerdictsOfOurWriter(t *testing.T) {
	s := newStageOf(t, func(*Config) {})
	w := emit.NewWriter(emit.Options{Component: "canary_delta", Instance: "gw-0", Next: func(_ context.Context, md pmetric.Metrics) error {
		s.consume(md)
		return nil
	}})
	verdicts := [...]string{"inconclusive", "pass", "fail"}
	var overall, ttft [len(verdicts)]emit.Slot
	for i, v := range verdicts {
		overall[i] = w.Slot(emit.CanaryVerdict, fleet.Label{Name: "measure", Value: "overall"}, fleet.Label{Name: "verdict", Value: v})
		ttft[i] = w.Slot(emit.CanaryVerdict, fleet.Label{Name: "measure", Value: "ttft"}, fleet.Label{Name: "verdict", Value: v})
	}
	evaluate := func(at time.Duration, said ...string) {
		w.Begin(window.Instant(at))
		for _, v := range said {
			w.About(t.Context(), []fleet.Label{{Name: "model_name", Value: "m"}, {Name: "canary", Value: "v2"}, {Name: "baseline", Value: "v1"}})
			for i := range verdicts {
				value := 0.0
				if verdicts[i] == v {
					value = 1
				}
				w.Set(overall[i], value)
				w.Set(ttft[i], value)
			}
		}
		require.NoError(t, w.End(t.Context()))
	}
	evaluate(time.Minute, "inconclusive")
	evaluate(2*time.Minute, "fail")
	evaluate(3 * time.Minute)
	evaluate(4*time.Minute, "inconclusive")
	assert.Equal(t, []string{
		"Canary v2 of m fails against v1: it fails in ttft.", "Canary v2 of m is no longer compared with v1; its verdict had been fail for 1m.",
	}, s.bodies())
}
