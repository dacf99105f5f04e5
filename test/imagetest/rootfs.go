// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package imagetest

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/binarytest"
)

// certificates is where the base image has the certificates of public authorities, and elsewhere are the places where
// other distributions of Linux have them.
var (
	certificates = "/etc/ssl/certs/ca-certificates.crt"
	elsewhere    = []string{"/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}
)

// RootFS lays out the image's root file system in a folder of the test's own, with the collector under test as the binary.
func RootFS(t *testing.T) string {
	t.Helper()
	return assemble(t, func(dir, command string) {
		require.True(t, strings.HasSuffix(command, " make build"), "RUN %s: not what builds the collector under test", command)
		copyFile(t, binarytest.Collector(t), filepath.Join(dir, "dist", "llmfleet"))
	})
}

// Build is RootFS with the binary that the Dockerfile's own command builds, in a copy of what the build context holds.
func Build(t *testing.T) string {
	t.Helper()
	return assemble(t, func(dir, command string) {
		cmd := exec.Command("/bin/sh", "-c", command)
		cmd.Dir = dir
		cmd.Env = append(slices.DeleteFunc(os.Environ(), func(variable string) bool {
			return strings.HasPrefix(variable, "MAKE") || strings.HasPrefix(variable, "MFLAGS=") // of a make around this test
		}), "TARGETOS="+runtime.GOOS, "TARGETARCH="+runtime.GOARCH)
		output, err := cmd.CombinedOutput()
		require.NoError(t, err, "RUN %s\n%s", command, output)
	})
}

// assemble lays out one stage after the other and returns the root of the last. What a RUN does is run's to say.
func assemble(t *testing.T, run func(dir, command string)) string {
	t.Helper()
	var root string
	roots := map[string]string{"": context(t)} // by the name of the stage; the build context has none
	for _, stage := range parse(t) {
		root = t.TempDir()
		dir := root
		for _, command := range stage.Commands {
			switch c := command.(type) {
			case *instructions.WorkdirCommand:
				dir = filepath.Join(root, c.Path)
				require.NoError(t, os.MkdirAll(dir, 0o755))
			case *instructions.CopyCommand:
				require.Contains(t, roots, c.From)
				copyInto(t, c, roots[c.From], root, dir)
			case *instructions.RunCommand:
				run(dir, strings.Join(c.CmdLine, " "))
			case *instructions.ArgCommand, *instructions.LabelCommand, *instructions.UserCommand,
				*instructions.ExposeCommand, *instructions.EntrypointCommand, *instructions.CmdCommand: // make no files
			default:
				t.Fatalf("%s: not an instruction that is known here", command.Name())
			}
		}
		roots[stage.Name] = root
	}
	return root
}

// context copies what a builder is sent: the repository without what .dockerignore names.
func context(t *testing.T) string {
	t.Helper()
	file, err := os.Open(filepath.Join(repository, ".dockerignore"))
	require.NoError(t, err)
	defer file.Close()
	patterns, err := ignorefile.ReadAll(file)
	require.NoError(t, err)
	ignored, err := patternmatcher.New(patterns)
	require.NoError(t, err)
	require.False(t, ignored.Exclusions(), "an ignored folder may hold what is not ignored")
	to := t.TempDir()
	copyTree(t, repository, to, func(path string) bool {
		match, err := ignored.MatchesOrParentMatches(path)
		require.NoError(t, err)
		return !match
	})
	return to
}

// copyInto carries out a COPY into the file system at root, from that at source. Relative destinations lie in dir.
func copyInto(t *testing.T, c *instructions.CopyCommand, source, root, dir string) {
	t.Helper()
	uid, gid := 0, 0
	if c.Chown != "" {
		uid, gid = ids(t, c.Chown)
	}
	into := filepath.Join(root, c.DestPath)
	if !filepath.IsAbs(c.DestPath) {
		into = filepath.Join(dir, c.DestPath)
	}
	for _, path := range c.SourcePaths {
		from := filepath.Join(source, path)
		if path == certificates {
			from = authorities(t)
		}
		about, err := os.Stat(from)
		require.NoError(t, err)
		if about.IsDir() {
			copyTree(t, from, into, func(string) bool { return true })
			own(t, into, uid, gid)
			continue
		}
		to := into
		if strings.HasSuffix(c.DestPath, "/") {
			to = filepath.Join(into, filepath.Base(path))
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		copyFile(t, from, to)
		own(t, to, uid, gid)
	}
}

// authorities finds this machine's certificates of public authorities.
func authorities(t *testing.T) string {
	t.Helper()
	for _, path := range append([]string{certificates}, elsewhere...) {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Fatalf("no %s: install the package ca-certificates", certificates)
	return ""
}

// copyTree copies a folder's files, those that are wanted.
func copyTree(t *testing.T, from, to string, wanted func(path string) bool) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case below == ".":
			return os.MkdirAll(to, 0o755)
		case !wanted(below) && entry.IsDir():
			return fs.SkipDir
		case !wanted(below):
			return nil
		case entry.IsDir():
			return os.Mkdir(filepath.Join(to, below), 0o755)
		case entry.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(target, filepath.Join(to, below))
		}
		copyFile(t, path, filepath.Join(to, below))
		return nil
	}))
}

// copyFile copies a file with its mode.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	about, err := os.Stat(from)
	require.NoError(t, err)
	source, err := os.Open(from)
	require.NoError(t, err)
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, about.Mode().Perm())
	require.NoError(t, err)
	_, err = target.ReadFrom(source)
	require.NoError(t, err)
	require.NoError(t, target.Close())
}

// own gives a file, or all of a folder, to a user. Only root can; another's files are all their own in any case.
func own(t *testing.T, path string, uid, gid int) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	require.NoError(t, filepath.WalkDir(path, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, gid)
	}))
}

// ids reads UID:GID.
func ids(t *testing.T, user string) (uid, gid int) {
	t.Helper()
	first, second, found := strings.Cut(user, ":")
	require.True(t, found, user)
	uid, err := strconv.Atoi(first)
	require.NoError(t, err)
	gid, err = strconv.Atoi(second)
	require.NoError(t, err)
	return uid, gid
}
