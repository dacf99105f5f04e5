// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantshareprocessor

import (
	"time"

	"go.uber.org/zap"
)

// strangersEvery is how often at most it is said that tenants are of a model that
// nobody serves.
const strangersEvery = 10 * time.Minute

// mindStrangers counts accounts of tenants of which no engines are known. Nothing
// is told of them: what a client calls a model names no series of ours.
// In the first window, engines may not have been heard yet.
func (p *shareProcessor) mindStrangers(now time.Time) {
	if p.court.at.Sub(p.court.opened) < p.config.Window {
		return
	}
	for i := range p.accounts {
		a := &p.accounts[i]
		if window, _ := a.total(); a.joined || window.all() == 0 {
			continue
		}
		p.writer.withheld[noEngines]++
		if now.Sub(p.strangersAt) < strangersEvery {
			continue
		}
		p.strangersAt = now
		p.logger.Info("tenants use a model that no engine serves under this name, and no shares of it are told: name the engines' model under model_aliases",
			zap.String("source", a.source), zap.Any("fleet", a.keys))
	}
}
