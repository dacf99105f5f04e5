// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../tools.mod mdatagen metadata.yaml

// Package tenantusageconnector accounts for who sends requests to a fleet and
// what they take: from the spans of requests, metrics of the tenants that matter
// most, of all others together and of tiers, and log records of every tenant.
package tenantusageconnector
