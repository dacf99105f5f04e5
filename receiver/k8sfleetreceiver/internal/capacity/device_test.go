// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package capacity_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/capacity"
)

func TestPoolGenerations(t *testing.T) {
	four := devices(4)
	r := report(fleet(), slice("old", "n", 1, 1, four...), slice("a", "n", 2, 2, four[:2]...), slice("b", "n", 2, 2, four[2:]...))
	assert.Equal(t, 4, r.Devices[0].Installed, "the slices of an older generation do not count again")

	r = report(fleet(), slice("old", "n", 1, 1, four...), slice("a", "n", 2, 2, four[:2]...))
	assert.False(t, r.Devices[0].Complete, "one slice of two")
	assert.Zero(t, r.Devices[0].Installed)
}

func TestAllocatedDevices(t *testing.T) {
	admin := func(r *resourcev1.DeviceRequestAllocationResult) { r.AdminAccess = new(true) }
	shared := func(id types.UID, memory string) func(*resourcev1.DeviceRequestAllocationResult) {
		return func(r *resourcev1.DeviceRequestAllocationResult) {
			r.ShareID = &id
			r.ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(memory)}
		}
	}
	all := devices(4)
	all[3].AllowMultipleAllocations = new(true)
	all[3].Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}}
	r := report(fleet(), slice("s", "n", 1, 1, all...),
		claim("a", got("n", "gpu-0")), claim("monitor", got("n", "gpu-0", admin), got("n", "gpu-1", admin)),
		claim("half", got("n", "gpu-3", shared("x", "40Gi"))), claim("quarter", got("n", "gpu-3", shared("y", "20Gi"))))
	require.Len(t, r.Devices, 1)
	assert.Equal(t, capacity.Devices{
		Driver: gpuDriver, Pool: "n", Complete: true, Installed: 4, Allocatable: 4,
		Classes: map[string]float64{gpuDriver: 2}, Shared: map[string]float64{"memory": 0.75},
	}, r.Devices[0])

	r = report(fleet(), claim("half", got("n", "gpu-3", shared("x", "40Gi"))), claim("quarter", got("n", "gpu-3", shared("y", "20Gi"))))
	assert.Equal(t, map[string]float64{gpuDriver: 1}, r.Devices[0].Classes, "its slices are not there, and it is one all the same")
}

// A GPU of 80 Gi and seven partitions of it, in the counters of one set; 8 Gi of the
// host are shared by all GPUs and make none of them.
func TestPartitions(t *testing.T) {
	counter := func(set, amount string) resourcev1.DeviceCounterConsumption {
		return resourcev1.DeviceCounterConsumption{CounterSet: set, Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse(amount)}}}
	}
	var all []resourcev1.Device
	counters := slice("counters", "n", 1, 2)
	counters.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "host", Counters: counter("", "8Gi").Counters}}
	for i := range 2 {
		set := fmt.Sprintf("gpu-%d-counters", i)
		counters.Spec.SharedCounters = append(counters.Spec.SharedCounters, resourcev1.CounterSet{Name: set, Counters: counter("", "80Gi").Counters})
		all = append(all, resourcev1.Device{
			Name: fmt.Sprintf("gpu-%d", i), ConsumesCounters: []resourcev1.DeviceCounterConsumption{counter(set, "80Gi"), counter("host", "1Gi")},
		})
		for j := range 7 {
			all = append(all, resourcev1.Device{
				Name: fmt.Sprintf("gpu-%d-mig-%d", i, j), ConsumesCounters: []resourcev1.DeviceCounterConsumption{counter(set, "10Gi")},
			})
		}
	}
	partition := func(c *resourcev1.ResourceClaim) {
		c.Spec.Devices.Requests[0].Exactly.DeviceClassName = "mig.nvidia.com"
	}
	r := report(fleet(), counters, slice("s", "n", 1, 2, all...),
		claim("a", partition, got("n", "gpu-0-mig-0"), reservedFor("p")), claim("b", partition, got("n", "gpu-0-mig-1")),
		claim("c", got("n", "gpu-1")), pod("p", "n", 0, uses("a")))
	assert.Equal(t, 2, r.Devices[0].Installed, "a GPU and its partitions are one")
	assert.Equal(t, map[string]float64{"mig.nvidia.com": 0.25, gpuDriver: 1}, r.Devices[0].Classes, "twice 10 of 80 Gi")
	assert.Equal(t, map[capacity.State]int{capacity.AllocatedReady: 1, capacity.Other: 1}, states(r))
}

// The same GPU as such, for a virtual machine, and as a partition; without counters.
func TestDevicesOfOneParent(t *testing.T) {
	uuid := func(name, key string) resourcev1.Device {
		return resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			resourcev1.QualifiedName(key): {StringValue: new("GPU-1")}, "type": {StringValue: new(key)},
		}}
	}
	r := report(fleet(), slice("s", "n", 1, 1, uuid("vfio", "uuid"), uuid("gpu", "uuid"), uuid("mig-0", "parentUUID"), uuid("mig-1", "parentUUID")),
		claim("a", got("n", "mig-1")))
	assert.Equal(t, 1, r.Devices[0].Installed)
	assert.Equal(t, map[string]float64{gpuDriver: 0.5}, r.Devices[0].Classes, "one of two partitions")
}

