// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"
	"hash/maphash"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// Labels of dcgm-exporter beside those that its dialect names.
var (
	indexLabels   = []string{"gpu"}            // of the GPU on its node
	instanceLabel = []string{"GPU_I_ID"}       // of an instance that a GPU is cut into (MIG); each may be another pod's
	holderUID     = []string{"pod_uid"}        // of the pod that holds it
	claimLabel    = []string{"dra_claim_name"} // the resource claim that it was allocated for
	podOfResource = []string{resourcePod}
)

// blank is where a value stands for an unknown one, in whatever unit: DCGM has
// 2^63 less a little for it, which in nanoseconds could pass for a time.
const blank = 1 << 62

// inspector folds what one resource's metrics tell of accelerators into their
// store. Whose they are stands in the labels, by which the series of one pod's
// accelerator are found again: other labels may come and go, as the text of an
// XID error does.
type inspector struct {
	*Reader
	resource pcommon.Map
	*found
}

// inspect folds all that the page tells of accelerators in.
func (r *Reader) inspect(p *page, resource pcommon.Map) {
	for i := range p.devices {
		x := inspector{r, resource, &p.devices[i]}
		if x.repeats(p.devices) {
			r.names.tally.ignore(Unspoken, x.metric.Name(), instanceOf(resource))
			continue
		}
		x.inspect()
	}
}

// repeats tells whether a preferred name on the page tells the same.
func (x *inspector) repeats(devices []found) bool {
	return slices.ContainsFunc(devices, func(o found) bool {
		return o.Alias < x.Alias && o.Entry.Signal == x.Entry.Signal && o.Entry.Dialect == x.Entry.Dialect
	})
}

func (x *inspector) inspect() {
	m := x.metric
	switch {
	case isEcho(m, x.Entry):
		x.ignore(Unspoken)
	case !reads(x.Entry, m):
		x.ignore(Type)
	case m.Type() == pmetric.MetricTypeGauge:
		x.points(m.Gauge().DataPoints(), false)
	case m.Type() == pmetric.MetricTypeSum:
		x.points(m.Sum().DataPoints(), m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityDelta)
	default: // no accelerator tells any of this in a histogram
		x.ignore(Type)
	}
}

func (x *inspector) ignore(why Reason) {
	x.names.tally.ignore(why, x.metric.Name(), instanceOf(x.resource))
}

func (x *inspector) points(points pmetric.NumberDataPointSlice, delta bool) {
	for i := range points.Len() {
		p := points.At(i)
		accelerator, why := x.accelerator(p.Attributes(), !p.Flags().NoRecordedValue())
		switch {
		case why != 0:
			x.ignore(why)
		case p.Flags().NoRecordedValue():
			if accelerator != nil {
				accelerator.Suspend(x.Entry.Signal, instant(p.Timestamp()))
			}
			x.ignore(Unrecorded)
		default:
			x.observe(accelerator, p, delta)
		}
	}
}

func (x *inspector) observe(accelerator *fleet.Accelerator, p pmetric.NumberDataPoint, delta bool) {
	signal, at, raw := x.Entry.Signal, instant(p.Timestamp()), number(p)
	value := raw * x.Entry.Scale
	if !x.Entry.InRange(value) || raw > blank {
		x.ignore(Range)
		return
	}
	var outcome window.Outcome
	if signal.Kind() == fleet.Gauge {
		outcome = accelerator.ObserveGauge(signal, at, value)
	} else {
		var err error
		sample := window.Sample{At: at, Start: instant(p.StartTimestamp()), Delta: delta}
		if outcome, err = accelerator.ObserveCounter(signal, x.id^salted(delta), value, sample); err != nil {
			x.ignore(Limit)
			return
		}
	}
	switch {
	case outcome == window.Duplicate: // containers of one pod, or virtual GPUs, each tell the one GPU's
		x.ignore(Unspoken)
	case outcome != window.Accepted:
		x.ignore(Reason(outcome))
	}
	if outcome.Used() {
		x.observed.Add(1)
	}
}

// accelerator finds the accelerator that a point tells of, or makes it known if
// it may; otherwise why it tells of none.
func (x *inspector) accelerator(attributes pcommon.Map, create bool) (*fleet.Accelerator, Reason) {
	read := point{attributes: attributes, resource: x.resource, entry: x.Entry, models: x.models}
	if why := read.refusal(); why != 0 {
		return nil, why
	}
	labels := &x.Entry.Dialect.Labels
	pod := borrowed(attributes, labels.Pod)
	if pod == "" || pod == borrowed(x.resource, podOfResource) { // nobody's: a scrape puts the exporter's own pod there
		if borrowed(attributes, claimLabel) != "" {
			return nil, ClaimOnly
		}
		return nil, NoPod
	}
	id := x.names.texts(
		pod, borrowed(attributes, labels.Namespace), borrowed(attributes, holderUID),
		cmp.Or(borrowed(attributes, labels.Replica), borrowed(attributes, indexLabels)), borrowed(attributes, instanceLabel),
	)
	accelerator := x.accelerators.Accelerator(id)
	if accelerator != nil || !create {
		return accelerator, 0
	}
	place := fleet.Place{
		Where: fleet.Where{Namespace: read.told(labels.Namespace), Pod: read.told(labels.Pod)}, UID: read.told(holderUID),
	}
	if x.clustered {
		place.Cluster = read.key(keyCluster)
	}
	accelerator, err := x.accelerators.Hold(id, &place)
	if err != nil {
		return nil, Limit
	}
	return accelerator, 0
}

// texts hashes texts in their order.
func (n *names) texts(all ...string) fleet.ID {
	var sum uint64
	for _, text := range all {
		sum = mix(sum, maphash.String(n.seed, text))
	}
	return fleet.ID(sum)
}
