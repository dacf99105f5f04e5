// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
)

// gpuFamily is a metric family on the page of a node's GPUs.
type gpuFamily struct {
	name, help string
	kind       kind
	value      func(*gpu) float64
	decimals   int // that a value is written with
}

// dcgmPage is the page of NVIDIA's dcgm-exporter with its default counters, and
// those of throttling and of NVLink, which are off by default.
var dcgmPage = []gpuFamily{
	{"SM_CLOCK", "Clock of the streaming multiprocessors, MHz", gaugeKind, (*gpu).clock, 0},
	{"MEM_CLOCK", "Clock of the memory, MHz", gaugeKind, constant(memoryClock), 0},
	{"MEMORY_TEMP", "Temperature of the memory, degrees Celsius", gaugeKind, func(g *gpu) float64 { return g.temperature() + 6 }, 0},
	{"GPU_TEMP", "Temperature of the GPU, degrees Celsius", gaugeKind, (*gpu).temperature, 0},
	{"POWER_USAGE", "Power, W", gaugeKind, (*gpu).power, 6},
	{"TOTAL_ENERGY_CONSUMPTION", "Energy since the driver was loaded, mJ", counterKind, (*gpu).energy, 0},
	{"PCIE_REPLAY_COUNTER", "Retries on PCIe", counterKind, func(g *gpu) float64 { return g.errors[PCIe] }, 0},
	{"GPU_UTIL", "Time in which a kernel ran, percent", gaugeKind, func(g *gpu) float64 { return 100 * g.usage() }, 0},
	{"XID_ERRORS", "The newest XID", gaugeKind, func(g *gpu) float64 { return float64(g.xid) }, 0},
	{"POWER_VIOLATION", "Time throttled by the power limit, ns", counterKind, func(g *gpu) float64 { return 1e9 * g.throttled[Power] }, 0},
	{"THERMAL_VIOLATION", "Time throttled by heat, ns", counterKind, func(g *gpu) float64 { return 1e9 * g.throttled[Thermal] }, 0},
	{"FB_FREE", "Free memory, MiB", gaugeKind, constant(gpuMemoryMiB - gpuUsedMiB), 0},
	{"FB_USED", "Used memory, MiB", gaugeKind, constant(gpuUsedMiB), 0},
	{"UNCORRECTABLE_REMAPPED_ROWS", "Rows remapped for errors that could not be corrected", counterKind, constant(0), 0},
	{"CORRECTABLE_REMAPPED_ROWS", "Rows remapped for errors that were corrected", counterKind, constant(0), 0},
	{"NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "CRC errors of flow control on NVLink", counterKind, func(g *gpu) float64 { return g.errors[NVLink] }, 0},
	{"NVLINK_REPLAY_ERROR_COUNT_TOTAL", "Retries on NVLink", counterKind, func(g *gpu) float64 { return g.errors[NVLink] }, 0},
}

func constant(v float64) func(*gpu) float64 { return func(*gpu) float64 { return v } }

// appendGPUs appends the page of a node's GPUs: one for each engine.
func appendGPUs(dst []byte, engines []*Engine) []byte {
	labels := make([]string, len(engines))
	for i, e := range engines {
		e.sim.gpu.settle(e.sim.now)
		labels[i] = gpuLabels(e)
	}
	for i := range dcgmPage {
		f := &dcgmPage[i]
		name := "DCGM_FI_DEV_" + f.name
		dst = append(dst, head(name, f.help, f.kind)...)
		for j, e := range engines {
			g := e.sim.gpu
			dst = append(append(append(dst, name...), '{'), labels[j]...)
			if f.name == "XID_ERRORS" {
				dst = fmt.Appendf(dst, `,err_code="%d",err_msg=%s`, g.xid, quote(xidMessage(g.xid)))
			}
			dst = strconv.AppendFloat(append(dst, "} "...), f.value(g), 'f', f.decimals, 64)
			dst = append(dst, '\n')
		}
	}
	return dst
}

// gpuLabels are those of one GPU and of the pod that holds it, in the order of
// dcgm-exporter's template.
func gpuLabels(e *Engine) string {
	id := sha256.Sum256([]byte(podName(e.sim.fleet, e.sim.replica))) // another pod takes over the same GPU
	index := e.sim.gpu.index
	pairs := []string{
		"gpu", strconv.Itoa(index),
		"UUID", fmt.Sprintf("GPU-%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16]),
		"pci_bus_id", fmt.Sprintf("00000000:%02X:00.0", 0x18+index),
		"device", fmt.Sprintf("nvidia%d", index),
		"modelName", cmp.Or(repeated(e.sim.fleet.GPUModels, e.sim.replica), "NVIDIA H100 80GB HBM3"),
		"Hostname", e.Node(),
		"DCGM_FI_DRIVER_VERSION", "570.124.06",
		"container", string(e.sim.fleet.Engine),
		"namespace", Namespace,
		"pod", e.Name(),
	}
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(pairs[i] + "=" + quote(pairs[i+1]))
	}
	return b.String()
}

// xidMessage is what NVIDIA's catalogue of XIDs calls some that serving meets.
func xidMessage(code int) string {
	switch code {
	case 0:
		return "No Error"
	case 48:
		return "Double Bit ECC Error"
	case 63:
		return "Row remapping event"
	case 74:
		return "NVLINK Error"
	case 79:
		return "GPU has fallen off the bus"
	default:
		return "XID " + strconv.Itoa(code)
	}
}
