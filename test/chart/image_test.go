// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// TestImageIsOfThisRelease: the image, the chart and the binary have one version.
func TestImageIsOfThisRelease(t *testing.T) {
	t.Parallel()
	var chart struct {
		Version    string `yaml:"version"`
		AppVersion string `yaml:"appVersion"`
	}
	var builder struct {
		Dist struct {
			Version string `yaml:"version"`
		} `yaml:"dist"`
	}
	readYAML(t, filepath.Join(chartFolder, "Chart.yaml"), &chart)
	readYAML(t, filepath.Join(repository, "builder-config.yaml"), &builder)
	assert.Equal(t, builder.Dist.Version, chart.AppVersion)
	for _, w := range workloads(t, defaults.render(t)) {
		assert.Equal(t, "ghcr.io/llmfleet/llmfleet:"+builder.Dist.Version, w.container(t).Image)
		assert.Equal(t, builder.Dist.Version, w.pod.Labels["app.kubernetes.io/version"])
	}
}

// TestImageDigest: a digest counts over the tag.
func TestImageDigest(t *testing.T) {
	t.Parallel()
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	for _, w := range workloads(t, defaults.render(t, "--set=image.tag=9.9.9,image.digest="+digest)) {
		assert.Equal(t, "ghcr.io/llmfleet/llmfleet@"+digest, w.container(t).Image)
	}
}

// TestImageIsStartedAsBuilt: the pods leave the image's entry point alone, read their configuration where the image looks for
// it, and run as its user.
func TestImageIsStartedAsBuilt(t *testing.T) {
	t.Parallel()
	dockerfile, err := os.ReadFile(filepath.Join(repository, "deploy", "docker", "Dockerfile"))
	require.NoError(t, err)
	stages := strings.Split(string(dockerfile), "\nFROM ")
	last := stages[len(stages)-1]
	instruction := func(name string) string {
		found := regexp.MustCompile(`(?m)^`+name+` (.*)$`).FindAllStringSubmatch(last, -1)
		require.Len(t, found, 1, name)
		return found[0][1]
	}
	for _, w := range workloads(t, defaults.render(t)) {
		assert.Empty(t, w.container(t).Command)
		assert.Equal(t, `["/llmfleet"]`, instruction("ENTRYPOINT"))
		assert.Contains(t, w.container(t).Args, strings.Trim(instruction("CMD"), `[]"`))
		id := strconv.FormatInt(*w.pod.Spec.SecurityContext.RunAsUser, 10)
		assert.Equal(t, id+":"+id, instruction("USER"))
	}
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, into), path)
}
