// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import "github.com/llmfleet/llmfleet/internal/window"

// ObserveExponential folds one sample with the given exponential buckets in. A
// series has either these or explicit ones.
func (s *Series) ObserveExponential(buckets window.Exponential, sample *window.Sample) (outcome window.Outcome, heard bool) {
	if o := s.source.admit(sample.At); o != window.Accepted {
		return o, true
	}
	if !s.speaks(sample.At) {
		return window.Accepted, false
	}
	layouts := &s.source.target.registry.layouts
	outcome, former := s.histogram.ObserveExponential(s.source.grid(), layouts, buckets, sample)
	if former != nil {
		s.retire(former)
	}
	return outcome, true
}

// ObserveValue folds one value of a gauge in as an observation of its own, unless
// it is the value before: it counts when it is new, and not as long as it stands.
func (s *Series) ObserveValue(at window.Instant, value float64) (outcome window.Outcome, heard bool) {
	if o := s.source.admit(at); o != window.Accepted {
		return o, true
	}
	if !s.speaks(at) {
		return window.Accepted, false
	}
	return s.histogram.ObserveValue(s.source.grid(), &s.source.target.registry.layouts, at, value), true
}
