// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e runs the built collector between a simulated fleet and a real Prometheus server. It has tests only.
// Those that start many processes run by themselves, one after the other, as what others judge depends on when pages arrive.
package e2e
