// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package controlplanetest

import "os/exec"

// dieWithParent does nothing: only Linux kills a process when its parent dies.
func dieWithParent(*exec.Cmd) {}
