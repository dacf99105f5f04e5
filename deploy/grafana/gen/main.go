// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Command gen writes the Grafana dashboards from their descriptions: one Go
// file a dashboard, which says what each panel shows, asks and means, in the
// words of panel.go. How Grafana spells that is in dashboard.go and render.go.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run . -o ..

func main() {
	folder := flag.String("o", "deploy/grafana", "folder to write to")
	flag.Parse()
	if err := writeAll(*folder); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func writeAll(folder string) error {
	for _, d := range []dashboard{fleetOverview, model, tenants, canary, coldStarts, capacity} {
		if err := d.write(filepath.Join(folder, d.file)); err != nil {
			return fmt.Errorf("%s: %w", d.file, err)
		}
	}
	return nil
}

func (d dashboard) write(path string) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // so that queries stay readable
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(d.render()); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644) //nolint:gosec // dashboards are for everyone to read
}
