// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed scenarios/*.yaml
var builtin embed.FS

// Builtins lists the names of the scenarios that come with the simulator,
// sorted.
func Builtins() []string {
	files, err := builtin.ReadDir("scenarios")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	names := make([]string, 0, len(files))
	for _, file := range files {
		names = append(names, strings.TrimSuffix(file.Name(), ".yaml"))
	}
	return names
}

// Builtin returns a scenario that comes with the simulator. It is played with
// other draws when its Seed is changed.
func Builtin(name string) (Scenario, error) {
	if names := Builtins(); !slices.Contains(names, name) {
		return Scenario{}, fmt.Errorf("there is no scenario %q: write one of %s", name, strings.Join(names, ", "))
	}
	text, err := builtin.ReadFile("scenarios/" + name + ".yaml")
	if err != nil {
		return Scenario{}, err
	}
	return Parse(text)
}
