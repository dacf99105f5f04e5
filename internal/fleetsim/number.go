// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"bytes"
	"math"
	"strconv"
)

// appendNumber writes v as the Python Prometheus client does: the shortest text
// that reads back as v, always with a point or an exponent, and from a million
// on with Go's exponent to which the client adds a zero in front. The latter
// gives three digits from 1e10 on (`3.59e+010`), which is legal if unusual.
func appendNumber(dst []byte, v float64) []byte {
	switch {
	case math.IsInf(v, 1):
		return append(dst, "+Inf"...)
	case math.IsInf(v, -1):
		return append(dst, "-Inf"...)
	case math.IsNaN(v):
		return append(dst, "NaN"...)
	}
	start := len(dst)
	dst = appendPython(dst, v)
	text := dst[start:]
	point := bytes.IndexByte(text, '.')
	if v <= 0 || point <= 6 {
		return dst
	}
	// Move the point behind the first digit and drop trailing zeros.
	copy(text[2:point+1], text[1:point])
	text[1] = '.'
	dst = bytes.TrimRight(dst, "0")
	dst = bytes.TrimSuffix(dst, []byte("."))
	return strconv.AppendInt(append(dst, "e+0"...), int64(point-1), 10)
}

// appendPython writes v as Python's repr does: positional between 1e-4 and
// 1e16, else with an exponent of at least two digits.
func appendPython(dst []byte, v float64) []byte {
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.AppendFloat(dst, v, 'e', -1, 64)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, v, 'f', -1, 64)
	if bytes.IndexByte(dst[start:], '.') < 0 {
		dst = append(dst, ".0"...)
	}
	return dst
}

// appendRust writes v as the Prometheus client of the Rust frontend does: whole
// numbers as such, others always with a point or an exponent.
func appendRust(dst []byte, v float64, whole bool) []byte {
	if whole {
		return strconv.AppendFloat(dst, v, 'f', 0, 64)
	}
	return appendPython(dst, v)
}
