// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"errors"
	"fmt"
	"os"

	"go.yaml.in/yaml/v3"
)

// Sources is the setting `dialects` of a fleet processor: dialects beside those
// that come with the product, each the path of a file or the same keys inline.
// What one says of a signal of its engine, or of a name, counts instead of what
// the product says.
type Sources []any

// Load returns the dialects that come with the product and those of the
// sources. Errors say where: "file:line: key: what is wrong", or, of what
// stands inline, "dialects[0]: key: what is wrong".
func (s Sources) Load() (*Set, error) {
	if len(s) == 0 {
		return Builtin(), nil
	}
	var (
		dialects []*Dialect
		errs     []error
	)
	for i, source := range s {
		d, err := readSource(fmt.Sprintf("dialects[%d]", i), source)
		dialects, errs = append(dialects, d), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return Builtin().with(dialects)
}

func readSource(at string, source any) (*Dialect, error) {
	switch source := source.(type) {
	case string:
		data, err := readFile(source)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: use the path of a file that the collector can read, or write its keys here", at, err)
		}
		return read(source, data)
	case map[string]any:
		// By way of YAML, so that inline and file are read by the same rules.
		node := new(yaml.Node)
		if err := node.Encode(source); err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		return readDialect(cursor{file: at, node: node})
	default:
		return nil, fmt.Errorf("%s: want the path of a file, or the keys of one", at)
	}
}

// maxFile is more than a dialect takes: the longest of ours has 15 kB.
const maxFile = 1 << 20

// readFile reads a file of a size that a dialect may have, and nothing that is
// no file: a pipe would keep the collector waiting.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no file", path)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s has %d bytes, more than %d", path, info.Size(), maxFile)
	}
	return os.ReadFile(path)
}
