// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package k8sfleetreceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/capacity"
	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/metadata"
)

const (
	// fadeFor is how long a count is told as zero once nothing is counted any more:
	// longer than a backend shows the last value of a series that has gone.
	fadeFor = 6 * time.Minute
	// mostFading bounds how many are remembered of each metric.
	mostFading = 20_000
)

// capacityWriter writes reports as metrics.
type capacityWriter struct {
	builder *metadata.MetricsBuilder
	now     time.Time
	at      pcommon.Timestamp

	states  fading[stateKey]
	pending fading[pendingKey]
	gaps    fading[gapKey]
	claims  fading[claimKey]
	classes fading[classKey]
}

type (
	stateKey struct {
		place capacity.Place
		of    capacity.Identity
		state capacity.State
	}
	pendingKey struct {
		of     capacity.Identity
		reason string
	}
	gapKey struct {
		of              capacity.Identity
		missing, reason string
	}
	claimKey struct{ class, state string }
	classKey struct{ driver, pool, class string }
)

func newCapacityWriter(builder *metadata.MetricsBuilder) *capacityWriter {
	return &capacityWriter{builder: builder}
}

// fading remembers which counts were told, so that those that are not counted any
// more end at zero.
type fading[K comparable] struct{ last map[K]time.Time }

// told notes that a count was told.
func (f *fading[K]) told(key K, now time.Time) {
	if f.last == nil {
		f.last = make(map[K]time.Time)
	}
	if _, known := f.last[key]; known || len(f.last) < mostFading {
		f.last[key] = now
	}
}

// rest calls zero for each count that was told of late and not now.
func (f *fading[K]) rest(now time.Time, zero func(K)) {
	for key, last := range f.last {
		switch {
		case now.Sub(last) > fadeFor:
			delete(f.last, key)
		case !last.Equal(now):
			zero(key)
		}
	}
}

// write records a report's points.
func (w *capacityWriter) write(r *capacity.Report, now time.Time) {
	w.now, w.at = now, pcommon.NewTimestampFromTime(now)
	w.workloads(r.Workloads)
	w.gpus(r)
	w.pendingPods(r.Pending)
	w.devices(r.Devices)
	w.resourceClaims(r.Claims)
	for _, p := range r.Pools {
		w.builder.RecordLlmfleetInferencePoolMembersDataPoint(w.at, int64(p.Members), p.Namespace, p.Name)
		w.builder.RecordLlmfleetInferencePoolReadyDataPoint(w.at, int64(p.Ready), p.Namespace, p.Name)
	}
}

func (w *capacityWriter) workloads(all []capacity.Workload) {
	b := w.builder
	for i := range all {
		of := &all[i]
		model := modelOf(of.Identity)
		if source, known := metadata.MapAttributeSource[of.Source]; known && of.Desired >= 0 {
			b.RecordLlmfleetWorkloadDesiredDataPoint(w.at, int64(of.Desired), of.Namespace, of.Kind, of.Workload, source, model...)
		}
		b.RecordLlmfleetWorkloadCreatedDataPoint(w.at, int64(of.Created), of.Namespace, of.Kind, of.Workload, model...)
		b.RecordLlmfleetWorkloadBoundDataPoint(w.at, int64(of.Bound), of.Namespace, of.Kind, of.Workload, model...)
		b.RecordLlmfleetWorkloadReadyDataPoint(w.at, int64(of.Ready), of.Namespace, of.Kind, of.Workload, model...)
		for _, g := range of.Gaps {
			key := gapKey{of.Identity, g.Missing, g.Reason}
			w.gap(key, g.Replicas, g.Age)
			w.gaps.told(key, w.now)
		}
	}
	w.gaps.rest(w.now, func(key gapKey) { w.gap(key, 0, 0) })
}

func (w *capacityWriter) gap(key gapKey, replicas int, age time.Duration) {
	of, missing, model := key.of, metadata.MapAttributeMissing[key.missing], modelOf(key.of)
	w.builder.RecordLlmfleetWorkloadGapReplicasDataPoint(w.at, int64(replicas), of.Namespace, of.Kind, of.Workload, missing, key.reason, model...)
	w.builder.RecordLlmfleetWorkloadGapAgeDataPoint(w.at, age.Seconds(), of.Namespace, of.Kind, of.Workload, missing, key.reason, model...)
}

