// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// Table lays rows out in columns.
type Table struct {
	text    bytes.Buffer
	writer  *tabwriter.Writer
	columns int
}

// NewTable has a head and no rows.
func NewTable(head ...string) *Table {
	t := &Table{columns: len(head)}
	t.writer = tabwriter.NewWriter(&t.text, 0, 0, 2, ' ', 0)
	t.Row(head...)
	return t
}

// Row adds a row.
func (t *Table) Row(cells ...string) { fmt.Fprintln(t.writer, strings.Join(cells, "\t")) }

// Gap adds an empty line.
func (t *Table) Gap() {
	fmt.Fprintln(t.writer, strings.Repeat("\t", t.columns-1)) // a line without cells would end the columns
}

// Print writes the table after an empty line.
func (t *Table) Print(out io.Writer) error {
	if err := t.writer.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for line := range strings.Lines(t.text.String()) {
		fmt.Fprintln(out, strings.TrimRight(line, " \n"))
	}
	return nil
}

// Number formats a value; "-" if there is none.
func Number(format string, v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf(format, v)
}
