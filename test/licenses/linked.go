// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// own is the path of the repository's own modules.
const own = "github.com/llmfleet/llmfleet"

// standard stands for the modules of Go's own library, which come with its release.
const standard = "std"

// module is a module of which the collector has a package in it.
type module struct {
	path, version string
	files         []file // by path, all that grant or that must be passed on
}

// file is a text about rights, its path relative to the module.
type file struct {
	path string
	text []byte
}

// pack is what go list tells of a package.
type pack struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Replace            *struct{ Path string }
	}
}

// linked returns the modules in the collector of a repository by path, without the repository's own: those of its image,
// whatever machine this is. A license counts that lies beside a linked package or in a folder above it.
func linked(repository string) ([]module, error) {
	tags, err := buildTags(repository)
	if err != nil {
		return nil, err
	}
	list := exec.Command("go", "list", "-deps", "-tags="+tags, "-json=Dir,Standard,Module", ".")
	list.Dir = filepath.Join(repository, "dist")
	list.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	output, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	root := strings.TrimSpace(string(goroot))

	modules := map[string]module{standard: {path: standard}}
	folders := map[string]map[string]string{standard: {root: root}} // by module: each folder, and that of the module
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p pack
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if p.Standard || p.Module.Path == own || strings.HasPrefix(p.Module.Path, own+"/") {
			continue
		}
		m := p.Module
		modules[m.Path] = module{path: m.Path, version: m.Version}
		if folders[m.Path] == nil {
			folders[m.Path] = map[string]string{}
		}
		for dir := p.Dir; ; dir = filepath.Dir(dir) {
			folders[m.Path][dir] = m.Dir
			if dir == m.Dir {
				break
			}
		}
	}
	found := slices.SortedFunc(maps.Values(modules), func(a, b module) int { return cmp.Compare(a.path, b.path) })
	for i := range found {
		for _, dir := range slices.Sorted(maps.Keys(folders[found[i].path])) {
			files, err := rights(dir, folders[found[i].path][dir])
			if err != nil {
				return nil, err
			}
			found[i].files = append(found[i].files, files...)
		}
	}
	return found, nil
}

// buildTags are the tags with which the collector is built.
func buildTags(repository string) (string, error) {
	content, err := os.ReadFile(filepath.Join(repository, "builder-config.yaml"))
	if err != nil {
		return "", err
	}
	var manifest struct {
		Dist struct {
			Tags string `yaml:"build_tags"`
		}
	}
	if err := yaml.Unmarshal(content, &manifest); err != nil {
		return "", err
	}
	return manifest.Dist.Tags, nil
}

// grants are the names of files that grant rights, and notices of those that Apache-2.0 asks to pass on. A LICENSE.docs is
// about pages that are not in a binary.
var (
	grants  = regexp.MustCompile(`(?i)^(licen[cs]e|unlicense|copying)([-._].*)?$`)
	notices = regexp.MustCompile(`(?i)^(notice|patents)([-._].*)?$`)
)

// rights reads the texts about rights in a folder of a module that lies at root.
func rights(dir, root string) ([]file, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []file
	for _, entry := range entries {
		name := entry.Name()
		if !entry.Type().IsRegular() || slices.Contains([]string{".go", ".docs"}, filepath.Ext(name)) || !grants.MatchString(name) && !notices.MatchString(name) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		path, err := filepath.Rel(root, filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{path: filepath.ToSlash(path), text: text})
	}
	return files, nil
}
