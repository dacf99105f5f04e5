// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package sealed writes what is remembered over a restart, so that damage shows
// before anything of it is believed.
package sealed

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/crc32"
)

// ErrDamaged says that what was read is not what was written.
var ErrDamaged = errors.New("damaged")

// Seal appends a checksum (CRC-32, IEEE) to data.
func Seal(data []byte) []byte {
	return binary.LittleEndian.AppendUint32(data, crc32.ChecksumIEEE(data))
}

// Open returns the data that was sealed, or ErrDamaged.
func Open(sealed []byte) ([]byte, error) {
	end := len(sealed) - crc32.Size
	if end < 0 || crc32.ChecksumIEEE(sealed[:end]) != binary.LittleEndian.Uint32(sealed[end:]) {
		return nil, ErrDamaged
	}
	return sealed[:end], nil
}

// Encode writes values one after the other, and seals them. It panics at a type
// that gob cannot write.
func Encode(values ...any) []byte {
	var b bytes.Buffer
	e := gob.NewEncoder(&b)
	for _, v := range values {
		if err := e.Encode(v); err != nil {
			panic(err) // of a type, never of a value: every test says so
		}
	}
	return Seal(b.Bytes())
}

// Decoder reads the values that Encode wrote, in the same order. Its errors wrap
// ErrDamaged, and are kept: after one, it reads no more.
type Decoder struct {
	gob *gob.Decoder
	err error
}

// Decode begins to read.
func Decode(sealed []byte) *Decoder {
	data, err := Open(sealed)
	return &Decoder{gob: gob.NewDecoder(bytes.NewReader(data)), err: err}
}

// Next reads the next value into the one that to points to.
func (d *Decoder) Next(to any) error {
	if d.err == nil {
		if err := d.gob.Decode(to); err != nil {
			d.err = fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	return d.err
}
