// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed head.md
var head string

//go:embed itself.md
var itselfHead string

// page is the whole reference: one table a component, in the order of the
// metrics, and at last what llmfleet tells of itself.
func page(all []metric) string {
	var page strings.Builder
	page.WriteString(head)
	var components []string
	for i := range all {
		if c := all[i].component; all[i].of != itself && !slices.Contains(components, c) {
			components = append(components, c)
		}
	}
	for _, c := range components {
		fmt.Fprintf(&page, "\n## %s\n\n", c)
		page.WriteString("| metric | in Prometheus | type | unit | of | more labels | by default | stability | meaning |\n")
		page.WriteString("|---|---|---|---|---|---|---|---|---|\n")
		for i := range all {
			if m := &all[i]; m.component == c && m.of != itself {
				fmt.Fprintf(&page, "| %#q | %#q | %s | %#q | %s | %s | %s | %s | %s |\n",
					m.name, m.prometheus, m.kind, m.unit, m.of, m.quotedLabels(), m.byDefault(), m.stability, m.description)
			}
		}
	}
	page.WriteString(itselfHead)
	for i := range all {
		if m := &all[i]; m.of == itself {
			fmt.Fprintf(&page, "| %#q | %s | %#q | %s | %s | %s |\n",
				m.prometheus, m.kind, m.unit, m.quotedLabels(), m.stability, m.description)
		}
	}
	return page.String()
}

func (m *metric) byDefault() string {
	if m.enabled {
		return "on"
	}
	return "off"
}

func (m *metric) quotedLabels() string {
	quoted := make([]string, len(m.labels))
	for i, l := range m.labels {
		quoted[i] = "`" + l + "`"
	}
	return strings.Join(quoted, ", ")
}
