// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package stats is the pure mathematics of the product: quantiles of bucketed
// histograms as PromQL computes them, distribution-free bounds for them, and
// the arithmetic of unlike bucket layouts.
//
// A classic histogram is two slices here. bounds holds the B finite upper
// bounds, strictly ascending. cumulative holds B+1 counts: the observations at
// or below each bound, and last those in total. Counts are float64, as increases
// of histograms are sums and differences of samples. An exponential histogram
// has its bounds by rule, and whole counts: see Exponential.
//
// Nothing here allocates or keeps state, HeavyHitters excepted, or answers with a
// NaN or an infinity.
package stats
