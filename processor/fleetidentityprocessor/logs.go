// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetidentityprocessor

import (
	"context"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/processor"
)

var _ processor.Logs = (*logsProcessor)(nil)

// logsProcessor stamps the resources of logs.
type logsProcessor struct {
	part
	next consumer.Logs
}

// ConsumeLogs stamps logs and passes them on.
func (p *logsProcessor) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	resources := ld.ResourceLogs()
	for i := range resources.Len() {
		attributes := resources.At(i).Resource().Attributes()
		if own := p.clerk.Desk(attributes).Own(); own != nil {
			p.stampOwn(attributes, own)
		}
	}
	return p.next.ConsumeLogs(ctx, ld)
}
