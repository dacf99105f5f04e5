// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../tools.mod mdatagen metadata.yaml

// Package tenantshareprocessor tells which tenant of a shared fleet of LLM
// engines makes everyone's tokens slow: it reads what gateways count of their
// tenants and what engines say of their inter-token latency as both pass, and
// emits each tenant's share of the tokens and the part of the latency that its
// surplus explains.
package tenantshareprocessor
