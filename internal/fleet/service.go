// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"sync/atomic"

	"github.com/llmfleet/llmfleet/internal/window"
)

// Service is one model that a resident serves.
type Service struct {
	Model    string
	from     Origin // who tells
	resident *Resident
	last     atomic.Int64 // window.Instant when it was last heard
}

// maxServices bounds the models of one resident: a sender may invent names.
const maxServices = 64

// Serves tells whether any resident serves a model under that name.
func (d *Directory) Serves(model string) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.models[model] > 0
}

// Serve notes that the resident serves the model, and keeps its name; nil if it
// serves too many. The only one is the resident's model, of several none is.
func (r *Resident) Serve(model string, from Origin) *Service {
	r.directory.mu.Lock()
	defer r.directory.mu.Unlock()
	for _, s := range r.serves {
		if s.Model == model {
			s.Hear()
			return s
		}
	}
	if len(r.serves) >= maxServices {
		return nil
	}
	s := &Service{Model: model, from: from, resident: r}
	s.Hear()
	r.offer(append(slices.Clip(r.serves), s))
	return s
}

// Hear notes that the model is still served.
func (s *Service) Hear() { s.last.Store(s.resident.directory.now.Load()) }

// retire ends the services that were not heard for too long before now, if
// others were.
func (r *Resident) retire(now window.Instant) {
	if len(r.serves) < 2 {
		return
	}
	left := slices.DeleteFunc(slices.Clone(r.serves), func(s *Service) bool { return silent(&s.last, now) > window.MaxGap })
	if len(left) > 0 && len(left) < len(r.serves) {
		r.offer(left)
	}
}

// offer makes these the resident's services.
func (r *Resident) offer(services []*Service) {
	r.count(-1)
	r.serves = services
	r.count(1)
	r.merge()
}

// count adds the resident to those that serve its models, or takes it away.
func (r *Resident) count(more int) {
	models := r.directory.models
	add := func(model string) {
		if models[model] += more; models[model] == 0 {
			delete(models, model)
		}
	}
	own := r.Facts()[ModelName]
	for _, s := range r.serves {
		add(s.Model)
		if s.Model == own {
			own = ""
		}
	}
	if own != "" {
		add(own)
	}
}
