// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e runs the built collector between a simulated fleet and a real Prometheus server. It has tests only.
package e2e
