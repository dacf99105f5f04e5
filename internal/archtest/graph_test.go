// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pkg is what a rule needs of one package: a subset of go list's output.
type pkg struct {
	ImportPath string
	Name       string
	Standard   bool
	Imports    []string // by non-test files
	Deps       []string // Imports and all that they import in turn
}

// graph is a set of packages by import path, dependencies included.
type graph map[string]pkg

// listPackages asks the go command for the packages of the module around this
// folder and everything they depend on.
func listPackages(t *testing.T) graph {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Name,Standard,Imports,Deps", "./...")
	cmd.Dir = root
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "go list: %s", &stderr)

	packages := graph{}
	for decoder := json.NewDecoder(&stdout); ; {
		var p pkg
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		require.NoError(t, err)
		packages[p.ImportPath] = p
	}
}

// check holds every package of the module to its room in the plan and returns
// the violations, sorted.
func (g graph) check(plan []room) []string {
	var violations []string
	for _, p := range g {
		if !isOurs(p.ImportPath) {
			continue
		}
		row, home, found := roomOf(plan, p.ImportPath)
		if !found {
			violations = append(violations, p.ImportPath+": has no room in the house")
			continue
		}
		if slices.Contains(namesThatSayNothing, p.Name) {
			violations = append(violations, fmt.Sprintf("%s: a package called %s says nothing of what is inside", p.ImportPath, p.Name))
		}
		for _, imported := range p.Imports {
			if reason := g.forbids(plan, row, home, imported); reason != "" {
				violations = append(violations, fmt.Sprintf("%s imports %s: %s", home, imported, reason))
			}
		}
		violations = append(violations, g.reached(row, p)...)
	}
	slices.Sort(violations)
	return slices.Compact(violations)
}

// forbids says why a room must not import a package directly; empty if it may.
func (g graph) forbids(plan []room, row room, home, imported string) string {
	switch {
	case isOurs(imported):
		target, targetHome, _ := roomOf(plan, imported)
		if targetHome != home && !slices.Contains(strings.Fields(row.imports), target.path) {
			return "against the arrow"
		}
	case g[imported].Standard:
		if row.may&world == 0 && isWorld(imported) {
			return "a pure room does not touch files, network, environment or logs"
		}
	case !isOTel(imported) && row.may&modules == 0:
		return "this room has the standard library only"
	}
	return ""
}

// reached says what a package must not reach even through others.
func (g graph) reached(row room, p pkg) []string {
	if row.may&otel != 0 {
		return nil
	}
	for _, dep := range p.Deps {
		if isOTel(dep) {
			return []string{fmt.Sprintf("%s reaches %s: OpenTelemetry is known to components, intake and emit only", p.ImportPath, dep)}
		}
	}
	return nil
}

func isOurs(importPath string) bool { return strings.HasPrefix(importPath, module) }

func isOTel(importPath string) bool {
	return strings.HasPrefix(importPath, "go.opentelemetry.io/") ||
		strings.HasPrefix(importPath, "github.com/open-telemetry/")
}

// isWorld tells standard packages through which a judgement would come to
// depend on more than its input.
func isWorld(importPath string) bool {
	if importPath == "net/netip" {
		return false // reads and writes addresses, and opens none
	}
	top, _, _ := strings.Cut(importPath, "/")
	return slices.Contains([]string{"os", "net", "log", "syscall", "plugin", "database"}, top) || importPath == "crypto/rand"
}

var namesThatSayNothing = []string{"base", "common", "helper", "helpers", "lib", "misc", "shared", "types", "util", "utils"}
