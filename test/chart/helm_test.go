// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"flag"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// chartFolder is the chart under test, as this package sees it.
const chartFolder = "../../deploy/helm/llmfleet"

var update = flag.Bool("update", false, "write deploy/helm/llmfleet/examples/*/rendered anew")

// scratch is a folder for what all tests share.
var scratch string

func TestMain(m *testing.M) {
	flag.Parse()
	folder, err := os.MkdirTemp("", "chart")
	if err != nil {
		log.Fatal(err)
	}
	scratch = folder
	code := m.Run()
	if err := os.RemoveAll(scratch); err != nil {
		log.Print(err)
	}
	os.Exit(code)
}

// tool returns the path of a program that the Makefile builds into .tools/.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(repository, ".tools", name))
	require.NoError(t, err)
	require.FileExists(t, path, "make it with `make .tools/%s`", name)
	return path
}

// run runs a program and returns what it wrote, to the standard output and to the error output.
func run(program string, args ...string) (written, complaint string, failed error) {
	var out, errs bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	// A home of its own and no cluster: neither plugins nor a kubeconfig of whoever runs the test have a say.
	cmd.Env = append(os.Environ(), "HOME="+scratch, "KUBECONFIG="+os.DevNull)
	failed = cmd.Run()
	return out.String(), errs.String(), failed
}

// helm runs a helm command that succeeds, and returns what it wrote.
func helm(t *testing.T, args ...string) string {
	t.Helper()
	written, complaint, err := run(tool(t, "helm"), args...)
	require.NoError(t, err, "helm %q: %s%s", args, written, complaint)
	return written
}

// refusal is what helm says when it does not render the chart.
func refusal(t *testing.T, args ...string) string {
	t.Helper()
	written, complaint, err := run(tool(t, "helm"), append([]string{"template", "llmfleet", chartFolder}, args...)...)
	require.Error(t, err, "the chart renders with %q:\n%s", args, written)
	return complaint
}
