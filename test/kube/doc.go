// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package kube tests the built collector against a real Kubernetes control plane.
package kube
