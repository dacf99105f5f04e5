// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"runtime"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

const memoryReplicas = 2000

// bytesPerReplicaSignal measures the heap that one more latency signal with
// 23 buckets takes for each replica, in a window of 10 panes.
func bytesPerReplicaSignal(context.Context) (bytes float64, err error) {
	one, errOne := heapPerReplica(fleet.TTFT)
	two, errTwo := heapPerReplica(fleet.TTFT, fleet.ITL)
	return two - one, errors.Join(errOne, errTwo)
}

// bytesPerReplica measures the whole heap for each replica with two such signals.
func bytesPerReplica(context.Context) (bytes float64, err error) {
	return heapPerReplica(fleet.TTFT, fleet.ITL)
}

func heapPerReplica(signals ...fleet.Signal) (bytes float64, err error) {
	page, err := simulateVLLM(paneLength)
	if err != nil {
		return 0, err
	}
	before := heap()
	t := newTrackedFleet(memoryReplicas, signals, twoOfOneShape(page))
	if err := t.fillWindow(); err != nil {
		return 0, err
	}
	after := heap()
	runtime.KeepAlive(t)
	runtime.KeepAlive(page)
	return float64(after-before) / memoryReplicas, nil
}

// twoOfOneShape makes points in which ITL has the 23 buckets of TTFT.
func twoOfOneShape(page *vllmPage) func(round int) (pmetric.Metrics, error) {
	part := readPart(page)
	return func(round int) (pmetric.Metrics, error) {
		md, err := part(round)
		if err != nil {
			return md, err
		}
		metrics := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
		metrics.RemoveIf(func(m pmetric.Metric) bool { return m.Name() == vllmITL })
		for i := range metrics.Len() {
			if metrics.At(i).Name() == vllmTTFT {
				itl := metrics.AppendEmpty()
				metrics.At(i).CopyTo(itl)
				itl.SetName(vllmITL)
				return md, nil
			}
		}
		return md, errors.New("the page has no TTFT")
	}
}

// alarmBytesPerReplicaSignal measures the heap that the alarm takes for one more
// signal of each replica, once it has seen whole blocks of panes.
func alarmBytesPerReplicaSignal(context.Context) (bytes float64, err error) {
	t, err := drawnMemory()
	if err != nil {
		return 0, err
	}
	one, errOne := alarmHeap(t, fleet.TTFT)
	two, errTwo := alarmHeap(t, fleet.TTFT, fleet.ITL)
	return (float64(two) - float64(one)) / memoryReplicas, errors.Join(errOne, errTwo)
}

func drawnMemory() (*trackedFleet, error) {
	page, err := simulateVLLM(paneLength)
	if err != nil {
		return nil, err
	}
	drawn, err := drawnFleet(memoryReplicas, 0)
	if err != nil {
		return nil, err
	}
	t := newTrackedFleet(memoryReplicas, alarmAsk.Signals, readPart(page, alarmReads...))
	t.pass, t.tell = drawn.Next, drawn.Tell
	return t, nil
}

// alarmHeap is how many bytes an alarm takes that watches these latencies.
func alarmHeap(t *trackedFleet, signals ...fleet.Signal) (bytes int64, err error) {
	alarm := newAlarm(signals)
	for range learningPanes * panesOfAlarm {
		end, err := t.fillPane()
		if err != nil {
			return 0, err
		}
		alarm.Begin()
		t.registry.Close(end, alarmAsk, func(f *fleet.Frame) { alarm.Judge(f) })
	}
	with := heap()
	runtime.KeepAlive(alarm)
	without := heap()
	runtime.KeepAlive(t)
	return int64(with) - int64(without), nil
}
