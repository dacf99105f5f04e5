// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// KeyFleets is the first line of an answer key.
type KeyFleets struct {
	Seed   uint64     `json:"seed"`
	Start  time.Time  `json:"start"`
	Fleets []KeyFleet `json:"fleets"`
}

// KeyFleet describes one fleet.
type KeyFleet struct {
	Name      string     `json:"name"`
	Engine    EngineKind `json:"engine"`
	ModelName string     `json:"model_name"`
	Replicas  []string   `json:"replicas"`
}

// KeyFault is every further line: one fault at one replica, or one surge. Until
// is missing when the fault stays, and what the kind has not. Pod is what takes
// the replica's place, WarmAt when its prefix cache is full. ShareBefore and
// ShareDuring are the tenant's shares of the fleet's prompt tokens, as the
// scenario's means have them.
type KeyFault struct {
	Time          time.Time  `json:"time"`
	Fleet         string     `json:"fleet"`
	Replica       string     `json:"replica,omitempty"`
	Kind          FaultKind  `json:"kind"`
	Mode          Mode       `json:"mode,omitempty"`
	Factor        float64    `json:"factor,omitempty"`
	Share         float64    `json:"share,omitempty"`
	Rate          float64    `json:"rate,omitempty"`
	Code          int        `json:"code,omitempty"`
	Series        string     `json:"series,omitempty"`
	Revision      string     `json:"revision,omitempty"`
	Pod           string     `json:"pod,omitempty"`
	PrefillFactor float64    `json:"prefill_factor,omitempty"`
	OutputFactor  float64    `json:"output_factor,omitempty"`
	ErrorShare    float64    `json:"error_share,omitempty"`
	LengthShare   float64    `json:"length_share,omitempty"`
	WarmAt        *time.Time `json:"warm_at,omitempty"`
	Tenant        string     `json:"tenant,omitempty"`
	PromptFactor  float64    `json:"prompt_factor,omitempty"`
	ShareBefore   float64    `json:"share_before,omitempty"`
	ShareDuring   float64    `json:"share_during,omitempty"`
	Until         *time.Time `json:"until,omitempty"`
}

// WriteAnswerKey writes what the scenario injects, as JSON lines: the fleets,
// then the faults by time.
func (s *Simulation) WriteAnswerKey(w io.Writer) error {
	encoder := json.NewEncoder(w)
	if err := encoder.Encode(s.keyFleets()); err != nil {
		return fmt.Errorf("write answer key: %w", err)
	}
	for _, fault := range s.keyFaults() {
		if err := encoder.Encode(fault); err != nil {
			return fmt.Errorf("write answer key: %w", err)
		}
	}
	return nil
}

func (s *Simulation) keyFleets() KeyFleets {
	key := KeyFleets{Seed: s.scenario.Seed, Start: s.start.UTC()}
	for i := range s.scenario.Fleets {
		f := &s.scenario.Fleets[i]
		fleet := KeyFleet{Name: f.Name, Engine: f.Engine, ModelName: f.ModelName}
		for replica := range f.Replicas {
			fleet.Replicas = append(fleet.Replicas, podName(f, replica))
		}
		key.Fleets = append(key.Fleets, fleet)
	}
	return key
}

func (s *Simulation) keyFaults() []KeyFault {
	var key []KeyFault
	for i := range s.scenario.Faults {
		f := &s.scenario.Faults[i]
		for _, e := range s.engines {
			if f.strikes(e.sim.fleet, e.sim.replica) {
				fault := s.keyFault(f, e.Fleet(), podName(e.sim.fleet, e.sim.replica))
				if f.Mode == Replace {
					fault.Pod = f.newPod(e.sim.fleet, e.sim.replica)
				}
				key = append(key, fault)
			}
		}
		if f.Kind == TrafficSurge {
			key = append(key, s.keyFault(f, f.Fleet, ""))
		}
	}
	slices.SortStableFunc(key, func(x, y KeyFault) int { return x.Time.Compare(y.Time) })
	return key
}

func (s *Simulation) keyFault(f *Fault, fleet, replica string) KeyFault {
	key := KeyFault{
		Time:          s.start.Add(f.From).UTC(),
		Fleet:         fleet,
		Replica:       replica,
		Kind:          f.Kind,
		Mode:          f.Mode,
		Factor:        f.Factor,
		Share:         f.Share,
		Rate:          f.Rate,
		Code:          f.Code,
		Series:        f.Series,
		Revision:      f.Revision,
		PrefillFactor: f.PrefillFactor,
		OutputFactor:  f.OutputFactor,
		ErrorShare:    f.ErrorShare,
		LengthShare:   f.LengthShare,
		Tenant:        f.Tenant,
		PromptFactor:  f.PromptFactor,
	}
	if f.Tenant != "" {
		i := slices.IndexFunc(s.fleets, func(run *fleetRun) bool { return run.fleet.Name == f.Fleet })
		key.ShareBefore, key.ShareDuring = tenantShares(s.fleets[i].fleet, s.fleets[i].roster, f)
	}
	if f.WarmUp != 0 {
		key.WarmAt = new(s.start.Add(f.From + f.WarmUp).UTC())
	}
	if f.To != 0 {
		key.Until = new(s.start.Add(f.To).UTC())
	}
	return key
}
