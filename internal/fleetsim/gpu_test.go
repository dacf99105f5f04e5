// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"net/http"
	"os"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const twoNodes = `
seed: 1
fleets:
  - {name: chat, engine: vllm, model_name: qwen3-8b, replicas: 3, nodes: [gpu-0, gpu-1], gpu_models: [NVIDIA-H100], arrivals: {rate: 6}}
  - {name: code, engine: sglang, model_name: llama-3.3-70b, replicas: 1, nodes: [gpu-1], arrivals: {rate: 2}}
`

// gpusAt is the page of a node's dcgm-exporter.
func gpusAt(t *testing.T, sim *Simulation, node string, at time.Duration) map[string]*dto.MetricFamily {
	t.Helper()
	sim.AdvanceTo(at)
	for _, target := range sim.Targets() {
		if target.Name() == "dcgm-exporter-"+node {
			page, status := target.AppendPage(nil)
			require.Equal(t, http.StatusOK, status)
			return parsePage(t, string(page))
		}
	}
	require.Fail(t, "no such page", node)
	return nil
}

func TestGPUsOfANodeAreThoseOfAllFleets(t *testing.T) {
	sim := simulate(t, twoNodes)
	pods := map[string]string{}
	for _, m := range gpusAt(t, sim, "gpu-1", time.Minute)["DCGM_FI_DEV_SM_CLOCK"].GetMetric() {
		labels := labelsOf(m)
		pods[labels["gpu"]] = labels["pod"]
		assert.Equal(t, "gpu-1", labels["Hostname"])
		assert.Regexp(t, "^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", labels["UUID"])
	}
	assert.Equal(t, map[string]string{"0": "chat-1", "1": "code-0"}, pods)
	require.Len(t, gpusAt(t, sim, "gpu-0", time.Minute)["DCGM_FI_DEV_SM_CLOCK"].GetMetric(), 2)
}

// The page beside the dialect was written from dcgm-exporter's documentation.
func TestGPUsAreToldAsByDCGM(t *testing.T) {
	text, err := os.ReadFile("../dialect/testdata/pages/dcgm.prom")
	require.NoError(t, err)
	documented := parsePage(t, string(text))
	names := func(m *dto.Metric) (names []string) {
		for name := range labelsOf(m) {
			names = append(names, name)
		}
		return names
	}
	for name, family := range gpusAt(t, simulate(t, twoNodes), "gpu-0", time.Minute) {
		require.Contains(t, documented, name)
		assert.Equal(t, documented[name].GetType(), family.GetType(), name)
		assert.ElementsMatch(t, names(documented[name].GetMetric()[0]), names(family.GetMetric()[0]), name)
	}
}

func TestGPUsFollowTheWork(t *testing.T) {
	sim := simulate(t, twoNodes)
	idle, busy := gpusAt(t, sim, "gpu-0", 0), gpusAt(t, sim, "gpu-0", time.Minute)
	of := func(page map[string]*dto.MetricFamily, name string) float64 {
		return value(t, page, "DCGM_FI_DEV_"+name, "pod", "chat-0")
	}
	for _, name := range []string{"GPU_UTIL", "POWER_USAGE", "GPU_TEMP", "TOTAL_ENERGY_CONSUMPTION"} {
		assert.Greater(t, of(busy, name), of(idle, name), name)
	}
	assert.LessOrEqual(t, of(busy, "GPU_UTIL"), 100.0)
	for _, name := range []string{"THERMAL_VIOLATION", "POWER_VIOLATION", "XID_ERRORS", "PCIE_REPLAY_COUNTER", "NVLINK_REPLAY_ERROR_COUNT_TOTAL"} {
		assert.Zero(t, of(busy, name), name)
	}
}

