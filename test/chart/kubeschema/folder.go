// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package kubeschema

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Location is what kubeconform's -schema-location says of the files in a folder that Write filled.
func Location(folder string) string {
	return filepath.Join(folder, "{{.ResourceKind}}{{.KindSuffix}}.json")
}

const (
	shared = "definitions.json"
	// In this draft exclusiveMinimum is a flag beside minimum, as it is in OpenAPI.
	draft      = "http://json-schema.org/draft-04/schema#"
	objectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
)

// Write fills a folder with the schema of every kind of a release, and of the custom resources.
func Write(folder string, release Release) error {
	module, err := moduleFolder("k8s.io/kubernetes", release.Version, release.Sum)
	if err != nil {
		return err
	}
	if err := writeRelease(folder, filepath.Join(module, "api", "openapi-spec", "swagger.json")); err != nil {
		return err
	}
	for _, operator := range customResources {
		module, err := moduleFolder(operator.module, operator.version, operator.sum)
		if err != nil {
			return err
		}
		for _, file := range operator.files {
			if err := writeCustomResource(folder, filepath.Join(module, file)); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return nil
}

// writeRelease writes all types into one file, and beside it one file for each kind, which refers to it.
func writeRelease(folder, openAPI string) error {
	text, err := os.ReadFile(openAPI)
	if err != nil {
		return err
	}
	var document struct{ Definitions map[string]schema }
	if err := json.Unmarshal(text, &document); err != nil {
		return err
	}
	types := schema{}
	for name, definition := range document.Definitions {
		types[name] = strict(name, definition)
		// Options of requests carry the names of every group that takes them; no manifest is one.
		if kinds, _ := definition["x-kubernetes-group-version-kind"].([]any); len(kinds) == 1 {
			k := kinds[0].(schema)
			err := writeKind(folder, k["group"].(string), k["version"].(string), k["kind"].(string), reference(name))
			if err != nil {
				return err
			}
		}
	}
	return writeJSON(filepath.Join(folder, shared), schema{"$schema": draft, "definitions": types})
}

// customResourceDefinition is what is read of a CustomResourceDefinition.
type customResourceDefinition struct {
	Spec struct {
		Group    string
		Names    struct{ Kind string }
		Versions []struct {
			Name   string
			Schema struct {
				OpenAPIV3Schema schema `yaml:"openAPIV3Schema"`
			}
		}
	}
}

func writeCustomResource(folder, definition string) error {
	text, err := os.ReadFile(definition)
	if err != nil {
		return err
	}
	var resource customResourceDefinition
	if err := yaml.Unmarshal(text, &resource); err != nil {
		return err
	}
	spec := resource.Spec
	for _, version := range spec.Versions {
		s := closed(version.Schema.OpenAPIV3Schema)
		s["properties"].(schema)["metadata"] = reference(objectMeta)
		if err := writeKind(folder, spec.Group, version.Name, spec.Names.Kind, s); err != nil {
			return err
		}
	}
	return nil
}

func reference(name string) schema { return schema{"$ref": shared + "#/definitions/" + name} }

// writeKind names the file as kubeconform looks for it: of a group, only what stands before the first dot.
func writeKind(folder, group, version, kind string, s schema) error {
	name := strings.ToLower(kind)
	if group != "" {
		name += "-" + strings.Split(group, ".")[0]
	}
	return writeJSON(filepath.Join(folder, name+"-"+version+".json"), named(s, group, version, kind))
}

func writeJSON(path string, s schema) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
