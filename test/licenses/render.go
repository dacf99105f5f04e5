// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// accepted are the licenses that a module may have, by SPDX identifier: they ask for notices, and MPL-2.0 that changes to
// its own files be shown, of which there are none here.
var accepted = []string{
	"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MPL-2.0", "Unlicense", "Zlib",
}

// understood is the percentage of a text that known licenses must make up: what pkg.go.dev asks for, too.
const understood = 75

// licenses names a module's licenses in order. Those that no file makes known are "unknown".
func (m module) licenses() []string {
	var found []string
	for _, f := range m.files {
		if !grants.MatchString(path.Base(f.path)) {
			continue
		}
		coverage := licensecheck.Scan(f.text)
		if coverage.Percent < understood {
			found = append(found, "unknown")
		}
		for _, match := range coverage.Match {
			found = append(found, match.ID)
		}
	}
	if len(found) == 0 {
		return []string{"unknown"}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// check refuses licenses that are not accepted.
func check(modules []module) error {
	var errs []error
	for _, m := range modules {
		for _, license := range m.licenses() {
			if !slices.Contains(accepted, license) {
				errs = append(errs, fmt.Errorf("%s %s: a license that is not accepted: %s", m.path, m.version, license))
			}
		}
	}
	return errors.Join(errs...)
}

// table renders modules, their versions and licenses as CSV.
func table(to *bytes.Buffer, modules []module) error {
	w := csv.NewWriter(to)
	rows := [][]string{{"module", "version", "licenses"}}
	for _, m := range modules {
		rows = append(rows, []string{m.path, m.version, strings.Join(m.licenses(), " AND ")})
	}
	return w.WriteAll(rows)
}

// texts renders each different text once, under the modules that have it.
func texts(to *bytes.Buffer, modules []module) error {
	names := map[string][]string{}
	for _, m := range modules {
		for _, f := range m.files {
			text := plain(f.text)
			name := path.Join(m.path, f.path)
			names[text] = append(names[text], name)
		}
	}
	order := make([]string, 0, len(names))
	for text := range names {
		order = append(order, text)
	}
	slices.SortFunc(order, func(a, b string) int { return cmp.Compare(names[a][0], names[b][0]) })
	fmt.Fprintln(to, "The llmfleet collector has in it the work of others, under these terms.")
	for _, text := range order {
		fmt.Fprintf(to, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(names[text], "\n"), text)
	}
	return nil
}

// plain is a text without what an editor does not show.
func plain(text []byte) string {
	lines := strings.Split(string(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t\r\f")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}
