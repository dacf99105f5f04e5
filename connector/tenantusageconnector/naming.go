// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantusageconnector

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"go.uber.org/zap"
	"go.yaml.in/yaml/v3"

	"github.com/llmfleet/llmfleet/internal/tenant"
)

// randomKey is how many bytes a key has that is made at the start.
const randomKey = 32

// namer makes what names tenants. It reads the key or the map, and tells what is
// wrong with it without showing any of it.
func (c *TenantConfig) namer(logger *zap.Logger) (*tenant.Namer, error) {
	switch c.ID {
	case idPlain:
		return tenant.NewNamer(tenant.NamerOptions{Mode: tenant.Plain}), nil
	case idMap:
		names, err := readNames(c.MapFile)
		if err != nil {
			return nil, fmt.Errorf("tenant.map_file: %w", err)
		}
		return tenant.NewNamer(tenant.NamerOptions{Mode: tenant.Map, Map: names}), nil
	}
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	if key == nil {
		key = make([]byte, randomKey)
		_, _ = rand.Read(key) // never fails
		logger.Warn("tenants are named by a hash with a random key, so their names change with every restart: " +
			"set tenant.key_env or tenant.key_file")
	}
	return tenant.NewNamer(tenant.NamerOptions{Mode: tenant.Hash, Key: key}), nil
}

// key is the key of the hash; nil if none is set.
func (c *TenantConfig) key() (key []byte, err error) {
	setting, where := "key_env", c.KeyEnv
	switch {
	case c.KeyEnv != "":
		key = []byte(os.Getenv(c.KeyEnv))
	case c.KeyFile != "":
		setting, where = "key_file", c.KeyFile
		if key, err = os.ReadFile(c.KeyFile); err != nil {
			return nil, fmt.Errorf("tenant.key_file: %w", err)
		}
	default:
		return nil, nil
	}
	if key, err = tenant.ParseKey(key); err != nil {
		return nil, fmt.Errorf("tenant.%s: %s: %w", setting, where, err)
	}
	return key, nil
}

var lineNumber = regexp.MustCompile(`line \d+`)

// readNames reads a map of tenants. What spans call a tenant may be a credential
// and is in no error.
func readNames(path string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var document, another yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(data))
	if err = documents.Decode(&document); err == nil || errors.Is(err, io.EOF) {
		err = documents.Decode(&another)
	}
	switch {
	case err == nil:
		return nil, fmt.Errorf("%s, line %d: another document begins: put all names into one", path, another.Line)
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s is not YAML (%s)", path, lineNumber.FindString(err.Error()))
	case len(document.Content) == 0 || document.Content[0].Kind != yaml.MappingNode:
		return nil, errors.New(path + " is no map of names: use a line for each tenant, as in \"raw: name\"")
	}
	pairs := document.Content[0].Content
	names := make(map[string]string, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		raw, name := pairs[i], pairs[i+1]
		_, twice := names[raw.Value]
		switch {
		case !saysText(raw) || !saysText(name):
			return nil, fmt.Errorf("%s, line %d: names nobody: use \"raw: name\"", path, raw.Line)
		case strings.HasPrefix(name.Value, "__"):
			return nil, fmt.Errorf("%s, line %d: names that begin with __ are taken: use another", path, raw.Line)
		case twice:
			return nil, fmt.Errorf("%s, line %d: is there twice: remove one", path, raw.Line)
		}
		names[raw.Value] = name.Value
	}
	return names, nil
}

// saysText tells whether a node is a text, and not null.
func saysText(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value != "" && n.ShortTag() != "!!null"
}
