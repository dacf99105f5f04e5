// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"time"
)

// ErrForeign says that what was saved is of another version, or of panes of
// another length: it cannot be gone on with.
var ErrForeign = errors.New("saved by another version, or of panes of another length")

var errDamaged = errors.New("damaged")

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
	var b bytes.Buffer
	e := gob.NewEncoder(&b)
	tenants := make([]named, 0, len(j.accounts))
	for _, name := range slices.Sorted(maps.Keys(j.accounts)) {
		tenants = append(tenants, named{name, *j.accounts[name]})
	}
	for _, part := range []any{header{storeVersion, j.options.Pane}, &j.memory, tenants} {
		if err := e.Encode(part); err != nil {
			panic(err) // a type that cannot be saved: every test says so
		}
	}
	return binary.LittleEndian.AppendUint32(b.Bytes(), crc32.ChecksumIEEE(b.Bytes()))
}

// Load goes on with what was saved. After an error all is as it was before.
func (j *Judge) Load(data []byte) error {
	end := len(data) - crc32.Size
	if end < 0 || crc32.ChecksumIEEE(data[:end]) != binary.LittleEndian.Uint32(data[end:]) {
		return errDamaged
	}
	d := gob.NewDecoder(bytes.NewReader(data[:end]))
	var h header
	if err := d.Decode(&h); err != nil || h != (header{storeVersion, j.options.Pane}) {
		return ErrForeign
	}
	var m memory
	var tenants []named
	if err := errors.Join(d.Decode(&m), d.Decode(&tenants)); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
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
