// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

// overrides are what single columns of a table have of their own.
func (p panel) overrides() []object {
	overrides := []object{}
	if p.kind != table {
		return overrides
	}
	override := func(title string, properties ...object) {
		properties = append(properties, property("noValue", "–")) // p.empty is for the whole table
		overrides = append(overrides, object{"matcher": object{"id": "byName", "options": title}, "properties": properties})
	}
	for _, l := range p.labels {
		if p.toModel && l == byModel {
			override(l.title, property("links", []object{toModel("${__value.raw}")}))
		} else {
			override(l.title)
		}
	}
	for _, q := range p.queries {
		if q.column.title == "" {
			continue
		}
		properties := []object{property("unit", q.column.unit)}
		if len(q.column.bands) > 0 {
			properties = append(properties,
				property("thresholds", thresholds(q.column.bands)), property("custom.cellOptions", object{"type": "color-text"}))
		}
		override(q.column.title, properties...)
	}
	return overrides
}

func property(id string, value any) object { return object{"id": id, "value": value} }

// transformations make one row of what queries answer for the same labels, and
// name the columns.
func (p panel) transformations() []object {
	excluded, order, names := object{"Time": true}, object{}, object{}
	for i, l := range p.labels {
		order[l.name], names[l.name] = i, l.title
	}
	for i, q := range p.queries {
		value := "Value #" + refID(i)
		if len(p.queries) == 1 {
			value = "Value"
		}
		if q.column.title == "" {
			excluded[value] = true
			continue
		}
		order[value], names[value] = len(p.labels)+i, q.column.title
	}
	return []object{
		{"id": "merge", "options": object{}},
		{"id": "organize", "options": object{"excludeByName": excluded, "indexByName": order, "renameByName": names}},
	}
}