func TestDeviceTaintRule(t *testing.T) {
	rule := func(effect resourcev1.DeviceTaintEffect, selects *resourcev1.DeviceTaintSelector) *resourcev1.DeviceTaintRule {
		return &resourcev1.DeviceTaintRule{
			ObjectMeta: metav1.ObjectMeta{Name: "rule"},
			Spec:       resourcev1.DeviceTaintRuleSpec{DeviceSelector: selects, Taint: resourcev1.DeviceTaint{Key: "broken", Effect: effect}},
		}
	}
	for name, c := range map[string]struct {
		rule    *resourcev1.DeviceTaintRule
		tainted int
	}{
		"one device":      {rule(resourcev1.DeviceTaintEffectNoSchedule, &resourcev1.DeviceTaintSelector{Pool: new("n"), Device: new("gpu-1")}), 1},
		"of a driver":     {rule(resourcev1.DeviceTaintEffectNoExecute, &resourcev1.DeviceTaintSelector{Driver: new(gpuDriver)}), 4},
		"all":             {rule(resourcev1.DeviceTaintEffectNoSchedule, &resourcev1.DeviceTaintSelector{}), 4},
		"no selector":     {rule(resourcev1.DeviceTaintEffectNoSchedule, nil), 0},
		"another pool":    {rule(resourcev1.DeviceTaintEffectNoSchedule, &resourcev1.DeviceTaintSelector{Pool: new("m")}), 0},
		"only to be read": {rule(resourcev1.DeviceTaintEffectNone, &resourcev1.DeviceTaintSelector{}), 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := report(fleet(), slice("s", "n", 1, 1, devices(4)...), c.rule)
			assert.Equal(t, c.tainted, r.Devices[0].Tainted)
			assert.Equal(t, 4-c.tainted, r.Devices[0].Allocatable)
		})
	}
}

// A claim leads to its pod, the pod to its workload and model.
func TestClaimToModel(t *testing.T) {
	r := report(fleet(), slice("s", "n", 1, 1, devices(1)...), node("n", 0), claim("c", got("n", "gpu-0"), reservedFor("p")),
		pod("p", "n", 0, uses("c"), ownedBy("StatefulSet", "chat")))
	assert.Contains(t, r.States, capacity.StateCount{
		Place: capacity.Place{NodePool: "h", GPUModel: "NVIDIA-H100-80GB-HBM3"}, State: capacity.AllocatedReady, GPUs: 1,
		Identity: capacity.Identity{Namespace: "prod", Kind: "StatefulSet", Workload: "chat", Model: "m"},
	})
}

func TestClaims(t *testing.T) {
	stamped := func(c *resourcev1.ResourceClaim) { c.Status.Allocation.AllocationTimestamp = new(ago(3 * time.Minute)) }
	r := report(fleet(), claim("a"), claim("b", func(c *resourcev1.ResourceClaim) { c.CreationTimestamp = ago(time.Hour) }),
		claim("c", got("n", "gpu-0")), claim("d", got("n", "gpu-1"), stamped, reservedFor("p")))
	assert.Equal(t, []capacity.Claims{
		{Class: gpuDriver, State: "allocated", Count: 1, Oldest: -1},
		{Class: gpuDriver, State: "pending", Count: 2, Oldest: time.Hour},
		{Class: gpuDriver, State: "reserved", Count: 1, Oldest: 3 * time.Minute},
	}, r.Claims)
}

func TestPendingClaimIsDemandOnce(t *testing.T) {
	says := unschedulable("0/1 nodes are available: 1 cannot allocate all claims.")
	r := report(fleet(), claim("c"), pod("a", "", 0, uses("c"), says, ownedBy("StatefulSet", "s")), pod("b", "", 0, uses("c"), says, ownedBy("StatefulSet", "s")))
	require.Len(t, r.Pending, 1)
	assert.Equal(t, "claim", r.Pending[0].Reason)
	assert.Equal(t, 2, r.Pending[0].Pods)
	assert.Equal(t, 1, r.Pending[0].GPUs)
}

// A class of the cluster's own is known by the driver that its selector names, or by
// the extended resource that it stands for.
func TestClassOfGPUs(t *testing.T) {
	own := func(c *resourcev1.ResourceClaim) { c.Spec.Devices.Requests[0].Exactly.DeviceClassName = "big" }
	for name, spec := range map[string]resourcev1.DeviceClassSpec{
		"selector": {Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.nvidia.com"`}}}},
		"extended": {ExtendedResourceName: new(gpuResource)},
	} {
		t.Run(name, func(t *testing.T) {
			r := report(fleet(), claim("c", own), pod("a", "", 0, uses("c"), unschedulable("")),
				&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "big"}, Spec: spec})
			require.Len(t, r.Pending, 1)
			assert.Equal(t, 1, r.Pending[0].GPUs)
		})
	}
	assert.Empty(t, report(fleet(), claim("c", own), pod("a", "", 0, uses("c"), unschedulable(""))).Pending, "not known as GPUs")
}
