// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package prometheustest is a Prometheus inside of a test: its own storage and its own query engine, as a library.
package prometheustest
