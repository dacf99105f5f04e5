// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package share

// usual is a decayed mean that can be held while something unusual goes on. What
// goes on for long becomes usual.
type usual struct {
	Sum, Weight         float64
	HeldSum, HeldWeight float64 // since it is held
}

// mean is the usual value; otherwise if there is none yet.
func (u *usual) mean(otherwise float64) float64 {
	if u.Weight == 0 {
		return otherwise
	}
	return u.Sum / u.Weight
}

// learn takes a value that is a sum over so much weight.
func (u *usual) learn(sum, weight, decay float64) {
	u.Sum = decay*u.Sum + sum
	u.Weight = decay*u.Weight + weight
	u.HeldSum, u.HeldWeight = 0, 0
}

// hold keeps the value apart.
func (u *usual) hold(sum, weight float64) {
	u.HeldSum += sum
	u.HeldWeight += weight
}

// adopt makes usual what it was while it was held.
func (u *usual) adopt() {
	if u.HeldWeight > 0 {
		u.Sum = u.Weight * u.HeldSum / u.HeldWeight
	}
	u.HeldSum, u.HeldWeight = 0, 0
}
