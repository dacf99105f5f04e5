// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"regexp"
	"slices"
	"strings"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// metricName is what a metric may be called in Prometheus or OpenTelemetry.
// Patterns and blanks are in no name, and would match nothing.
var metricName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:./-]*$`)

// scrapers are names that the scraper's own metrics have, or that say something
// of a target.
var scrapers = []string{"up", "process_start_time_seconds"}

// histogramParts are how a histogram's series are called, of which a metric is
// made before it is read.
var histogramParts = []string{"_bucket", "_count", "_sum"}

// checkName refuses a name that no metric can have, or by which none arrives.
func (f *Form) checkName(d *Dialect, name string) error {
	part := slices.IndexFunc(histogramParts, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
	switch {
	case !metricName.MatchString(name):
		return f.at.errorf("%q is no name of a metric: use the whole name, without patterns or blanks", name)
	case d.Prefix == "" && slices.Contains(scrapers, name):
		return f.at.errorf("%s is told of every target: it can be no signal", name)
	case d.Prefix != "" && (strings.HasPrefix(name, d.Prefix+":") || strings.HasPrefix(name, d.Prefix+"_")):
		return f.at.errorf("leave %s off %s: prefix stands before every name", d.Prefix, name)
	case d.Component == Engine && strings.HasSuffix(name, "_created"):
		return f.at.errorf("%s is when a series began, and no signal", name)
	case f.Entry.Kind == fleet.Counter && strings.HasSuffix(name, "_total"):
		return f.at.errorf("leave _total off %s: a counter matches with and without", name)
	case f.Entry.Kind == fleet.Histogram && part >= 0:
		return f.at.errorf("leave %s off %s: a histogram arrives whole", histogramParts[part], name)
	}
	return nil
}

// prefixName is what a prefix may be. The separator is not part of it.
var prefixName = regexp.MustCompile(`^[a-zA-Z]([a-zA-Z0-9_.-]*[a-zA-Z0-9])?$`)
