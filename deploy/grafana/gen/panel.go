// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// panel is what one panel of a dashboard shows.
type panel struct {
	kind    kind
	title   string
	help    string // what it tells, and what to do about it
	page    string // of the documentation that says more, with its anchor
	unit    string // as Grafana names it
	width   int    // of the 24 columns
	empty   string // shown where there is no data, which is never the same as zero
	queries []query
	bands   []band  // colours by value
	named   bool    // a stat shows its legend instead of the value
	stacked bool    // a graph's lines lie upon each other
	labels  []label // a table's first columns
	sortBy  string  // the title of the column by which a table is sorted, the greatest first
	toModel bool    // series or rows lead to the dashboard of their model
}

// kind is a visualization, as Grafana names it.
type kind string

const (
	stat  kind = "stat"
	graph kind = "timeseries"
	table kind = "table"
)

// query is what a panel asks. In the expression, {...} stands for the values
// that the dashboard's variables select: llmfleet_fleet_requests{..., state="waiting"}.
type query struct {
	expr   string
	legend string // of a stat and a graph; braces hold names of labels
	column column // of a table
}

// column is one of a table's, with the values of a query. Without a title the
// query only adds rows.
type column struct {
	title string
	unit  string
	bands []band
}

// label is a column of a table with the values of a label.
type label struct{ name, title string }

// band is the colour of values from one on, as far as the next band.
type band struct {
	from  float64
	color string
}

const (
	good    = "green"
	doubt   = "yellow"
	bad     = "red"
	neutral = "text"
)

// badFrom is of figures of which less is better.
func badFrom(limit float64) []band { return []band{{0, good}, {limit, bad}} }

// doubtFrom is of figures that are a reason to look before they are bad.
func doubtFrom(doubtful, limit float64) []band {
	return []band{{0, good}, {doubtful, doubt}, {limit, bad}}
}

// goodFrom is of figures of which more is better, up to enough.
func goodFrom(poor, enough float64) []band {
	return []band{{0, bad}, {poor, doubt}, {enough, good}}
}

// Units, as Grafana names them.
const (
	count   = "short"
	seconds = "s"
	share   = "percentunit"
	rate    = "reqps"
)

// Labels that several tables have.
var (
	byCluster   = label{"cluster", "Cluster"}
	byNamespace = label{"namespace", "Namespace"}
	byModel     = label{"model_name", "Model"}
	byReplica   = label{"replica", "Replica"}
	byGPU       = label{"gpu_model", "GPU"}
	byWorkload  = label{"workload", "Workload"}
)

// Legends. A label that a series does not have is left out.
const (
	ofFleet   = "{{namespace}} {{model_name}} {{role}} {{engine_name}} {{gpu_model}}"
	ofReplica = "{{replica}}"
)

// fleets, put before a selector, leaves one series of each fleet: while it is
// handed over from one collector to another, both tell of it.
const fleets = "max by (cluster, namespace, model_name, role, engine_name, gpu_model) "

// most selects the n series that were highest in the range of time on view.
// Chosen once for all of it, they neither come nor go.
func most(n int, selector string) string {
	return fmt.Sprintf("%[2]s and topk(%[1]d, max_over_time(%[2]s[$__range] @ end()))", n, selector)
}

// grown is how much a counter rose in a span of time that is longer than it may
// have existed: what was not there before counts as a whole, which increase
// leaves out.
func grown(selector, span string) string {
	return fmt.Sprintf("(%[1]s unless last_over_time(%[1]s[1d] offset %[2]s)) or increase(%[1]s[%[2]s])", selector, span)
}
