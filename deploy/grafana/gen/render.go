// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// render is the panel in Grafana's words, wherever it lies.
func (p panel) render(selected string) object {
	rendered := object{
		"datasource":  datasource,
		"description": p.help,
		"fieldConfig": object{"defaults": p.defaults(), "overrides": p.overrides()},
		"options":     p.options(),
		"targets":     p.targets(selected),
		"title":       p.title,
		"type":        p.kind,
	}
	if p.page != "" {
		rendered["links"] = []object{link("What to do", repository+p.page)}
	}
	if p.kind == table {
		rendered["transformations"] = p.transformations()
	}
	return rendered
}

func (p panel) targets(selected string) []object {
	targets := make([]object, len(p.queries))
	for i, q := range p.queries {
		t := object{
			"datasource": datasource,
			"editorMode": "code",
			"expr":       strings.ReplaceAll(strings.TrimSpace(q.expr), "{...", "{"+selected),
			"interval":   pace,
			"refId":      refID(i),
		}
		switch p.kind {
		case table:
			t["format"], t["instant"], t["range"] = "table", true, false
		case stat:
			t["instant"], t["range"], t["legendFormat"] = true, false, q.legend
		default:
			t["instant"], t["range"], t["legendFormat"] = false, true, q.legend
		}
		targets[i] = t
	}
	return targets
}

// pace is how often llmfleet tells by default, and the least that a graph is
// fine: a rate is of two minutes then, in which even a slow scrape comes twice.
const pace = "30s"

// refID names a query of a panel: A, B, …
func refID(i int) string { return "ABCDEFGHIJ"[i : i+1] }

func (p panel) defaults() object {
	defaults := object{
		"color":      object{"mode": "palette-classic"},
		"noValue":    p.empty,
		"thresholds": thresholds(p.bands),
		"unit":       p.unit,
	}
	switch p.kind {
	case stat:
		defaults["color"] = object{"mode": "thresholds"}
	case table:
		defaults["color"] = object{"mode": "thresholds"}
		defaults["custom"] = object{"align": "auto", "cellOptions": object{"type": "auto"}, "filterable": true, "inspect": false}
	default:
		defaults["custom"] = p.lines()
	}
	if p.toModel && p.kind != table {
		defaults["links"] = []object{toModel("${__field.labels.model_name}")}
	}
	return defaults
}

// toModel leads to the dashboard of a model.
func toModel(name string) object {
	return link("This model", "/d/"+model.uid+"?${datasource:queryparam}&var-model_name="+name+"&${__url_time_range}")
}

// lines are a graph's. A gap in the data is a gap in the line, and the axis
// begins at zero, so that what looks twice as high is twice as much.
func (p panel) lines() object {
	lines := object{
		"axisSoftMin": 0,
		"drawStyle":   "line",
		"fillOpacity": 0,
		"lineWidth":   1,
		"showPoints":  "auto",
		"spanNulls":   false,
	}
	if p.stacked {
		lines["fillOpacity"] = 60
		lines["stacking"] = object{"group": "A", "mode": "normal"}
	}
	if len(p.bands) > 0 {
		lines["thresholdsStyle"] = object{"mode": "dashed"}
	}
	return lines
}

func thresholds(bands []band) object {
	steps := make([]object, 0, max(len(bands), 1))
	for i, b := range bands {
		step := object{"color": b.color, "value": b.from}
		if i == 0 {
			step["value"] = nil // Grafana's first band has no lower end
		}
		steps = append(steps, step)
	}
	if len(steps) == 0 {
		steps = append(steps, object{"color": neutral, "value": nil})
	}
	return object{"mode": "absolute", "steps": steps}
}

func (p panel) options() object {
	switch p.kind {
	case stat:
		text, color := "value", "value"
		if p.named {
			text, color = "name", "background_solid"
		}
		return object{
			"colorMode": color, "graphMode": "none", "justifyMode": "auto", "orientation": "auto",
			"percentChangeColorMode": "standard", "showPercentChange": false, "textMode": text, "wideLayout": true,
			"reduceOptions": object{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
		}
	case table:
		sorting := []object{}
		if p.sortBy != "" {
			sorting = append(sorting, object{"desc": true, "displayName": p.sortBy})
		}
		return object{"cellHeight": "sm", "frameIndex": 0, "showHeader": true, "sortBy": sorting}
	default:
		return object{
			"legend":  object{"calcs": []string{}, "displayMode": "list", "placement": "bottom", "showLegend": true},
			"tooltip": object{"mode": "multi", "sort": "desc"},
		}
	}
}
