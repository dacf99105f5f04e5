// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"maps"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
)

// inform learns what the labels of a page's info series tell. An engine may
// have several; they are its configuration together. A page without their values
// says nothing.
func (d *Desk) inform(infos []infoSighting) {
	labels := d.labelsOf(infos)
	if labels == 0 {
		return
	}
	d.informing.Lock()
	defer d.informing.Unlock()
	if labels == d.informed && !slices.ContainsFunc(d.configured, (*fleet.Resident).Gone) {
		return
	}
	told := make(map[*fleet.Resident]*configured)
	for _, seen := range infos {
		entry := &dialect.Entry{Dialect: seen.info.Dialect}
		eachInfo(seen.metric, func(attributes pcommon.Map) {
			face := d.face(entry, attributes)
			if face.Resident == nil {
				return
			}
			if told[face.Resident] == nil {
				told[face.Resident] = new(configured)
			}
			told[face.Resident].add(configuration(seen.info, attributes))
		})
	}
	if len(told) == 0 {
		return // nobody is known by now
	}
	d.informed, d.configured = labels, slices.Collect(maps.Keys(told))
	for r, c := range told {
		r.Learn(fleet.FromEngine, c.together())
	}
}

// labelsOf hashes all that info series say, in any order; 0 if there are none.
func (d *Desk) labelsOf(infos []infoSighting) (all fleet.ID) {
	for i := range infos {
		eachInfo(infos[i].metric, func(attributes pcommon.Map) {
			series, notes := d.clerk.names.labels(attributes)
			all += series + notes
		})
	}
	return all
}

// eachInfo calls f with the labels of each series that has a value.
func eachInfo(m pmetric.Metric, f func(pcommon.Map)) {
	if m.Type() != pmetric.MetricTypeGauge {
		return
	}
	points := m.Gauge().DataPoints()
	for i := range points.Len() {
		if point := points.At(i); !point.Flags().NoRecordedValue() {
			f(point.Attributes())
		}
	}
}

// configured is what the info series of one resident tell.
type configured struct {
	facts  fleet.Facts
	hashes []string
}

func (c *configured) add(told fleet.Facts) {
	for f, value := range told {
		if value != "" && (c.facts[f] == "" || value < c.facts[f]) {
			c.facts[f] = value
		}
	}
	if hash := told[fleet.ConfigHash]; hash != "" && !slices.Contains(c.hashes, hash) {
		c.hashes = append(c.hashes, hash)
	}
}

// together is what they tell together.
func (c *configured) together() *fleet.Facts {
	if len(c.hashes) > 1 {
		slices.Sort(c.hashes)
		c.facts[fleet.ConfigHash] = digest(c.hashes)
	}
	return &c.facts
}

// configuration is what the labels of one info series tell. The hash is of the
// labels that describe the configuration, whatever their order.
func configuration(info *dialect.Info, attributes pcommon.Map) fleet.Facts {
	told := func(labels []string) string {
		for _, label := range labels {
			if v := textOf(attributes, label); v != "" && v != "None" {
				return v
			}
		}
		return ""
	}
	facts := fleet.Facts{fleet.EngineVersion: told(info.EngineVersion), fleet.ModelRevision: told(info.ModelRevision)}
	var parts []string
	for _, label := range info.Config {
		if v, ok := attributes.Get(label); ok {
			parts = append(parts, label+"="+v.AsString())
		}
	}
	if len(parts) > 0 {
		slices.Sort(parts)
		facts[fleet.ConfigHash] = digest(append(parts, info.Name))
	}
	return facts
}