func TestThrottle(t *testing.T) {
	sim := simulate(t, twoNodes+"faults: [{kind: throttle, fleet: chat, replicas: [0], factor: 1.5, mode: thermal, from: 60s, to: 120s}]\n")
	clean := simulate(t, twoNodes)
	of := func(at time.Duration, pod, name string) float64 {
		return value(t, gpusAt(t, sim, "gpu-0", at), "DCGM_FI_DEV_"+name, "pod", pod)
	}
	full := of(50*time.Second, "chat-0", "SM_CLOCK")
	slow, fast := itlMean(t, pageAt(t, sim, 0, 60*time.Second), pageAt(t, sim, 0, 90*time.Second)), itlMean(t, pageAt(t, clean, 0, 60*time.Second), pageAt(t, clean, 0, 90*time.Second))
	assert.InDelta(t, 1.5, slow/fast, .1)
	assert.InEpsilon(t, full/1.5, of(90*time.Second, "chat-0", "SM_CLOCK"), .01)
	assert.Equal(t, 30e9, of(90*time.Second, "chat-0", "THERMAL_VIOLATION"), "ns of half a minute")
	assert.Equal(t, full, of(90*time.Second, "chat-2", "SM_CLOCK"), "its neighbour")
	assert.Zero(t, of(90*time.Second, "chat-2", "THERMAL_VIOLATION"))
	assert.Zero(t, of(90*time.Second, "chat-0", "POWER_VIOLATION"))
	assert.Equal(t, full, of(150*time.Second, "chat-0", "SM_CLOCK"))
	assert.Equal(t, 60e9, of(150*time.Second, "chat-0", "THERMAL_VIOLATION"), "it stays")
}

func TestXIDStays(t *testing.T) {
	sim := simulate(t, twoNodes+"faults: [{kind: xid, fleet: code, code: 79, from: 60s, to: 70s}]\n")
	of := func(at time.Duration) float64 {
		return value(t, gpusAt(t, sim, "gpu-1", at), "DCGM_FI_DEV_XID_ERRORS", "pod", "code-0")
	}
	assert.Zero(t, of(59*time.Second))
	assert.Equal(t, 79.0, of(60*time.Second))
	assert.Equal(t, 79.0, of(90*time.Second))
	metrics := gpusAt(t, sim, "gpu-1", 90*time.Second)["DCGM_FI_DEV_XID_ERRORS"].GetMetric()
	assert.Equal(t, "79", labelsOf(metrics[1])["err_code"])
	assert.Equal(t, "GPU has fallen off the bus", labelsOf(metrics[1])["err_msg"])
}

func TestLinkErrors(t *testing.T) {
	sim := simulate(t, twoNodes+`
faults:
  - {kind: link_errors, fleet: chat, replicas: [1], mode: nvlink, rate: 12, from: 60s, to: 70s}
  - {kind: link_errors, fleet: chat, replicas: [1], rate: 2, from: 60s}
`)
	of := func(at time.Duration, name string) float64 {
		return value(t, gpusAt(t, sim, "gpu-1", at), "DCGM_FI_DEV_"+name, "pod", "chat-1")
	}
	assert.Zero(t, of(60*time.Second, "PCIE_REPLAY_COUNTER"))
	assert.Equal(t, 60.0, of(65*time.Second, "NVLINK_REPLAY_ERROR_COUNT_TOTAL"))
	assert.Equal(t, 120.0, of(90*time.Second, "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"))
	assert.Equal(t, 60.0, of(90*time.Second, "PCIE_REPLAY_COUNTER"))
	assert.Zero(t, value(t, gpusAt(t, sim, "gpu-1", 90*time.Second), "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "pod", "code-0"))
}

func TestARestartLeavesTheGPUAsItIs(t *testing.T) {
	sim := simulate(t, twoNodes+"faults: [{kind: throttle, fleet: code, factor: 1.2, from: 10s}, {kind: restart, fleet: code, from: 60s, to: 70s}]\n")
	of := func(at time.Duration, name string) float64 {
		return value(t, gpusAt(t, sim, "gpu-1", at), "DCGM_FI_DEV_"+name, "pod", "code-0")
	}
	before := of(59*time.Second, "TOTAL_ENERGY_CONSUMPTION")
	assert.Greater(t, of(65*time.Second, "TOTAL_ENERGY_CONSUMPTION"), before, "while the process is down")
	assert.Equal(t, 65e9, of(75*time.Second, "THERMAL_VIOLATION"))
}
