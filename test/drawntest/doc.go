// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package drawntest lets drawn fleets speak as vLLM does: latencies and outcomes are drawn pane by pane, and told as the
// cumulative points of a metrics page.
package drawntest
