// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package oracle holds the product to Prometheus: the same scrapes go into a Prometheus storage and through the
// fleet_outlier processor, and what the two say about them must be equal. It has tests only; docs/exactness.md tells
// what is equal, what differs, and why.
package oracle
