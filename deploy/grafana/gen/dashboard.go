// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// dashboard is a page of panels.
type dashboard struct {
	file      string
	uid       string
	title     string
	help      string
	page      string // of the documentation
	from      string // where the range of time begins at first
	variables []variable
	rows      []row
}

// row is panels beside each other.
type row struct {
	height int
	panels []panel
}

// variable selects values of a label. It is offered those that of has under the
// values of the variables before it.
type variable struct {
	label   string
	title   string
	of      string // a metric
	one     bool   // and not several, or all
	initial string // of one
	apart   bool   // not of all series of the dashboard: {...} leaves it out
}

// Grafana's version of the form of its dashboards.
const schemaVersion = 42

// repository is where pages of the documentation are.
const repository = "https://github.com/llmfleet/llmfleet/blob/main/"

// object is JSON, whose keys encoding/json writes in alphabetical order.
type object map[string]any

func (d dashboard) render() object {
	return object{
		"annotations":   object{"list": []object{}},
		"description":   d.help,
		"editable":      true,
		"graphTooltip":  1, // one cross-hair for all graphs
		"links":         d.links(),
		"panels":        d.panels(),
		"refresh":       "1m",
		"schemaVersion": schemaVersion,
		"tags":          []string{"llmfleet"},
		"templating":    object{"list": d.templating()},
		"time":          object{"from": d.from, "to": "now"},
		"timezone":      "browser",
		"title":         d.title,
		"uid":           d.uid,
	}
}

func (d dashboard) links() []object {
	others := link("llmfleet", "")
	others["type"], others["tags"] = "dashboards", []string{"llmfleet"}
	others["includeVars"], others["keepTime"] = true, true
	docs := link("What it means", repository+d.page)
	docs["icon"] = "doc"
	return []object{others, docs}
}

// link leads to another dashboard, or out of Grafana.
func link(title, url string) object {
	return object{
		"asDropdown": false, "icon": "external link", "includeVars": false, "keepTime": false, "tags": []string{},
		"targetBlank": strings.HasPrefix(url, "https:"), "title": title, "tooltip": "", "type": "link", "url": url,
	}
}

// datasource is the one that the reader has chosen.
var datasource = object{"type": "prometheus", "uid": "${datasource}"}

func (d dashboard) templating() []object {
	all := []object{{"label": "Data source", "name": "datasource", "query": "prometheus", "type": "datasource"}}
	for i, v := range d.variables {
		query := fmt.Sprintf("label_values(%s{%s}, %s)", v.of, selected(d.variables[:i]), v.label)
		rendered := object{
			"datasource": datasource,
			"definition": query,
			"label":      v.title,
			"name":       v.label,
			"query":      object{"qryType": 1, "query": query, "refId": v.label},
			"refresh":    2, // when the range of time changes
			"sort":       1, // by name
			"type":       "query",
		}
		if v.initial != "" {
			rendered["current"] = object{"text": v.initial, "value": v.initial}
		}
		if !v.one {
			// .* is also what lacks the label, as a fleet without roles does.
			rendered["allValue"], rendered["includeAll"], rendered["multi"] = ".*", true, true
			rendered["current"] = object{"text": []string{"All"}, "value": []string{"$__all"}}
		}
		all = append(all, rendered)
	}
	return all
}

// selected is a selector of what variables select, without its braces.
func selected(variables []variable) string {
	matchers := make([]string, 0, len(variables))
	for _, v := range variables {
		if !v.apart {
			matchers = append(matchers, fmt.Sprintf(`%[1]s=~"$%[1]s"`, v.label))
		}
	}
	return strings.Join(matchers, ", ")
}

func (d dashboard) panels() []object {
	var all []object
	top := 0
	for _, row := range d.rows {
		left := 0
		for _, p := range row.panels {
			rendered := p.render(selected(d.variables))
			rendered["id"] = len(all) + 1
			rendered["gridPos"] = object{"h": row.height, "w": p.width, "x": left, "y": top}
			all = append(all, rendered)
			left += p.width
		}
		top += row.height
	}
	return all
}