func (w *capacityWriter) gpus(r *capacity.Report) {
	b := w.builder
	for _, g := range r.GPUs {
		over := overflowOf(g.Overflow)
		b.RecordLlmfleetGpuInstalledDataPoint(w.at, int64(g.Installed), g.NodePool, g.GPUModel, over...)
		b.RecordLlmfleetGpuAllocatableDataPoint(w.at, int64(g.Allocatable), g.NodePool, g.GPUModel, over...)
		b.RecordLlmfleetGpuRequestedDataPoint(w.at, int64(g.Requested), g.NodePool, g.GPUModel, over...)
		if g.Allocatable > 0 {
			b.RecordLlmfleetGpuAllocationRatioDataPoint(w.at, float64(g.Requested)/float64(g.Allocatable), g.NodePool, g.GPUModel, over...)
		}
	}
	for i := range r.States {
		s := &r.States[i]
		key := stateKey{s.Place, s.Identity, s.State}
		w.state(key, s.GPUs)
		w.states.told(key, w.now)
	}
	w.states.rest(w.now, func(key stateKey) { w.state(key, 0) })
}

func (w *capacityWriter) state(key stateKey, n int) {
	with := append(holderOf(key.of), overflowOf(key.place.Overflow && !key.of.Overflow)...)
	w.builder.RecordLlmfleetGpuStateDataPoint(w.at, int64(n), key.place.NodePool, key.place.GPUModel, metadata.MapAttributeState[string(key.state)], with...)
}

func (w *capacityWriter) pendingPods(all []capacity.Pending) {
	for i := range all {
		p := &all[i]
		key := pendingKey{p.Identity, p.Reason}
		w.waiting(key, p.Pods, p.GPUs, p.Oldest)
		w.pending.told(key, w.now)
	}
	w.pending.rest(w.now, func(key pendingKey) { w.waiting(key, 0, 0, 0) })
}

func (w *capacityWriter) waiting(key pendingKey, pods, gpus int, oldest time.Duration) {
	with := holderOf(key.of)
	w.builder.RecordLlmfleetGpuPendingPodsDataPoint(w.at, int64(pods), key.reason, with...)
	w.builder.RecordLlmfleetGpuPendingGpusDataPoint(w.at, int64(gpus), key.reason, with...)
	w.builder.RecordLlmfleetGpuPendingAgeDataPoint(w.at, oldest.Seconds(), key.reason, with...)
}

func (w *capacityWriter) devices(all []capacity.Devices) {
	b := w.builder
	for i := range all {
		d := &all[i]
		if d.Complete {
			b.RecordLlmfleetDraDeviceInstalledDataPoint(w.at, int64(d.Installed), d.Driver, d.Pool)
			b.RecordLlmfleetDraDeviceAllocatableDataPoint(w.at, int64(d.Allocatable), d.Driver, d.Pool)
			b.RecordLlmfleetDraDeviceTaintedDataPoint(w.at, int64(d.Tainted), d.Driver, d.Pool)
		}
		for class, n := range d.Classes {
			b.RecordLlmfleetDraDeviceAllocatedDataPoint(w.at, n, d.Driver, d.Pool, class)
			w.classes.told(classKey{d.Driver, d.Pool, class}, w.now)
		}
		for name, ratio := range d.Shared {
			b.RecordLlmfleetDraDeviceSharedRatioDataPoint(w.at, ratio, d.Driver, d.Pool, name)
		}
	}
	w.classes.rest(w.now, func(key classKey) {
		b.RecordLlmfleetDraDeviceAllocatedDataPoint(w.at, 0, key.driver, key.pool, key.class)
	})
}

func (w *capacityWriter) resourceClaims(all []capacity.Claims) {
	for _, c := range all {
		key := claimKey{c.Class, c.State}
		w.claim(key, c.Count, c.Oldest)
		w.claims.told(key, w.now)
	}
	w.claims.rest(w.now, func(key claimKey) { w.claim(key, 0, 0) })
}

func (w *capacityWriter) claim(key claimKey, n int, oldest time.Duration) {
	state := metadata.MapAttributeClaimState[key.state]
	w.builder.RecordLlmfleetDraClaimCountDataPoint(w.at, int64(n), key.class, state)
	if oldest >= 0 {
		w.builder.RecordLlmfleetDraClaimAgeDataPoint(w.at, oldest.Seconds(), key.class, state)
	}
}

func modelOf(of capacity.Identity) (with []metadata.MetricAttributeOption) {
	if of.Model != "" {
		with = append(with, metadata.WithModelNameMetricAttribute(of.Model))
	}
	return with
}

func overflowOf(over bool) (with []metadata.MetricAttributeOption) {
	if over {
		with = append(with, metadata.WithOverflowMetricAttribute(true))
	}
	return with
}

// holderOf names a workload, where there is one.
func holderOf(of capacity.Identity) []metadata.MetricAttributeOption {
	with := overflowOf(of.Overflow)
	if of.Workload != "" {
		with = append(with, metadata.WithOfNamespaceMetricAttribute(of.Namespace),
			metadata.WithOfKindMetricAttribute(of.Kind), metadata.WithOfWorkloadMetricAttribute(of.Workload))
	}
	return append(with, modelOf(of)...)
}
