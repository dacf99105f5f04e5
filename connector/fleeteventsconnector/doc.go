// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../tools.mod mdatagen metadata.yaml

// Package fleeteventsconnector tells what turns on and off in a fleet, and what
// changes, as log records: one for each onset, clear, verdict on a canary and
// change of a variant, with the numbers that led to it.
package fleeteventsconnector
