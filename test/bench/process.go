// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"syscall"
	"time"
)

// processorTime is what this process has used so far, in user and system mode
// over all threads. Unlike the clock on the wall it does not run on while other
// processes have the cores.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // fails for no valid argument
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// heap is how many bytes are in use once garbage is collected.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // also what finalizers and pools had kept
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
