// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"path"
	"strings"
)

// module is the product's module path; paths in the table are relative to it.
const module = "github.com/llmfleet/llmfleet/"

// grant is what a room may use besides the rooms it imports.
type grant uint8

const (
	// modules: third-party packages, OpenTelemetry excepted.
	modules grant = 1 << iota
	// otel: go.opentelemetry.io, directly or through any other package.
	otel
	// clock: the wall clock and its timers.
	clock
	// world: files, network, environment, logs.
	world

	nothing grant = 0
	all           = modules | otel | clock | world
)

// room is one row of the plan. A * in a path stands for part of one path
// element, and each path that it matches is a room of its own: two components
// are two rooms. A room may import its own subpackages and the rooms named.
type room struct {
	path    string
	may     grant
	imports string
}

// house is the one arrow, lowest room first: a room imports only rooms of
// earlier rows.
var house = []room{
	{"internal/stats", nothing, ""},
	{"internal/window", nothing, ""},
	{"internal/sealed", nothing, ""},
	{"internal/fleet", modules, "internal/stats internal/window"},
	{"internal/tenant", modules, "internal/stats internal/window"},
	{"internal/lifecycle", nothing, "internal/window"},
	{"internal/dialect", modules | world, "internal/stats internal/window internal/fleet internal/lifecycle"},
	{"internal/settings", modules | otel, ""},
	{"internal/sharedcore", nothing, ""},

	{"internal/judge/*", modules, "internal/sealed internal/stats internal/window internal/fleet internal/tenant internal/lifecycle internal/dialect"},
	{"internal/intake", modules | otel, "internal/stats internal/window internal/fleet internal/tenant internal/lifecycle internal/dialect"},
	{"internal/emit", modules | otel | world, "internal/stats internal/window internal/fleet internal/lifecycle internal/dialect"},
	{"internal/evaluate", modules | clock, "internal/stats internal/window internal/fleet internal/dialect"},

	{"receiver/*receiver", all, inside},
	{"processor/*processor", all, inside},
	{"connector/*connector", all, inside},
	{"exporter/*exporter", all, inside},
	{"extension/*extension", all, inside},

	// Beside the arrow: the simulated fleet knows what engines say, not how we judge it; score cards bring both together.
	{"internal/fleetsim", modules | clock | world, "internal/stats internal/window internal/fleet internal/lifecycle internal/dialect"},
	{"internal/fleetsim/gateway", modules | otel | clock | world, "internal/fleetsim"},
	{"internal/score", modules | clock | world, "internal/stats internal/window internal/fleet internal/tenant internal/lifecycle internal/dialect internal/judge/* internal/fleetsim"},
	{"cmd/fleetsim", all, "internal/fleetsim internal/fleetsim/gateway"},
	{"cmd/whois", all, "internal/tenant"},
	{"examples/internal/demo", all, "internal/fleetsim internal/fleetsim/gateway"},
	{"examples/*", all, "internal/fleetsim internal/fleetsim/gateway examples/internal/demo"},

	// What writes files of the tree, and imports nothing of it.
	{"deploy/grafana/gen", world, ""},

	// Helpers that only tests import: no row but theirs names them.
	{"internal/*test", all, inside},
	{"examples/internal/demotest", all, "internal/dialect internal/fleetsim internal/*test"},
}

// inside is what a component is made of.
const inside = "internal/stats internal/window internal/fleet internal/tenant internal/lifecycle internal/dialect internal/judge/* internal/settings internal/sharedcore internal/intake internal/emit internal/evaluate"

// roomOf finds the row of a package and the path of its room: for
// processor/aprocessor/internal/metadata that is processor/aprocessor. A room
// inside of another has a row of its own.
func roomOf(plan []room, importPath string) (row room, roomPath string, found bool) {
	elements := strings.Split(strings.TrimPrefix(importPath, module), "/")
	for _, r := range plan {
		depth := strings.Count(r.path, "/") + 1
		if len(elements) < depth || found && depth <= strings.Count(roomPath, "/")+1 {
			continue
		}
		candidate := strings.Join(elements[:depth], "/")
		if ok, err := path.Match(r.path, candidate); err == nil && ok {
			row, roomPath, found = r, candidate, true
		}
	}
	return row, roomPath, found
}
