// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

// takeDevices takes DRA's devices into the account, and gives them to those who hold them.
func (a *account) takeDevices() {
	rows := map[poolKey]*Devices{}
	for _, key := range slices.SortedFunc(maps.Keys(a.pools), comparePools) {
		p := a.pools[key]
		row := &Devices{Driver: key.driver, Pool: key.pool, Complete: p.complete, Classes: map[string]float64{}}
		rows[key] = row
		kind := a.kindOf(key.driver)
		for _, u := range p.units {
			row.Installed++
			if u.isTainted() {
				row.Tainted++
			} else {
				row.Allocatable++
			}
			if kind != "" {
				a.slotOf(key, u, kind)
			}
		}
	}
	consumed := map[poolKey]map[string]float64{}
	taken := map[device]bool{}
	for _, claim := range a.sortedClaims() {
		a.takeClaim(claim, rows, taken, consumed)
	}
	for _, key := range slices.SortedFunc(maps.Keys(rows), comparePools) {
		row := rows[key]
		row.Shared = a.sharesOf(key, consumed[key])
		if len(a.report.Devices) == a.options.MaxSeries {
			a.report.Overflow.Rows++
			continue
		}
		a.report.Devices = append(a.report.Devices, *row)
	}
}

// takeClaim counts the devices that were allocated to a claim. Those for the access
// of administrators are not taken from anybody, and a device that several claims
// share counts once, for the oldest of them.
func (a *account) takeClaim(
	claim *resourcev1.ResourceClaim, rows map[poolKey]*Devices, taken map[device]bool, consumed map[poolKey]map[string]float64,
) {
	if claim.Status.Allocation == nil {
		return
	}
	h := a.claimHolder(claim)
	for i := range claim.Status.Allocation.Devices.Results {
		r := &claim.Status.Allocation.Devices.Results[i]
		if isTrue(r.AdminAccess) {
			continue
		}
		key, d := poolKey{r.Driver, r.Pool}, device{r.Driver, r.Pool, r.Device}
		row := rows[key]
		if row == nil {
			row = &Devices{Driver: r.Driver, Pool: r.Pool, Classes: map[string]float64{}}
			rows[key] = row
		}
		for name, quantity := range r.ConsumedCapacity {
			if consumed[key] == nil {
				consumed[key] = map[string]float64{}
			}
			consumed[key][string(name)] += quantity.AsApproximateFloat64()
		}
		var shares []share
		if p := a.pools[key]; p != nil {
			shares = p.shares[r.Device]
		}
		if !taken[d] {
			row.Classes[classOf(claim, r.Request)] += take(shares)
		}
		taken[d] = true
		for _, s := range shares {
			if s.of.holder == nil || compareHolders(h, *s.of.holder) < 0 {
				s.of.holder = &h
			}
		}
	}
}

// take takes a device out of its units and returns how much of them that is; a
// device that no complete pool has is one.
func take(shares []share) (sum float64) {
	if len(shares) == 0 {
		return 1
	}
	for _, s := range shares {
		part := s.part
		if part == 0 {
			part = 1 / float64(s.of.parts)
		}
		part = min(part, 1-s.of.used)
		s.of.used += part
		sum += part
	}
	return sum
}

// claimHolder is as what the devices of a claim count: of the pods that use it, the
// one whose state is looked at first.
func (a *account) claimHolder(claim *resourcev1.ResourceClaim) holder {
	var best *holder
	for _, by := range claim.Status.ReservedFor {
		if by.Resource != "pods" || by.APIGroup != "" {
			continue
		}
		m := a.pods[types.NamespacedName{Namespace: claim.Namespace, Name: by.Name}]
		if m == nil || m.UID != by.UID {
			continue
		}
		if h := a.holderOf(m); h != nil && (best == nil || compareHolders(*h, *best) < 0) {
			best = h
		}
	}
	if best == nil {
		return holder{state: Other}
	}
	return *best
}

// sharesOf is how much of a pool's shared capacity is consumed, by name.
func (a *account) sharesOf(key poolKey, consumed map[string]float64) map[string]float64 {
	all := map[string]float64{}
	if p := a.pools[key]; p != nil {
		for name, total := range p.shared {
			if total > 0 {
				all[name] = consumed[name] / total
			}
		}
	}
	return all
}

// tellClaims counts claims by their class, that of their first request, and state.
func (a *account) tellClaims() {
	type key struct{ class, state string }
	rows := map[key]*Claims{}
	for _, claim := range a.sortedClaims() {
		state, since := "pending", &claim.CreationTimestamp.Time
		if allocation := claim.Status.Allocation; allocation != nil {
			state, since = "allocated", nil
			if len(claim.Status.ReservedFor) > 0 {
				state = "reserved"
			}
			if allocation.AllocationTimestamp != nil {
				since = &allocation.AllocationTimestamp.Time
			}
		} else if claim.DeletionTimestamp != nil {
			continue // it will get nothing any more
		}
		k := key{classOf(claim, ""), state}
		row := rows[k]
		if row == nil {
			row = &Claims{Class: k.class, State: k.state, Oldest: -1}
			rows[k] = row
		}
		row.Count++
		if since != nil {
			row.Oldest = max(row.Oldest, a.since(*since))
		}
	}
	keys := slices.SortedFunc(maps.Keys(rows), func(a, b key) int {
		return cmp.Or(strings.Compare(a.class, b.class), strings.Compare(a.state, b.state))
	})
	for _, k := range keys {
		if len(a.report.Claims) == a.options.MaxSeries {
			a.report.Overflow.Rows++
			continue
		}
		a.report.Claims = append(a.report.Claims, *rows[k])
	}
}

// classOf is the class of a claim's request, by the name that a result has of it
// (an alternative is "request/alternative"); of the first request for "".
func classOf(claim *resourcev1.ResourceClaim, request string) string {
	name, alternative, _ := strings.Cut(request, "/")
	for i := range claim.Spec.Devices.Requests {
		r := &claim.Spec.Devices.Requests[i]
		if request != "" && r.Name != name {
			continue
		}
		if r.Exactly != nil {
			return r.Exactly.DeviceClassName
		}
		for j := range r.FirstAvailable {
			if alternative == "" || r.FirstAvailable[j].Name == alternative {
				return r.FirstAvailable[j].DeviceClassName
			}
		}
	}
	return ""
}

// sortedClaims are the claims, the oldest first.
func (a *account) sortedClaims() []*resourcev1.ResourceClaim {
	return slices.SortedFunc(maps.Values(a.claims), func(a, b *resourcev1.ResourceClaim) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), compareKeys(keyOf(a), keyOf(b)))
	})
}

func comparePools(a, b poolKey) int {
	return cmp.Or(strings.Compare(a.driver, b.driver), strings.Compare(a.pool, b.pool))
}
