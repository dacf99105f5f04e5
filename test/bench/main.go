// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Command bench measures speed and size of llmfleet and holds them to their
// targets. It prints one line a figure,
//
//	name value unit target pass|fail # note
//
// and exits with status 1 if one of them fails. Every figure is measured alone,
// on an otherwise idle machine; ratios compare two runs side by side.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
)

// figures are all that is measured, in the order of the lines.
func figures(collectorPath string) []figure {
	return []figure{
		{"consume_page_us", "us", atMost(15), pageOf(outlierStage), noAlarm},
		{"consume_page_alarm_us", "us", untargeted, pageOf(alarmStage), ""},
		{"consume_page_allocs", "allocs", atMost(0), allocsOf(outlierStage), ""},
		{"identity_page_us", "us", atMost(60), pageOf(identityStage, outlierStage), noAlarm},
		{"chain_page_us", "us", atMost(200), pageOf(everyProcessor...), ""},
		{"identity_bytes_per_replica", "By", atMost(2048), identityBytesPerReplica, ""},
		{"judge_10k_ms", "ms", atMost(100), judge10k, noAlarm},
		{"judge_consume_wait_us", "us", atMost(10_000), consumeWhileJudging, noAlarm},
		{"judge_consume_idle_us", "us", untargeted, consumeWhileIdle, noAlarm},
		{"alarm_overhead_ratio", "1", atMost(1.5), paneOverhead, "evaluations that end a pane of the alarm, of a healthy fleet"},
		{"alarm_block_overhead_ratio", "1", untargeted, blockOverhead, "of these, the one that ends a block of ten as well"},
		{"alarm_flagged_overhead_ratio", "1", untargeted, overheadOfFlagged, "the same while ten replicas are flagged, and causes are looked for"},
		{"emit_10k_ms", "ms", atMost(200), emit10k, ""},
		{"emit_peak_mb", "MB", atMost(32), emitPeak, ""},
		{"bytes_per_replica_signal", "By", atMost(1536), bytesPerReplicaSignal, noAlarm},
		{"alarm_bytes_per_replica_signal", "By", untargeted, alarmBytesPerReplicaSignal, "beside that of the window"},
		{"bytes_per_replica", "By", untargeted, bytesPerReplica, noAlarm},
		{"series_per_replica", "series", atMost(14), seriesOf(soonOutlier), noAlarm},
		{"series_per_replica_alarm", "series", untargeted, seriesOf(soonAlarm), neverFlagged},
		{"chain_series_per_replica", "series", atMost(20), seriesOf(soonIdentity, soonAlarm), neverFlagged},
		{"tenant_spans_per_s_core", "{span}/s", atLeast(300_000), tenantSpans, "of 20 attributes, tenants by Zipf's law over 1e6"},
		{"tenant_span_allocs", "allocs", atMost(1), tenantSpanAllocs, ""},
		{"tenant_heap_mb_1e6", "MB", atMost(10), tenantHeapOf(1_000_000), "after requests of as many tenants"},
		{"tenant_heap_mb_1e3", "MB", untargeted, tenantHeapOf(1_000), "the same of a thousand"},
		{"canary_consume_page_us", "us", atMost(25), pageOf(canaryStage), ""},
		{"canary_consume_page_allocs", "allocs", atMost(0), allocsOf(canaryStage), ""},
		{"canary_state_bytes_per_measure", "By", atMost(8192), canaryStateBytesPerMeasure, "of a canary and its baseline, three replicas included"},
		{"canary_bytes_per_replica_signal", "By", atMost(400), canaryBytesPerReplicaSignal, ""},
		{"canary_bytes_per_replica", "By", untargeted, canaryBytesPerReplica, "with all twelve signals, and what is kept beside them"},
		{"canary_judge_10k_ms", "ms", untargeted, canaryJudge10k, "100 fleets of 100 replicas, of which two are canaries"},
		{"coldstart_pods_per_s_core", "{pod}/s", atLeast(5000), coldStartPods, "27 facts a pod in, reports out"},
		{"coldstart_connector_pods_per_s_core", "{pod}/s", untargeted, coldStartConnector, "the same from log records to traces"},
		{"scrape_overhead_ratio", "1", atMost(1.05), scrapeOverhead{collectorPath}.measure, ""},
	}
}

const (
	noAlarm      = "alarm: null"
	neverFlagged = "of a replica that was never flagged"
)

func main() {
	collectorPath := flag.String("collector", "../dist/llmfleet", "the built collector")
	only := flag.String("only", ".", "measure only figures whose name matches this regular expression")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *collectorPath, *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run writes the lines; its error says what failed or could not be measured.
func run(ctx context.Context, out io.Writer, collectorPath, only string) error {
	chosen, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	var failures []error
	for _, f := range figures(collectorPath) {
		if !chosen.MatchString(f.name) {
			continue
		}
		line, pass, err := f.line(ctx)
		switch {
		case err != nil:
			failures = append(failures, err)
		case !pass:
			failures = append(failures, fmt.Errorf("%s misses its target", f.name))
		}
		if line != "" {
			fmt.Fprintln(out, line)
		}
	}
	return errors.Join(failures...)
}
