// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package imagetest

import (
	_ "embed" // the script
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/binarytest"
)

//go:embed container.sh
var container string

// Mount puts files, by their names, into a folder of the root file system, readable to all as Kubernetes' volumes are.
func Mount(t *testing.T, rootfs, path string, files map[string]string) {
	t.Helper()
	folder := filepath.Join(rootfs, path)
	require.NoError(t, os.MkdirAll(folder, 0o755))
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644))
	}
}

// Start runs the image's entry point in a root file system until the test ends; see Command.
func Start(t *testing.T, rootfs string, env []string, args ...string) *binarytest.Process {
	t.Helper()
	return binarytest.StartCommand(t, filepath.Base(Read(t).Entrypoint[0]), Command(t, rootfs, env, args...))
}

// Command is the image's entry point, to be run in a root file system as the image's user and with nothing in its
// environment but env (NAME=VALUE). Without args it gets those of the image. Of the file system it can write the folder
// of its state alone; it shares the network of the test. Root can run it, and elsewhere whoever may make user
// namespaces: there the image's user stands for the one who runs the test.
func Command(t *testing.T, rootfs string, env []string, args ...string) *exec.Cmd {
	t.Helper()
	image := Read(t)
	uid, gid := ids(t, image.User)
	unshare, err := exec.LookPath("unshare")
	require.NoError(t, err, "the package util-linux has it")
	if len(args) == 0 {
		args = image.Cmd
	}
	mounts := []string{"--mount"}
	user := []string{fmt.Sprintf("--setuid=%d", uid), fmt.Sprintf("--setgid=%d", gid)}
	if os.Getuid() != 0 {
		mounts = append(mounts, "--map-root-user")
		user = []string{"--user", fmt.Sprintf("--map-user=%d", uid), fmt.Sprintf("--map-group=%d", gid)}
	}
	return exec.Command(unshare, slices.Concat(
		mounts, []string{"--", "/bin/sh", "-c", container, "container.sh", rootfs, image.State},
		[]string{"env", "-i"}, env,
		[]string{unshare, "--root=" + rootfs, "--wd=/"}, user,
		[]string{"--"}, image.Entrypoint, args,
	)...)
}
