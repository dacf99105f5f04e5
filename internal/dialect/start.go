// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"regexp"
	"slices"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
)

// Line is a line of an engine's log that tells of its start.
type Line struct {
	Dialect *Dialect
	// Tells is the fact that the line tells as it is written.
	Tells lifecycle.Name
	// Says is what the message begins with, as a regular expression. It begins with
	// words, so that lines without them are passed over at once. Its groups are took
	// (seconds, or a duration as Go and Rust write it), model and copy.
	Says string
	// With is another text that has to stand in the line, "" if none.
	With string
	// Cached: the line says that there was nothing to do.
	Cached bool
	// Anyone: others write the same words, so that they count only where the engine
	// is known.
	Anyone bool

	words             string // what Says begins with, letter by letter
	says              *regexp.Regexp
	took, model, copy int // groups of says, -1 if it has none
}

// Span is a span that an engine sends of its own start.
type Span struct {
	Name string
	// Begins and Ends are the facts that its two ends tell, Unknown if none.
	Begins, Ends lifecycle.Name
}

// Phase is a metric that says how long a part of the start took.
type Phase struct {
	// Tells is the fact with which that part ended.
	Tells lifecycle.Name
	// Names are spelled as in the file; the first is preferred.
	Names []string
	// Only are the labels that a point needs to be of the part.
	Only []LabelFilter
}

// startup reads what a dialect says of the engine's start.
func (d *Dialect) startup(key string, value cursor) error {
	switch key {
	case "lines":
		return value.each(func(at cursor) error {
			l := &Line{Dialect: d}
			d.Lines = append(d.Lines, l)
			return at.mapping(l.field, "tells", "says")
		})
	case "spans":
		return value.mapping(func(name string, at cursor) error {
			span := Span{Name: name}
			if err := at.mapping(span.field); err != nil {
				return err
			}
			if span.Begins == span.Ends {
				return at.errorf("it tells nothing: use begins, ends or both")
			}
			d.Spans = append(d.Spans, span)
			return nil
		})
	case "metrics":
		return value.each(func(at cursor) error {
			p := &Phase{}
			d.Phases = append(d.Phases, p)
			return at.mapping(p.field, "tells", "names")
		})
	default:
		return value.unknown()
	}
}

// each reads the elements of a list that is not empty.
func (c cursor) each(read func(cursor) error) error {
	items := c.items()
	if c.node.ShortTag() != "!!seq" || len(items) == 0 {
		return c.errorf("want a list")
	}
	for _, item := range items {
		if err := read(item); err != nil {
			return err
		}
	}
	return nil
}

// factPrefix stands before every event name, and is left off in dialects.
const factPrefix = "llmfleet."

// fact reads the event name of a fact that engines tell.
func (c cursor) fact(into *lifecycle.Name) error {
	var event string
	if err := c.text(&event); err != nil {
		return err
	}
	name, ok := lifecycle.NameOf(factPrefix + event)
	if !ok || !name.OfEngine() {
		return c.errorf("%s is no fact that an engine tells", event)
	}
	*into = name
	return nil
}

func (l *Line) field(key string, value cursor) error {
	switch key {
	case "tells":
		return value.fact(&l.Tells)
	case "says":
		return l.compile(value)
	case "with":
		return value.text(&l.With)
	case "cached":
		return value.flag(&l.Cached)
	case "anyone":
		return value.flag(&l.Anyone)
	default:
		return value.unknown()
	}
}

// lineGroups are the groups that a line's expression may have.
var lineGroups = []string{"took", "model", "copy"}

// fewestWords is how many bytes a line has to begin with letter by letter.
const fewestWords = 4

func (l *Line) compile(value cursor) error {
	if err := value.text(&l.Says); err != nil {
		return err
	}
	says, err := regexp.Compile("^(?:" + l.Says + ")")
	if err != nil {
		return value.errorf("%w", err)
	}
	words, _ := regexp.MustCompile(l.Says).LiteralPrefix()
	if len(words) < fewestWords {
		return value.errorf("begin with at least %d letters that are always the same", fewestWords)
	}
	for _, group := range says.SubexpNames() {
		if group != "" && !slices.Contains(lineGroups, group) {
			return value.errorf("%s is no group: use took, model or copy", group)
		}
	}
	l.words, l.says = words, says
	l.took, l.model, l.copy = says.SubexpIndex("took"), says.SubexpIndex("model"), says.SubexpIndex("copy")
	return nil
}

func (s *Span) field(key string, value cursor) error {
	switch key {
	case "begins":
		return value.fact(&s.Begins)
	case "ends":
		return value.fact(&s.Ends)
	default:
		return value.unknown()
	}
}

func (p *Phase) field(key string, value cursor) error {
	switch key {
	case "tells":
		return value.fact(&p.Tells)
	case "names":
		return value.texts(&p.Names)
	case "only":
		return value.mapping(filters(&p.Only, true))
	default:
		return value.unknown()
	}
}
