// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/llmfleet/llmfleet/internal/sealed"
)

// ErrForeign says that what was saved is of another version, or of panes of
// another length: it cannot be gone on with.
var ErrForeign = errors.New("saved by another version, or of panes of another length")

// storeVersion changes with what is saved, and with its meaning.
const storeVersion = 2

// header says what is saved.
type header struct {
	Version int
	Pane    time.Duration
}

// named is the account of a tenant.
type named struct {
	Name    string
	Account account
}

// Save returns what the judge remembers, for Load to go on with.
func (j *Judge) Save() []byte {
	tenants := make([]named, 0, len(j.accounts))
	for _, name := range slices.Sorted(maps.Keys(j.accounts)) {
		tenants = append(tenants, named{name, *j.accounts[name]})
	}
	return sealed.Encode(header{storeVersion, j.options.Pane}, &j.memory, tenants)
}

// Load goes on with what was saved. After an error all is as it was before.
func (j *Judge) Load(data []byte) error {
	d := sealed.Decode(data)
	var h header
	if err := d.Next(&h); err != nil {
		return err
	}
	if h != (header{storeVersion, j.options.Pane}) {
		return ErrForeign
	}
	var m memory
	var tenants []named
	if err := cmp.Or(d.Next(&m), d.Next(&tenants)); err != nil {
		return err
	}
	// More than may be remembered now: the largest stay.
	slices.SortStableFunc(tenants, func(x, y named) int {
		return cmp.Compare(y.Account.Share.mean(0), x.Account.Share.mean(0))
	})
	j.memory = m
	clear(j.accounts)
	for i := range tenants[:min(len(tenants), j.options.MaxTenants)] {
		j.accounts[tenants[i].Name] = &tenants[i].Account
	}
	return nil
}
