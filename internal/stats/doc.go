// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package stats is the pure mathematics of the product: quantiles of bucketed
// histograms as PromQL computes them, distribution-free bounds for them, the
// arithmetic of unlike bucket layouts, and evidence and bounds that stay valid
// however often they are looked at.
//
// A classic histogram is two slices here. bounds holds the B finite upper
// bounds, strictly ascending. cumulative holds B+1 counts: the observations at
// or below each bound, and last those in total. Counts are float64, as increases
// of histograms are sums and differences of samples. An exponential histogram
// has its bounds by rule, and whole counts: see Exponential.
//
// Nothing here allocates or keeps state, HeavyHitters and Survival excepted, or
// answers with a NaN or an infinity.
package stats
