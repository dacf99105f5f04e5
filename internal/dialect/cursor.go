// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// cursor is a place in a YAML file: a node, and how it was reached. It reads
// more strictly than decoding into a struct does (no value is converted, null
// is not empty), and its errors name file, line and key.
type cursor struct {
	file string
	path string // the keys that lead here, joined by dots; "" at the top
	line int    // of the last key, which is where a reader looks; 0 for what stands in no file
	node *yaml.Node
}

// parseYAML returns the top of a file that holds exactly one document.
func parseYAML(file string, data []byte) (cursor, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return cursor{}, fmt.Errorf("%s: %w", file, err)
	}
	top := cursor{file: file, line: 1, node: new(yaml.Node)}
	if len(document.Content) > 0 {
		top.node = resolved(document.Content[0])
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return cursor{}, top.errorf("want one document a file")
	}
	return top, nil
}

func (c cursor) errorf(format string, args ...any) error {
	place := c.file + ": "
	if c.line > 0 {
		place = fmt.Sprintf("%s:%d: ", c.file, c.line)
	}
	if c.path != "" {
		place += c.path + ": "
	}
	return fmt.Errorf("%s%w", place, fmt.Errorf(format, args...))
}

func (c cursor) unknown() error { return c.errorf("unknown key") }

// resolved is what an alias (*name) stands for.
func resolved(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// key returns the cursor one key further.
func (c cursor) key(name string, line int, value *yaml.Node) cursor {
	path := strings.Trim(c.path+"."+name, ".")
	return cursor{file: c.file, path: path, line: line, node: value}
}

// find returns the cursor of a key that is there.
func (c cursor) find(key string) cursor {
	found := c
	_ = c.mapping(func(k string, value cursor) error {
		if k == key {
			found = value
		}
		return nil
	})
	return found
}

// items returns the cursors of a list's elements.
func (c cursor) items() []cursor {
	var all []cursor
	for i, item := range c.node.Content {
		at := c
		at.path, at.node = fmt.Sprintf("%s[%d]", c.path, i), resolved(item)
		if c.line > 0 {
			at.line = item.Line
		}
		all = append(all, at)
	}
	return all
}

// mapping calls read for each key in the order of the file, and then asks for
// the required keys.
func (c cursor) mapping(read func(key string, value cursor) error, required ...string) error {
	if c.node.Kind != yaml.MappingNode {
		return c.errorf("want keys and values")
	}
	var seen []string
	for pair := range slices.Chunk(c.node.Content, 2) {
		key := pair[0].Value
		line := pair[0].Line
		if c.line == 0 {
			line = 0
		}
		value := c.key(key, line, resolved(pair[1]))
		if pair[0].ShortTag() != "!!str" || pair[0].Kind != yaml.ScalarNode || key == "" {
			return c.key("", line, nil).errorf("want a text for a key, not %q", key)
		}
		if slices.Contains(seen, key) {
			return value.errorf("key stands twice")
		}
		seen = append(seen, key)
		if err := read(key, value); err != nil {
			return err
		}
	}
	for _, key := range required {
		if !slices.Contains(seen, key) {
			return c.key(key, c.line, nil).errorf("key is missing")
		}
	}
	return nil
}

// text reads a string that is not empty.
func (c cursor) text(into *string) error {
	if c.node.ShortTag() != "!!str" || c.node.Value == "" {
		return c.errorf("want a text")
	}
	*into = c.node.Value
	return nil
}

// texts reads a list of strings that is not empty, and none of which is.
func (c cursor) texts(into *[]string) error {
	if err := c.values(into); err != nil {
		return err
	}
	if slices.Contains(*into, "") {
		return c.errorf("want no empty text")
	}
	return nil
}

// values reads a list of strings that is not empty; the strings may be.
func (c cursor) values(into *[]string) error {
	if c.node.Kind != yaml.SequenceNode || len(c.node.Content) == 0 {
		return c.errorf("want a list of texts")
	}
	for _, item := range c.items() {
		if item.node.Kind != yaml.ScalarNode || item.node.ShortTag() != "!!str" {
			return c.errorf("want a list of texts")
		}
		*into = append(*into, item.node.Value)
	}
	return nil
}

// flag reads true or false.
func (c cursor) flag(into *bool) error {
	if c.node.ShortTag() != "!!bool" || c.node.Decode(into) != nil {
		return c.errorf("want true or false")
	}
	return nil
}

func (c cursor) number(into *float64) error {
	tag := c.node.ShortTag()
	if tag != "!!float" && tag != "!!int" {
		return c.errorf("want a number")
	}
	if err := c.node.Decode(into); err != nil {
		return c.errorf("want a number: %w", err)
	}
	return nil
}
