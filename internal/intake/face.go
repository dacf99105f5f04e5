// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"
	"hash/maphash"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
)

// Face is who a point is of, as its labels say. A face without a resident is
// nobody's that is known.
type Face struct {
	Resident  *fleet.Resident
	Serves    *fleet.Service   // the model that the point tells of; nil if it names none
	equipment *fleet.Equipment // that the point tells of
	key       fleet.ID         // of the labels and the dialect
	teaching  fleet.ID         // of what the point and its resource say of the resident
	growth    uint64           // of the directory when it was looked for
	named     bool             // a pod whose uid is not known yet
}

// Model is the model that the point is of; "" if that is not known.
func (f *Face) Model() string {
	if f.Serves != nil {
		return f.Serves.Model
	}
	return f.Resident.Facts()[fleet.ModelName]
}

// A desk has room for maxFaces, and for more, as a federation's page takes, as
// long as all together have few for each replica that may be known.
const (
	maxFaces        = 1024
	facesPerReplica = 4
)

// Face returns who a point of the page is of, and which stamps it has already. A
// point without a value is of somebody who is known, or of nobody.
func (p *Page) Face(e *dialect.Entry, attributes pcommon.Map, recorded bool) (Face, Stamps) {
	labels, has := p.Desk.clerk.look(attributes)
	key := p.Desk.clerk.faceKey(labels, e.Dialect)
	if key != p.last.key { // most points of a page are of one
		p.last = p.Desk.faceOf(key, e, attributes, recorded)
	}
	return p.last, has
}

// face returns who a point is of.
func (d *Desk) face(e *dialect.Entry, attributes pcommon.Map) Face {
	labels, _ := d.clerk.look(attributes)
	return d.faceOf(d.clerk.faceKey(labels, e.Dialect), e, attributes, true)
}

// faceKey is what of a point says whose it is: a page may be of several
// dialects, which do not read the same label as the same.
func (c *Clerk) faceKey(labels fleet.ID, d *dialect.Dialect) fleet.ID {
	return fleet.ID(mix(maphash.String(c.names.seed, d.Name), uint64(labels)))
}

func (d *Desk) faceOf(key fleet.ID, e *dialect.Entry, attributes pcommon.Map, recorded bool) Face {
	d.mu.Lock()
	at, known := d.find(key)
	var face Face
	if known {
		face = d.faces[at]
	}
	d.mu.Unlock()
	switch {
	case known && d.clerk.current(&face, e) && face.taught(e):
	case !recorded:
		p := &point{attributes: attributes, resource: d.resource, entry: e, models: d.clerk.models}
		return Face{Resident: d.clerk.directory.Resident(d.identify(p))}
	default:
		growth := d.clerk.directory.Growth()
		face = d.meet(e, attributes)
		face.key, face.growth, face.teaching = key, growth, d.teaching(attributes)
		if face.Resident != nil && e.Dialect.Component == dialect.Engine {
			face.Resident.Teach(face.teaching)
		}
		d.remember(face)
	}
	face.hear(e)
	return face
}

func (d *Desk) find(key fleet.ID) (at int, known bool) {
	return slices.BinarySearchFunc(d.faces, key, func(f Face, key fleet.ID) int { return cmp.Compare(f.key, key) })
}

func (d *Desk) remember(f Face) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch at, known := d.find(f.key); {
	case known:
		d.faces[at] = f
	case len(d.faces) < maxFaces || d.clerk.faces.Load() < int64(facesPerReplica*d.clerk.options.MaxReplicas):
		d.faces = slices.Insert(d.faces, at, f)
		d.clerk.faces.Add(1)
	}
}

// current tells whether it is still known who a face is. An engine that was
// identified stays who it is; whom else a point speaks of may be somebody else
// by now.
func (c *Clerk) current(f *Face, e *dialect.Entry) bool {
	if e.Dialect.Component == dialect.Engine && f.Resident != nil {
		return !f.Resident.Gone() && (!f.named || f.growth == c.directory.Growth())
	}
	return f.growth == c.directory.Growth()
}

// taught tells whether what the face says of its resident is known. One that was
// known before, and comes again after another, may tell of a rollback.
func (f *Face) taught(e *dialect.Entry) bool {
	return f.Resident == nil || e.Dialect.Component != dialect.Engine || f.Resident.Taught(f.teaching)
}

// teaching hashes what a point and the resource say that may change while the
// replica stays who it is.
func (d *Desk) teaching(attributes pcommon.Map) fleet.ID {
	sum := uint64(d.id)
	for k, v := range attributes.All() {
		if d.clerk.teaches[k] {
			sum += d.clerk.names.pair(k, v)
		}
	}
	return fleet.ID(sum)
}

// hear notes that a face was seen. A pod that is only spoken of is not heard.
func (f *Face) hear(e *dialect.Entry) {
	if f.Resident != nil && e.Dialect.Component == dialect.Engine {
		f.Resident.Hear()
	}
	if f.Serves != nil {
		f.Serves.Hear()
	}
	if f.equipment != nil {
		f.equipment.Hear()
	}
}
