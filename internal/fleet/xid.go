// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import "github.com/llmfleet/llmfleet/internal/window"

// hardwareXIDs are the XID codes that speak of the accelerator, its memory, its
// links or its own processors, by NVIDIA's XID catalogue: it asks to reset or to
// replace something, or tells of a memory or a link that errs. Not among them
// are what an application does to itself (13, 31, 43, 45, 68, 69, 109, …: the
// GPU stays healthy, and Kubernetes' device plugin passes over them, too), what
// the driver is to blame for, and corrected errors without effect (121).
var hardwareXIDs = map[int]string{
	48: "uncorrectable memory error", 54: "auxiliary power not connected", 62: "micro-controller halted",
	63: "memory row remapped", 64: "memory row not remapped for a failure", 74: "NVLink error",
	79: "fallen off the bus", 92: "many corrected memory errors", 94: "contained memory error",
	95: "uncontained memory error", 110: "security fault", 119: "GPU system processor silent",
	120: "GPU system processor failed", 136: "link training failed", 140: "unrecovered memory error",
	143: "initialization failed", 144: "NVLink error", 145: "NVLink error", 146: "NVLink error",
	147: "NVLink error", 148: "NVLink error", 149: "NVLink error", 150: "NVLink error",
	154: "another recovery is needed than before", 156: "resource retired", 157: "resource not retired for a failure",
	158: "fatal timeout", 167: "fatal timeout on PCIe", 169: "micro-controller halted",
	171: "uncorrectable memory error", 172: "uncorrectable error of on-chip memory",
}

// xidCode follows the code of the last XID error. It stays what it is until the
// next error, or until the exporter restarts: a change tells, the value does not.
type xidCode struct {
	code int
	at   window.Instant // when it was last told; zero before the first time
	// hardware and other are the newest errors of either kind: the clean-up after
	// a broken GPU (45) must not hide what broke.
	hardware, other xidError
}

// xidError is one error, and when it was first seen.
type xidError struct {
	code int
	at   window.Instant
}

func (x *xidCode) observe(at window.Instant, code int) window.Outcome {
	switch {
	case x.at != 0 && at == x.at:
		return window.Duplicate
	case at < x.at:
		return window.OutOfOrder
	}
	if x.at != 0 && code != 0 && code != x.code {
		e := &x.other
		if hardwareXIDs[code] != "" {
			e = &x.hardware
		}
		*e = xidError{code, at}
	}
	x.code, x.at = code, at
	return window.Accepted
}

// within tells whether there was an error in (start, end].
func (e *xidError) within(start, end window.Instant) bool {
	return e.code != 0 && e.at > start && e.at <= end
}
