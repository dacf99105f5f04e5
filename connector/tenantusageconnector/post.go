// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantusageconnector

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/llmfleet/llmfleet/connector/tenantusageconnector/internal/metadata"
)

// postRecords is how many records one plog.Logs holds at most.
const postRecords = 1000

// post is log records on their way to the next component.
type post struct {
	from     *logsConnector
	observed pcommon.Timestamp
	batches  []plog.Logs
	last     plog.LogRecordSlice // of the newest batch
	written  [extentCount]int64
}

func (l *logsConnector) newPost(now time.Time) *post {
	return &post{from: l, observed: pcommon.NewTimestampFromTime(now)}
}

// add begins a record.
func (p *post) add(of extent, event string, at pcommon.Timestamp) plog.LogRecord {
	p.written[of]++
	if len(p.batches) == 0 || p.last.Len() >= postRecords {
		p.begin()
	}
	record := p.last.AppendEmpty()
	record.SetEventName(event)
	record.SetSeverityNumber(plog.SeverityNumberInfo)
	record.SetSeverityText("INFO")
	record.SetTimestamp(at)
	record.SetObservedTimestamp(p.observed)
	return record
}

// begin begins a batch.
func (p *post) begin() {
	logs := plog.NewLogs()
	rl := logs.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.name", "llmfleet")
	rl.Resource().Attributes().PutStr("service.instance.id", p.from.instance)
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName(metadata.ScopeName)
	sl.Scope().SetVersion(p.from.version)
	p.batches, p.last = append(p.batches, logs), sl.LogRecords()
}

// full tells whether a whole batch waits to be sent.
func (p *post) full() bool { return len(p.batches) > 0 && p.last.Len() >= postRecords }

// send sends what waits. What is refused is not tried again: that is the task of
// the exporter's queue.
func (p *post) send(ctx context.Context) {
	for _, logs := range p.batches {
		n := logs.LogRecordCount()
		if err := p.from.next.ConsumeLogs(ctx, logs); err != nil {
			p.from.telemetry.ConnectorTenantUsageLost.Add(ctx, int64(n))
			p.from.logger.Error("records of tenants were refused, and are lost", zap.Int("records", n), zap.Error(err))
		}
	}
	p.batches = nil
	for of, n := range p.written {
		if n > 0 {
			p.from.telemetry.ConnectorTenantUsageRecords.Add(ctx, n, inRecords[of])
		}
	}
	p.written = [extentCount]int64{}
}
