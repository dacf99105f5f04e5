// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"crypto/sha256"
	"crypto/x509"
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"go/version"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/llmfleet/llmfleet/test/binarytest"
	"github.com/llmfleet/llmfleet/test/imagetest"
)

// TestFiles: the image has these files and no others. All are root's and nobody else may write them, but for the folder
// of the state.
func TestFiles(t *testing.T) {
	root, state := imagetest.RootFS(t), imagetest.Read(t).State
	var found []string
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		about, err := entry.Info()
		require.NoError(t, err)
		path = "/" + strings.TrimPrefix(strings.TrimPrefix(path, root), "/")
		if !entry.IsDir() || path == state {
			found = append(found, path)
		}
		assert.Zero(t, about.Mode().Perm()&0o022, "%s: others may write it", path)
		assert.Zero(t, about.Mode()&(fs.ModeSetuid|fs.ModeSetgid), path)
		owner := uint32(os.Getuid()) // who is not root cannot give files away
		if owner == 0 && path == state {
			owner = 10001
		}
		assert.Equal(t, owner, about.Sys().(*syscall.Stat_t).Uid, path)
		return nil
	}))
	assert.Equal(t, []string{
		"/etc/group", "/etc/passwd", "/etc/ssl/certs/ca-certificates.crt", "/licenses/LICENSE", "/licenses/licenses.txt", "/llmfleet", state,
	}, found)

	authorities, err := os.ReadFile(root + "/etc/ssl/certs/ca-certificates.crt")
	require.NoError(t, err)
	assert.True(t, x509.NewCertPool().AppendCertsFromPEM(authorities), "no certificate of an authority")
	users, err := os.ReadFile(root + "/etc/passwd")
	require.NoError(t, err)
	assert.Contains(t, string(users), "\nllmfleet:x:"+imagetest.Read(t).User+":", "the user has no name")
}

// TestSame: what the Dockerfile builds from a copy of this tree is `make build`'s binary, byte for byte. It is static, and
// no path of the machine that built it is in it.
func TestSame(t *testing.T) {
	built, made := filepath.Join(imagetest.Build(t), "llmfleet"), binarytest.Collector(t)
	assert.Equal(t, sum(t, made), sum(t, built), "%s is not what this tree gives: run `make build`", made)

	binary, err := elf.Open(built)
	require.NoError(t, err)
	defer binary.Close()
	assert.Nil(t, binary.Section(".interp"), "it needs a dynamic linker, which the image does not have")
	info, err := buildinfo.ReadFile(built)
	require.NoError(t, err)
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	assert.Equal(t, "true", settings["-trimpath"])
	assert.NotContains(t, settings, "vcs.revision", "a checkout and an archive would give two binaries")
}

// sum is the SHA-256 of a file.
func sum(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return fmt.Sprintf("%x", sha256.Sum256(content))
}

// TestPins: the base image is one patch release of the Go series that go.mod and this very run use, and the label is the
// version of the binary.
func TestPins(t *testing.T) {
	image := imagetest.Read(t)
	tag, found := strings.CutPrefix(image.Base, "golang:")
	require.True(t, found, image.Base)
	tag, _, _ = strings.Cut(tag, "@")
	release, debian, found := strings.Cut(tag, "-")
	require.True(t, found, "no release of Debian is named: %s", image.Base)
	assert.NotEmpty(t, debian)
	pinned := "go" + release
	require.True(t, version.IsValid(pinned), pinned)
	assert.Len(t, strings.Split(release, "."), 3, "no patch release is named: %s", image.Base)
	assert.Equal(t, version.Lang(runtime.Version()), version.Lang(pinned), "the Go of this run")

	wanted, err := exec.Command("go", "list", "-C", "../../dist", "-m", "-f", "go{{.GoVersion}}").Output()
	require.NoError(t, err)
	oldest := strings.TrimSpace(string(wanted))
	assert.Equal(t, version.Lang(oldest), version.Lang(pinned))
	assert.LessOrEqual(t, version.Compare(oldest, pinned), 0, "%s is older than go.mod's %s", pinned, oldest)

	manifest, err := os.ReadFile("../../builder-config.yaml")
	require.NoError(t, err)
	var parsed struct{ Dist struct{ Version string } }
	require.NoError(t, yaml.Unmarshal(manifest, &parsed))
	assert.Equal(t, parsed.Dist.Version, image.Labels["org.opencontainers.image.version"])
}
