// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../tools.mod mdatagen metadata.yaml

// Package k8sfleetreceiver watches the pods of a fleet of LLM engines, and what
// Kubernetes has around them. As logs it tells the facts of each start, as metrics
// the capacity that there is and what it is used for.
package k8sfleetreceiver
