// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	// root is the top of the repository, seen from this folder.
	root = "../.."

	maxFileLines     = 400
	maxFunctionLines = 60

	licence = "// Copyright The llmfleet Authors\n// SPDX-License-Identifier: Apache-2.0\n"
)

// clockFunctions are the functions of package time that read or wait for the
// wall clock.
var clockFunctions = map[string]bool{
	"After": true, "AfterFunc": true, "NewTicker": true, "NewTimer": true, "Now": true,
	"Since": true, "Sleep": true, "Tick": true, "Until": true,
}

// source is one hand-written Go file.
type source struct {
	path string // relative to the root, with slashes
	text string
	set  *token.FileSet
	file *ast.File
}

func parseSource(path, text string) (source, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.ParseComments|parser.SkipObjectResolution)
	return source{path: path, text: text, set: set, file: file}, err
}

// readSources reads every hand-written Go file of the repository, those of the
// test modules included. What OCB writes into dist/ is not ours to shape.
func readSources(t *testing.T) []source {
	t.Helper()
	var sources []source
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "testdata" || path == filepath.Join(root, "dist")) {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		s, err := parseSource(filepath.ToSlash(relative), string(text))
		if err == nil && !ast.IsGenerated(s.file) {
			sources = append(sources, s)
		}
		return err
	}))
	return sources
}

// checkSize says where a file or one of its functions is too long to be read
// in one go. Tests may be long: their tables are.
func (s source) checkSize() []string {
	if s.isTest() {
		return nil
	}
	var violations []string
	if lines := strings.Count(s.text, "\n"); lines > maxFileLines {
		violations = append(violations, fmt.Sprintf("%s: %d lines, more than %d: a concept is missing", s.path, lines, maxFileLines))
	}
	for _, declaration := range s.file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		first, last := s.set.Position(function.Pos()).Line, s.set.Position(function.End()).Line
		if lines := last - first + 1; lines > maxFunctionLines {
			violations = append(violations, fmt.Sprintf("%s:%d: %s has %d lines, more than %d", s.path, first, function.Name.Name, lines, maxFunctionLines))
		}
	}
	return violations
}

// checkClock says where a room without a clock reads it. Event time comes in
// with the data and with the tick, so that a judgement can be repeated.
func (s source) checkClock(plan []room) []string {
	row, _, found := roomOf(plan, module+filepath.ToSlash(filepath.Dir(s.path)))
	if !found || row.may&clock != 0 || s.isTest() {
		return nil
	}
	var violations []string
	for name := range s.importNames("time") {
		ast.Inspect(s.file, func(node ast.Node) bool {
			selector, ok := node.(*ast.SelectorExpr)
			if !ok || !clockFunctions[selector.Sel.Name] {
				return true
			}
			if qualifier, ok := selector.X.(*ast.Ident); ok && qualifier.Name == name {
				violations = append(violations, fmt.Sprintf("%s: time.%s below evaluate", s.set.Position(selector.Pos()), selector.Sel.Name))
			}
			return true
		})
	}
	return violations
}

// checkLicence says whether a file lacks the licence header.
func (s source) checkLicence() []string {
	if strings.HasPrefix(s.text, licence) {
		return nil
	}
	return []string{s.path + ": does not begin with the licence header"}
}

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// importNames are the names under which a file imports a package, mostly none or one.
func (s source) importNames(importPath string) map[string]bool {
	names := map[string]bool{}
	for _, spec := range s.file.Imports {
		switch imported, err := strconv.Unquote(spec.Path.Value); {
		case err != nil || imported != importPath:
		case spec.Name != nil:
			names[spec.Name.Name] = true
		default:
			names[filepath.Base(importPath)] = true
		}
	}
	return names
}
