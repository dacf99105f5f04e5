// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package settingstest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// Blocks are the YAML blocks of a text in Markdown.
func Blocks(t *testing.T, text string) (blocks []*confmap.Conf) {
	t.Helper()
	for _, block := range yamlBlock.FindAllStringSubmatch(text, -1) {
		retrieved, err := confmap.NewRetrievedFromYAML([]byte(block[1]))
		require.NoError(t, err)
		conf, err := retrieved.AsConf()
		require.NoError(t, err)
		blocks = append(blocks, conf)
	}
	return blocks
}

// Shown holds that every configuration works that a text in Markdown shows of the
// factory's component, under the section of its kind.
func Shown[C interface{ Validate() error }](t *testing.T, factory component.Factory, section, text string) {
	t.Helper()
	name, found := factory.Type().String(), 0
	for _, block := range Blocks(t, text) {
		if !block.IsSet(section) {
			continue
		}
		components, err := block.Sub(section)
		require.NoError(t, err)
		for id := range components.ToStringMap() {
			if id != name && !strings.HasPrefix(id, name+"/") {
				continue
			}
			found++
			config := factory.CreateDefaultConfig().(C)
			if components.Get(id) != nil { // an empty body
				body, err := components.Sub(id)
				require.NoError(t, err)
				require.NoError(t, body.Unmarshal(config), "%v", components)
			}
			assert.NoError(t, config.Validate(), "%v", components)
		}
	}
	assert.Positive(t, found, "nothing is shown of %s", name)
}
