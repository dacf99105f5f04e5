// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantshareprocessor

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/llmfleet/llmfleet/internal/judge/share"
	"github.com/llmfleet/llmfleet/internal/window"
)

// court has the dockets of all fleets.
type court struct {
	options  share.Options
	most     int
	dockets  map[string]*docket // by fleet.Fleet.Key
	opened   window.Instant     // since when is listened
	at       window.Instant     // end of the pane that is judged
	turned   bool               // in this evaluation, a tenant became noisy or ceased to be
	silences time.Duration      // after which a fleet is forgotten
}

// forgottenAfter is how many half-lives a fleet may be silent before it is
// forgotten: what was learned counts a sixteenth by then.
const forgottenAfter = 4

func newCourt(c *Config) court {
	options := share.DefaultOptions(c.Pane)
	options.HalfLife = c.HalfLife
	options.MinScore, options.MinExcess, options.Panes = c.MinScore, c.MinExcess, c.Panes
	options.MaxTenants = c.MaxTenants
	return court{options: options, most: c.MaxFleets, dockets: make(map[string]*docket), silences: forgottenAfter * c.HalfLife}
}

// begin begins the evaluation of the pane that ends at at.
func (c *court) begin(at window.Instant) { c.at, c.turned = at, false }

// partial tells whether the pane began before it was listened to.
func (c *court) partial() bool { return c.at.Add(-c.options.Pane) < c.opened }

// docket is that of a fleet; nil if there is none, and no room for another.
func (c *court) docket(key string) *docket {
	d := c.dockets[key]
	if d == nil && len(c.dockets) < c.most {
		d = &docket{judge: share.NewJudge(c.options), seen: c.at}
		c.dockets[key] = d
	}
	return d
}

// sweep forgets fleets that were silent for too long.
func (c *court) sweep() {
	maps.DeleteFunc(c.dockets, func(_ string, d *docket) bool { return c.at.Sub(d.seen) > c.silences })
}

// storeVersion changes with the meaning of what is saved.
const storeVersion = 1

// errForeign says that what was saved cannot be gone on with.
var errForeign = errors.New("saved by another version")

// archive is what is saved of a court.
type archive struct {
	Version int        `json:"version"`
	Dockets []archived `json:"dockets"`
}

// archived is what is saved of one fleet.
type archived struct {
	Key    string         `json:"key"`
	Source string         `json:"source"`
	Seen   window.Instant `json:"seen"`
	Judge  []byte         `json:"judge"`
}

// save returns what was learned, for load to go on with.
func (c *court) save() []byte {
	s := archive{Version: storeVersion}
	for _, key := range slices.Sorted(maps.Keys(c.dockets)) {
		d := c.dockets[key]
		s.Dockets = append(s.Dockets, archived{Key: key, Source: d.source, Seen: d.seen, Judge: d.judge.Save()})
	}
	data, err := json.Marshal(&s)
	if err != nil {
		panic(err) // a type that cannot be saved: every test says so
	}
	return data
}

// load goes on with what was saved, as far as it is not forgotten by now. If
// anything of it cannot be read it takes nothing.
func (c *court) load(data []byte, now window.Instant) error {
	var s archive
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	if s.Version != storeVersion {
		return errForeign
	}
	loaded := make(map[string]*docket)
	for _, of := range s.Dockets {
		if len(loaded) >= c.most || now.Sub(of.Seen) > c.silences || of.Seen > now.Add(c.options.Pane) {
			continue
		}
		d := &docket{judge: share.NewJudge(c.options), source: of.Source, seen: of.Seen}
		if err := d.judge.Load(of.Judge); err != nil {
			return fmt.Errorf("%q: %w", of.Key, err)
		}
		loaded[of.Key] = d
	}
	c.dockets = loaded
	return nil
}
