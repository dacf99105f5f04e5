// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package deploy tests what is installed beside the collector: recording rules, alerts, dashboards and scaling triggers, each
// on a Prometheus that a simulated fleet and the built collector have filled.
package deploy
