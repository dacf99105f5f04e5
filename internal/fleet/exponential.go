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

// retire keeps what a former process counted while it is in the window.
func (s *Series) retire(former *window.Histogram) {
	s.retired = &Series{histogram: *former, retired: s.retired}
	oldest := s
	for range maxRetired {
		if oldest = oldest.retired; oldest == nil {
			return
		}
	}
	oldest.retired = nil
}
