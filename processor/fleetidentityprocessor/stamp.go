// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetidentityprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/intake"
)

// Attributes of our own series, beside facts and the replica.
const (
	keyCluster   = "cluster"
	keyNamespace = "namespace"
	keyPod       = "pod"
	keyRank      = "rank"
)

// unasked are the stamps that a configuration leaves out.
func (c *Config) unasked() intake.Stamps {
	var asked intake.Stamps
	for _, name := range c.Stamps {
		stamp, _ := intake.ParseStamp(name)
		asked |= stamp
	}
	return ^asked
}

// stamp adds what is known of a resident to attributes, but for some stamps: those
// that they have already, and those that nobody asked for. Nothing is overwritten.
func stamp(m pcommon.Map, but intake.Stamps, r *fleet.Resident, model string) {
	facts := *r.Facts()
	facts[fleet.ModelName] = model
	missing := 0
	for f, value := range facts {
		if but.Has(intake.StampOf(fleet.Fact(f))) {
			facts[f] = ""
		} else if value != "" {
			missing++
		}
	}
	if !but.Has(intake.StampReplica) {
		missing++
	}
	if missing == 0 {
		return
	}
	m.EnsureCapacity(m.Len() + missing)
	for f, value := range facts {
		if value != "" {
			m.PutStr(fleet.Fact(f).String(), value)
		}
	}
	if !but.Has(intake.StampReplica) {
		m.PutStr(emit.AttributeReplica, r.ID)
	}
}

// stampOwn adds what is known of a resident to attributes of its own.
func (c *core) stampOwn(m pcommon.Map, r *fleet.Resident) {
	stamp(m, intake.StampsOn(m)|c.unasked, r, r.Facts()[fleet.ModelName])
}
