// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	dashboardFiles = "../../deploy/grafana/*.json"
	repository     = "../.."
	onGitHub       = "https://github.com/llmfleet/llmfleet/blob/main/"
)

// classic is the form of dashboards that Grafana 11 reads.
type classic = dashboard.Dashboard //nolint:staticcheck // its successor is for Grafana 12 and later

// dashboards are those that are shipped, by their uid.
func dashboards(t *testing.T) map[string]classic {
	t.Helper()
	paths, err := filepath.Glob(dashboardFiles)
	require.NoError(t, err)
	require.Len(t, paths, 6)
	all := map[string]classic{}
	for _, path := range paths {
		d, err := readDashboard([]byte(readFile(t, path)))
		require.NoError(t, err, path)
		require.NotNil(t, d.Uid, path)
		require.NotContains(t, all, *d.Uid, "%s has the uid of another", path)
		all[*d.Uid] = d
	}
	return all
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// readDashboard reads a dashboard by Grafana's own types, which refuse what they do not know.
func readDashboard(text []byte) (d classic, err error) {
	plugins.RegisterDefaultPlugins()
	if err := refused(new(classic).UnmarshalJSONStrict(text)); err != nil {
		return d, err
	}
	// What fields of panels look like is read with lenience there.
	var raw struct {
		Panels []struct{ FieldConfig json.RawMessage }
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return d, err
	}
	for _, p := range raw.Panels {
		if err := refused(new(dashboard.FieldConfigSource).UnmarshalJSONStrict(p.FieldConfig)); err != nil {
			return d, err
		}
	}
	// The strict reader checks panels and drops them: it takes its own empty list of errors for one.
	if err := json.Unmarshal(text, &d); err != nil {
		return d, err
	}
	return d, d.Validate()
}

// refused is an error, unless it is an empty list of errors.
func refused(err error) error {
	if err != nil && err.Error() == "" {
		return nil
	}
	return err
}

// TestDashboardsAreGrafanas: each is what Grafana's types take, and no id of somebody's database is in it.
func TestDashboardsAreGrafanas(t *testing.T) {
	titles := map[string]bool{}
	for uid, d := range dashboards(t) {
		assert.Equal(t, dashboard.NewDashboard().SchemaVersion, d.SchemaVersion, uid)
		assert.Nil(t, d.Id, uid)
		assert.LessOrEqual(t, len(uid), 40, "Grafana takes no longer uid")
		assert.Contains(t, d.Tags, "llmfleet", uid)
		assert.False(t, titles[*d.Title], *d.Title)
		titles[*d.Title] = true
	}
}

// TestGrafanasTypesAreStrict: a key that Grafana does not know, anywhere in a file, would be found.
func TestGrafanasTypesAreStrict(t *testing.T) {
	text := readFile(t, "../../deploy/grafana/model.json")
	for _, key := range []string{
		"schemaVersion", "gridPos", "legendFormat", "reduceOptions", "stacking", "thresholds", "noValue", "matcher", "allValue", "keepTime",
	} {
		quoted := `"` + key + `":`
		require.Contains(t, text, quoted)
		_, err := readDashboard([]byte(strings.Replace(text, quoted, `"misspelt":`, 1)))
		assert.Error(t, err, key)
	}
}

// TestPanelsExplainThemselves: what each shows, in which unit, what to do, and what it means that it shows nothing. The first row
// is figures that tell whether anything is wrong.
func TestPanelsExplainThemselves(t *testing.T) {
	for uid, d := range dashboards(t) {
		require.LessOrEqual(t, len(d.Panels), 14, uid)
		for _, p := range panels(t, d) {
			name := uid + ": " + *p.Title
			assert.Greater(t, len(*p.Description), 40, name)
			assert.NotEmpty(t, *p.FieldConfig.Defaults.NoValue, name)
			assert.Equal(t, "${datasource}", *p.Datasource.Uid, name)
			assert.Equal(t, p.GridPos.Y == 0, p.Type == "stat", name)
			if p.Type != "table" {
				assert.NotEmpty(t, *p.FieldConfig.Defaults.Unit, name)
			}
		}
	}
}

// panels are those of a dashboard; rows that fold are not used.
func panels(t *testing.T, d classic) (all []*dashboard.Panel) {
	t.Helper()
	for _, p := range d.Panels {
		require.NotNil(t, p.Panel, *d.Uid)
		all = append(all, p.Panel)
	}
	return all
}

// TestPanelsFillTheGrid: all 24 columns, without a gap and without two panels in one place.
func TestPanelsFillTheGrid(t *testing.T) {
	type cell struct{ x, y uint32 }
	for uid, d := range dashboards(t) {
		taken, bottom := map[cell]string{}, uint32(0)
		ids := map[uint32]bool{}
		for _, p := range panels(t, d) {
			require.False(t, ids[*p.Id], "%s: two panels have the id %d", uid, *p.Id)
			ids[*p.Id] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					assert.Empty(t, taken[cell{x, y}], "%s: %s lies upon it", uid, *p.Title)
					assert.Less(t, x, uint32(24), "%s: %s", uid, *p.Title)
					taken[cell{x, y}] = *p.Title
				}
			}
			bottom = max(bottom, p.GridPos.Y+p.GridPos.H)
		}
		assert.Len(t, taken, int(24*bottom), uid)
	}
}

var link = regexp.MustCompile(`"url": "([^"]+)"`)

// TestDashboardLinksLead: to dashboards that there are, with variables that they have, and to parts of pages of this repository.
func TestDashboardLinksLead(t *testing.T) {
	all := dashboards(t)
	paths, err := filepath.Glob(dashboardFiles)
	require.NoError(t, err)
	inside, outside := 0, 0
	for _, path := range paths {
		for _, found := range link.FindAllStringSubmatch(readFile(t, path), -1) {
			target := found[1]
			if page, ok := strings.CutPrefix(target, onGitHub); ok {
				outside++
				assert.True(t, hasPart(t, page), "%s: %s", path, target)
				continue
			}
			inside++
			to, err := url.Parse(target)
			require.NoError(t, err)
			d, known := all[strings.TrimPrefix(to.Path, "/d/")]
			if assert.True(t, known, "%s: %s", path, target) {
				assert.True(t, slices.ContainsFunc(d.Templating.List, func(v dashboard.VariableModel) bool {
					return strings.Contains(target, "&var-"+v.Name+"=")
				}), target)
			}
		}
	}
	assert.Greater(t, inside, 5)
	assert.Greater(t, outside, 20)
}

var heading = regexp.MustCompile(`(?m)^#+ (.+)$`)

// hasPart tells whether a page of the repository exists and, where an anchor follows, has that heading.
func hasPart(t *testing.T, page string) bool {
	t.Helper()
	path, anchor, _ := strings.Cut(page, "#")
	for _, h := range heading.FindAllStringSubmatch(readFile(t, filepath.Join(repository, path)), -1) {
		if anchor == "" || anchorOf(h[1]) == anchor {
			return true
		}
	}
	return false
}

// anchorOf is how GitHub calls a heading in links.
func anchorOf(heading string) string {
	return regexp.MustCompile(`[^\p{L}\p{N}_-]`).ReplaceAllString(strings.ReplaceAll(strings.ToLower(heading), " ", "-"), "")
}
