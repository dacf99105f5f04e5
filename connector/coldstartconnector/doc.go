// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../tools.mod mdatagen metadata.yaml

// Package coldstartconnector tells how replicas start: from what Kubernetes and the
// engines say of a pod, one trace for each start, and metrics of its stages.
package coldstartconnector
