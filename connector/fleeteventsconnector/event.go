// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleeteventsconnector

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/llmfleet/llmfleet/connector/fleeteventsconnector/internal/metadata"
	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
)

// Names of events beside those of flags, and of their parts.
const (
	suffixOnset   = ".onset"
	suffixClear   = ".clear"
	variantChange = "llmfleet.replica.variant_change"
)

// Attributes of events that are no labels and no figures.
const (
	attributeReason   = "llmfleet.event.reason"
	attributeDuration = "llmfleet.event.duration"
	attributePrevious = "llmfleet.previous."
)

// standard is how the semantic conventions spell labels, so that an event meets
// what else is told of a pod or a node.
var standard = map[string]string{
	labelCluster: "k8s.cluster.name", labelNamespace: "k8s.namespace.name", labelPod: "k8s.pod.name",
	emit.AttributeNode: "k8s.node.name",
}

// journal is log records in the making.
type journal struct {
	logs    plog.Logs
	scopes  map[string]plog.LogRecordSlice // by what the resource says
	version string
	now     time.Time
	told    map[string]int64 // events by name
}

func newJournal(version string, now time.Time) *journal {
	return &journal{
		logs: plog.NewLogs(), scopes: make(map[string]plog.LogRecordSlice), version: version, now: now, told: make(map[string]int64),
	}
}

// event is how a turn is told.
type event struct {
	name     string
	severity plog.SeverityNumber
	body     string
	of       *reading      // whose labels and figures its attributes are
	labels   []fleet.Label // that it has beside them
}

// turned tells of a flag.
func (j *journal) turned(t turn, rd, inFleet *reading) {
	e := flags[t.metric].event(t, rd, inFleet)
	record := j.add(e.name, e.severity, rd)
	record.Body().SetStr(e.body)
	attributes := record.Attributes()
	describe(attributes, e.of, inFleet)
	for _, l := range e.labels {
		attributes.PutStr(l.Name, l.Value)
	}
	if t.is == off {
		attributes.PutStr(attributeReason, t.why.String())
		attributes.PutDouble(attributeDuration, t.lasted.Seconds())
	}
}

// changed tells of a variant.
func (j *journal) changed(r *rise) {
	record := j.add(variantChange, plog.SeverityNumberInfo, r.of)
	record.Body().SetStr(changeSentence(r.of.labels, &r.was, &r.is))
	attributes := record.Attributes()
	describe(attributes, r.of, nil)
	attributes.PutDouble(emit.ReplicaVariantChanges, r.count)
	for i, name := range variantNames {
		if r.is[i] != "" {
			attributes.PutStr(name, r.is[i])
		}
		if r.was[i] != "" {
			attributes.PutStr(attributePrevious+name, r.was[i])
		}
	}
}

func (j *journal) add(name string, severity plog.SeverityNumber, rd *reading) plog.LogRecord {
	j.told[name]++
	record := j.records(rd.resource).AppendEmpty()
	record.SetEventName(name)
	record.SetSeverityNumber(severity)
	record.SetSeverityText(strings.ToUpper(severity.String()))
	record.SetTimestamp(rd.at)
	record.SetObservedTimestamp(pcommon.NewTimestampFromTime(j.now))
	return record
}

// records are those of one writer of metrics.
func (j *journal) records(resource map[string]string) plog.LogRecordSlice {
	key := fmt.Sprint(resource) // in the order of keys
	if records, ok := j.scopes[key]; ok {
		return records
	}
	rl := j.logs.ResourceLogs().AppendEmpty()
	attributes := rl.Resource().Attributes()
	for _, name := range slices.Sorted(maps.Keys(resource)) {
		attributes.PutStr(name, resource[name])
	}
	attributes.PutStr("service.name", "llmfleet")
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName(metadata.ScopeName)
	sl.Scope().SetVersion(j.version)
	j.scopes[key] = sl.LogRecords()
	return sl.LogRecords()
}

// describe writes all labels and all figures of a reading and of its fleet.
func describe(into pcommon.Map, rd, inFleet *reading) {
	for _, l := range rd.labels {
		into.PutStr(l.Name, l.Value)
		if name := standard[l.Name]; name != "" {
			into.PutStr(name, l.Value)
		}
	}
	describeFigures(into, rd)
	if inFleet != nil {
		describeFigures(into, inFleet)
	}
}

func describeFigures(into pcommon.Map, rd *reading) {
	for _, f := range rd.figures {
		switch name := f.metric.Name; name {
		case emit.ReplicaOutlierCause, emit.CanaryDriver:
			if f.value != 0 {
				into.PutStr(name, f.own[0])
			}
		case emit.ReplicaOutlierSignal:
			f.list(into, name, f.own[0])
		case emit.CanaryReason:
			f.list(into, name, f.own[1])
		case emit.CanaryVerdict:
			f.list(into, name+"."+f.own[1], f.own[0])
		default:
			if flags[name] == nil { // of a flag, the event itself tells
				into.PutDouble(f.name(), f.value)
			}
		}
	}
}

// list adds to a list of those for which a metric is 1.
func (f *figure) list(into pcommon.Map, name, item string) {
	if f.value == 0 {
		return
	}
	items, _ := into.GetOrPutEmpty(name)
	if items.Type() != pcommon.ValueTypeSlice {
		items.SetEmptySlice()
	}
	items.Slice().AppendEmpty().SetStr(item)
}

// name is the figure's as an attribute: that of its metric, and what tells it
// from its siblings.
func (f *figure) name() string {
	parts := []string{f.metric.Name}
	for i, attribute := range f.metric.Attributes {
		switch {
		case f.own[i] == "":
		case attribute == emit.AttributeQuantile:
			parts = append(parts, percentile(f.own[i]))
		default:
			parts = append(parts, f.own[i])
		}
	}
	return strings.Join(parts, ".")
}
