// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package score measures judgements on simulated fleets whose truth is known,
// and holds the figures to their targets. There is one file a judgement.
//
// Every world has a positive control, a fault that must be found: a judgement
// that says nothing raises no false alarm either. Constants of the judgements
// were chosen on other seeds than the one that a card is made with.
package score
