// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package share

// Fairness is Jain's index of what tenants got (Jain, Chiu and Hawe, DEC-TR-301,
// 1984): 1 where all got as much, 1/n where one of n got all. It is 0 where
// nobody got anything: then it says nothing.
func Fairness(tokens []float64) float64 {
	var most float64
	for _, t := range tokens {
		most = max(most, t)
	}
	if most == 0 {
		return 0
	}
	var sum, squares float64
	for _, t := range tokens {
		part := t / most // so that no square is too large
		sum += part
		squares += part * part
	}
	return sum * sum / (float64(len(tokens)) * squares)
}
