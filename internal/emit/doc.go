// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package emit writes reports as metrics: one table of every metric that
// llmfleet derives, and the writer that batches points and ends series. It writes
// lifecycle facts as log records.
package emit

//go:generate go run ./metricsdoc -root ../..
