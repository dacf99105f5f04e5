// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package imagetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
	"github.com/stretchr/testify/require"
)

// repository is the root of the repository, which is the build context, relative to the package under test.
const repository = "../.."

// Image is what the Dockerfile says of the image beside its files.
type Image struct {
	Base            string // what the stage that builds starts from
	Entrypoint, Cmd []string
	User            string // UID:GID
	Ports           []string
	Labels          map[string]string
	State           string // the folder that belongs to User
}

// Read returns what the Dockerfile says.
func Read(t *testing.T) Image {
	t.Helper()
	stages := parse(t)
	image := Image{Base: stages[0].BaseName, Labels: map[string]string{}}
	for _, command := range stages[len(stages)-1].Commands {
		switch c := command.(type) {
		case *instructions.EntrypointCommand:
			image.Entrypoint = c.CmdLine
		case *instructions.CmdCommand:
			image.Cmd = c.CmdLine
		case *instructions.UserCommand:
			image.User = c.User
		case *instructions.ExposeCommand:
			image.Ports = append(image.Ports, c.Ports...)
		case *instructions.LabelCommand:
			for _, label := range c.Labels {
				image.Labels[label.Key] = label.Value
			}
		case *instructions.CopyCommand:
			if c.Chown != "" {
				require.Empty(t, image.State, "a second folder that is not root's")
				image.State = filepath.Clean(c.DestPath)
			}
		}
	}
	return image
}

// parse returns the stages of the Dockerfile, quotes removed.
func parse(t *testing.T) []instructions.Stage {
	t.Helper()
	file, err := os.Open(repository + "/deploy/docker/Dockerfile")
	require.NoError(t, err)
	defer file.Close()
	parsed, err := parser.Parse(file)
	require.NoError(t, err)
	stages, _, err := instructions.Parse(parsed.AST, nil)
	require.NoError(t, err)
	words := shell.NewLex(parsed.EscapeToken)
	for _, stage := range stages {
		for _, command := range stage.Commands {
			if c, ok := command.(instructions.SupportsSingleWordExpansion); ok {
				require.NoError(t, c.Expand(func(word string) (string, error) {
					require.NotContains(t, word, "$", "a variable outside of RUN")
					expanded, _, err := words.ProcessWord(word, shell.EnvsFromSlice(nil))
					return expanded, err
				}))
			}
		}
	}
	return stages
}
