// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package canary compares a canary with its baseline, and says whether it is
// worse: with a verdict that stays valid however often it is looked at.
//
// In each pane it asks of each measure and boundary: could so many of the
// canary's observations lie above it, if the canary were at most so many times
// worse? The answers are e-values, whose running product grows only if it were
// not. By Ville's inequality (Ville 1939; Howard et al., Annals of Statistics 49,
// 2021) a canary that is no worse than tolerated is ever failed with probability
// false_fail at most. That it is not worse has to be shown in the same way before
// it passes; who shows neither is inconclusive.
package canary
