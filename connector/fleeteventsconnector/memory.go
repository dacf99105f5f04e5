// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleeteventsconnector

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// memoryKey is where a storage has the memory, and memoryVersion the form that
// it has there. What has another is not read.
const (
	memoryKey     = "flags"
	memoryVersion = 1
)

// memory is what is kept over a restart: the flags that are on, and the verdicts
// that are given.
type memory struct {
	Version int              `json:"version"`
	On      []rememberedFlag `json:"on"`
}

// rememberedFlag is one of them.
type rememberedFlag struct {
	Flag     string            `json:"flag"`            // its metric
	Of       string            `json:"of,omitempty"`    // which of its flags
	State    string            `json:"state,omitempty"` // where none is said, on
	Resource map[string]string `json:"resource"`
	Labels   map[string]string `json:"labels"`
	Since    int64             `json:"since"` // nanoseconds since 1970, as At
	At       int64             `json:"at"`    // of the newest point
}

// remember writes down the flags that are not off.
func (f *flagged) remember() ([]byte, error) {
	kept := memory{Version: memoryVersion, On: []rememberedFlag{}}
	for _, s := range f.of {
		labels := make(map[string]string, len(s.labels))
		for _, l := range s.labels {
			labels[l.Name] = l.Value
		}
		for _, known := range s.flags {
			if known.shows == off {
				continue
			}
			k := rememberedFlag{
				Flag: known.metric, Of: known.of, Resource: s.resource, Labels: labels,
				Since: int64(known.since), At: int64(known.at), //nolint:gosec // in this century
			}
			if known.shows != on {
				k.State = known.shows.String()
			}
			kept.On = append(kept.On, k)
		}
	}
	return json.Marshal(kept)
}

// shows is the state that is kept. Off: none that is known here.
func (k *rememberedFlag) shows() state {
	if k.State == "" {
		return on
	}
	return state(max(0, slices.Index(stateNames[:ended], k.State))) //nolint:gosec // there are few
}

// recall reads what was remembered. What is not known here, or more than may be
// followed, is left out.
func (f *flagged) recall(data []byte, r reader, now time.Time) error {
	if len(data) == 0 {
		return nil
	}
	var kept memory
	if err := json.Unmarshal(data, &kept); err != nil {
		return err
	}
	if kept.Version != memoryVersion {
		return fmt.Errorf("its version is %d, not %d", kept.Version, memoryVersion)
	}
	for _, k := range kept.On {
		shows := k.shows()
		if flags[k.Flag] == nil || shows == off {
			continue
		}
		var labels []fleet.Label
		for name, value := range k.Labels {
			labels = append(labels, fleet.Label{Name: name, Value: value})
		}
		identity := r.identity(k.Resource, labels, legible[k.Flag].Of)
		s := f.of[identity]
		if s == nil {
			if len(f.of) >= f.limit {
				f.overflow++
				continue
			}
			s = &subject{resource: k.Resource, labels: labels, heard: now}
			f.of[identity] = s
			f.lit++
		}
		*s.flag(k.Flag, k.Of) = flagState{
			mark: mark{k.Flag, k.Of, shows}, since: pcommon.Timestamp(k.Since), at: pcommon.Timestamp(k.At), //nolint:gosec // since 1970
		}
	}
	return nil
}
