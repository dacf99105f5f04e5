// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// repository is the root of this repository, as this package sees it.
const repository = "../.."

var (
	// shownValues is a YAML block of a page that begins with a comment of one file's name: values for the chart.
	shownValues = regexp.MustCompile("(?ms)^ *```yaml\n *# (\\S*values\\S*\\.yaml)\n(.*?)\n *```$")
	// shownShell is a shell block of a page.
	shownShell = regexp.MustCompile("(?ms)^ *```(?:sh|bash|shell|console)\n(.*?)\n *```$")
	// shownHelm is a command of a block that renders the chart, up to the end of its last line.
	shownHelm = regexp.MustCompile(`(?m)^ *(?:\$ )?helm (?:install|upgrade|template) (?:.*\\\n)*.*$`)
)

// shownInstallations returns the helm commands of the pages, and the values that they show.
var shownInstallations = sync.OnceValues(func() ([]installation, error) {
	var all []installation
	for _, pattern := range []string{"*.md", "docs/*.md", "deploy/*.md", "deploy/*/*.md", "deploy/*/*/*.md", "examples/*/*.md"} {
		pages, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil {
			return nil, err
		}
		for _, page := range pages {
			shown, err := shownOn(page)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", page, err)
			}
			all = append(all, shown...)
		}
	}
	return all, nil
})

func shownOn(page string) ([]installation, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, err
	}
	files, err := os.MkdirTemp(scratch, "")
	if err != nil {
		return nil, err
	}
	folder, err := os.OpenRoot(files)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	var all []installation
	for _, block := range shownValues.FindAllSubmatchIndex(text, -1) {
		name := string(text[block[2]:block[3]])
		if err := folder.WriteFile(name, text[block[4]:block[5]], 0o600); err != nil {
			return nil, err
		}
		all = append(all, installation{place(page, text, block[2]), []string{"--values=" + filepath.Join(files, name)}})
	}
	for _, block := range shownShell.FindAllSubmatchIndex(text, -1) {
		for _, command := range shownHelm.FindAllIndex(text[block[2]:block[3]], -1) {
			start := block[2] + command[0]
			flags, ours, err := valueFlags(string(text[start:block[2]+command[1]]), files)
			if err != nil {
				return nil, err
			}
			if ours {
				all = append(all, installation{place(page, text, start), flags})
			}
		}
	}
	return all, nil
}

func place(page string, text []byte, offset int) string {
	relative, _ := filepath.Rel(repository, page)
	return fmt.Sprintf("%s line %d", relative, 1+bytes.Count(text[:offset], []byte("\n")))
}

// valueFlags returns the flags of a helm command that set values, with each file where the page has it or the repository;
// and whether the command is about this chart.
func valueFlags(command, files string) (flags []string, ours bool, err error) {
	words, err := shellWords(strings.TrimPrefix(strings.TrimSpace(command), "$ "))
	if err != nil {
		return nil, false, err
	}
	setters := []string{"--set", "--set-string", "--set-json", "--set-file", "-f", "--values"}
	for i, word := range words {
		name, value, joined := strings.Cut(word, "=")
		ours = ours || strings.HasSuffix(word, "deploy/helm/llmfleet")
		if !slices.Contains(setters, name) {
			continue
		}
		if !joined {
			if i+1 == len(words) {
				return nil, false, fmt.Errorf("%s has no value: %s", name, command)
			}
			value = words[i+1]
		}
		if name == "-f" || name == "--values" {
			if name, value = "--values", shownFile(value, files); value == "" {
				return nil, false, fmt.Errorf("neither this page nor the repository has the file of %q", command)
			}
		}
		flags = append(flags, name+"="+value)
	}
	return flags, ours, nil
}

// shownFile returns the path of a file that a command names; empty if there is none.
func shownFile(name, files string) string {
	for _, folder := range []string{files, repository} {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// shellWords splits a command as a shell does.
func shellWords(command string) ([]string, error) {
	words, err := exec.Command("bash", "-c", `printf '%s\n' `+command).Output()
	if err != nil {
		return nil, fmt.Errorf("%q: %w", command, err)
	}
	return strings.Split(strings.TrimSuffix(string(words), "\n"), "\n"), nil
}

// TestPagesAreRead: what a page shows is found as a reader would find it.
func TestPagesAreRead(t *testing.T) {
	t.Parallel()
	page := "Text.\n\n```yaml\n# my-values.yaml\npresets: {}\n```\n\n" +
		"```sh\nhelm upgrade --install llmfleet deploy/helm/llmfleet \\\n  -f my-values.yaml --set 'a={b,c}'\n```\n"
	values := shownValues.FindStringSubmatch(page)
	require.NotNil(t, values)
	assert.Equal(t, []string{"my-values.yaml", "presets: {}"}, values[1:])
	block := shownShell.FindStringSubmatch(page)
	require.NotNil(t, block)
	command := shownHelm.FindString(block[1])
	folder := filepath.Dir(writeFile(t, "my-values.yaml", values[2]))
	flags, ours, err := valueFlags(command, folder)
	require.NoError(t, err)
	assert.True(t, ours)
	assert.Equal(t, []string{"--values=" + filepath.Join(folder, "my-values.yaml"), "--set=a={b,c}"}, flags)

	shown, err := shownInstallations()
	require.NoError(t, err)
	assert.True(t, slices.ContainsFunc(shown, func(i installation) bool { return strings.HasPrefix(i.name, "deploy/README.md") }))
}
