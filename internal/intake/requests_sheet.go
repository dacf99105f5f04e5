// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"math"
	"strconv"
	"unicode"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/llmfleet/llmfleet/internal/tenant"
)

// said is what attributes say of one field.
type said struct {
	rank   uint8 // of the attribute's name, from 1; 0 if nothing is said
	text   string
	number float64
}

// sheet is what the attributes of a span, or of a resource, say.
type sheet struct {
	said [fieldCount]said
	bad  bool // a number that cannot be was passed over
}

// read reads all attributes once.
func (s *sheet) read(m pcommon.Map, look *lookup) {
	*s = sheet{}
	i := 0
	for key, value := range m.All() {
		for _, p := range look.places(i, key) {
			if best := s.said[p.field].rank; best == 0 || p.rank < best {
				s.hear(p, value)
			}
		}
		i++
	}
}

// lookup finds places, and remembers those of the attributes that it was last
// asked for: spans of one source have the same attributes in the same order.
type lookup struct {
	index index
	last  [32]struct {
		key    string
		places []place
	}
}

// places are those of the i-th attribute.
func (l *lookup) places(i int, key string) []place {
	if i >= len(l.last) {
		return l.index[key]
	}
	last := &l.last[i]
	if last.key != key {
		last.key, last.places = key, l.index[key]
	}
	return last.places
}

// forget lets go of keys that are others'.
func (l *lookup) forget() { clear(l.last[:]) }

// hear notes what an attribute says, if it says anything.
func (s *sheet) hear(p place, value pcommon.Value) {
	now := said{rank: p.rank}
	ok, empty := true, false
	switch p.kind {
	case isText:
		now.text = textIn(value)
		ok = now.text != "" && (p.field != fieldTenant || now.text != nobody)
	case isTokens:
		now.number, ok, empty = numberIn(value)
		ok = ok && now.number >= 0 && now.number <= maxTokens && now.number == math.Trunc(now.number)
		s.bad = s.bad || !ok && !empty
	case isSeconds:
		now.number, ok, empty = numberIn(value)
		s.bad = s.bad || !empty && (!ok || !(now.number >= 0 && now.number <= maxSeconds))
		ok = ok && now.number > 0 && now.number <= maxSeconds
	case isCode:
		now.number, ok, _ = numberIn(value)
		ok = ok && now.number >= minStatus && now.number <= maxStatus && now.number == math.Trunc(now.number)
	case isMark:
	}
	if ok {
		s.said[p.field] = now
	}
}

// nobody is how llm-d's router calls who does not say who he is.
const nobody = "default-flow"

// What one request can take at most: more is a mistake, and would spoil
// counters for ever.
const (
	maxTokens  = 1e9
	maxSeconds = 1e6
)

// What can be an HTTP status; some write 0 if there was no answer.
const (
	minStatus = 100
	maxStatus = 999
)

func (s *sheet) has(f field) bool { return s.said[f].rank != 0 }

// tokens is a number of tokens, and whether it is told.
func (s *sheet) tokens(f field) (uint64, bool) { return uint64(s.said[f].number), s.has(f) }

// textIn is a value as a text; "" if it is no text. Headers are lists, of which
// the first counts. It is borrowed.
func textIn(v pcommon.Value) string {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return v.Str()
	case pcommon.ValueTypeInt:
		return strconv.FormatInt(v.Int(), 10)
	case pcommon.ValueTypeSlice:
		if first := v.Slice(); first.Len() > 0 && first.At(0).Type() != pcommon.ValueTypeSlice {
			return textIn(first.At(0))
		}
	default:
	}
	return ""
}

// numberIn is a value as a number. An empty value says nothing, which is no
// mistake.
func numberIn(v pcommon.Value) (n float64, ok, empty bool) {
	switch v.Type() {
	case pcommon.ValueTypeInt:
		return float64(v.Int()), true, false
	case pcommon.ValueTypeDouble:
		return v.Double(), true, false
	case pcommon.ValueTypeStr:
		if v.Str() == "" || len(v.Str()) > maxDigits {
			return 0, false, v.Str() == ""
		}
		n, err := strconv.ParseFloat(v.Str(), 64)
		return n, err == nil, false
	default:
		return 0, false, v.Type() == pcommon.ValueTypeEmpty
	}
}

// maxDigits bounds a number that is written as a text.
const maxDigits = 32

// maxText bounds, in bytes, what becomes the value of a label.
const maxText = 128

// bounded is a text that may become the value of a label: tenant.Invalid stands
// for one that is too long, not printable, reserved, or looks like a credential.
func bounded(text string) string {
	if len(text) > maxText || len(text) >= 2 && text[:2] == "__" || tenant.Credential(text) {
		return tenant.Invalid
	}
	for i := range len(text) {
		if c := text[i]; c >= utf8.RuneSelf {
			return boundedRunes(text)
		} else if c < ' ' || c == 0x7f {
			return tenant.Invalid
		}
	}
	return text
}

func boundedRunes(text string) string {
	for _, r := range text {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return tenant.Invalid
		}
	}
	return text
}

// letters is memory for a text in another case.
type letters [256]byte

// lower is a text with ASCII letters in lower case, for names that are compared
// without case; of a longer one than anybody gives, its beginning. It is borrowed.
func (l *letters) lower(text string) []byte {
	n := copy(l[:], text)
	for i, c := range l[:n] {
		if c >= 'A' && c <= 'Z' {
			l[i] = c + ('a' - 'A')
		}
	}
	return l[:n]
}
