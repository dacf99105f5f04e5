// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package chart tests the Helm chart without a cluster: what helm renders of it, against the schemas of Kubernetes, against the
// built collector, and against itself. It has tests only; test/kube installs the chart on a control plane.
package chart
