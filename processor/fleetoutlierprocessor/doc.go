// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../tools.mod mdatagen metadata.yaml

// Package fleetoutlierprocessor compares every replica of a fleet of LLM
// engines with its fleet: it reads the engines' own metrics as they pass, and
// emits how slow each replica is and how that compares to the others.
package fleetoutlierprocessor
