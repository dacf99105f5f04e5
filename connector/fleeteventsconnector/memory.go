// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleeteventsconnector

import (
	"encoding/json"
	"fmt"
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

// memory is what is kept over a restart: the flags that are on.
type memory struct {
	Version int              `json:"version"`
	On      []rememberedFlag `json:"on"`
}

// rememberedFlag is one of them.
type rememberedFlag struct {
	Flag     string            `json:"flag"` // its metric
	Resource map[string]string `json:"resource"`
	Labels   map[string]string `json:"labels"`
	Since    int64             `json:"since"` // nanoseconds since 1970, as At
	At       int64             `json:"at"`    // of the newest point
}

// remember writes down the flags that are on.
func (f *flagged) remember() ([]byte, error) {
	kept := memory{Version: memoryVersion, On: []rememberedFlag{}}
	for _, s := range f.of {
		labels := make(map[string]string, len(s.labels))
		for _, l := range s.labels {
			labels[l.Name] = l.Value
		}
		for i, known := range s.flags {
			if known.on {
				kept.On = append(kept.On, rememberedFlag{
					flags[i].metric, s.resource, labels, int64(known.since), int64(known.at), //nolint:gosec // in this century
				})
			}
		}
	}
	return json.Marshal(kept)
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
		flag := flagOf(k.Flag)
		if flag < 0 {
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
			s = &subject{resource: k.Resource, labels: labels, heard: now, flags: make([]flagState, len(flags))}
			f.of[identity] = s
			f.lit++
		}
		s.flags[flag] = flagState{on: true, since: pcommon.Timestamp(k.Since), at: pcommon.Timestamp(k.At)} //nolint:gosec // since 1970
	}
	return nil
}
