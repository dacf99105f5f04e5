// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../tools.mod mdatagen metadata.yaml

// Package fleetidentityprocessor says who speaks: it stamps each metric, span
// and log of a fleet of LLM engines with its replica, model, role and variant.
// What one signal of a replica tells, all others profit from.
package fleetidentityprocessor
