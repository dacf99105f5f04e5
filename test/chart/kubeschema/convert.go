// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package kubeschema

import "maps"

// schema is a JSON Schema, or the near relative of it that OpenAPI documents and custom resource definitions hold.
type schema = map[string]any

// quantity is what the apiserver parses as an amount of a resource: 500m, 1Gi, 2, 1e3.
const quantity = `^[+-]?([0-9]+|[0-9]+\.[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$`

// spelledByHand are the types whose Go code reads JSON in its own way, which OpenAPI 2 cannot say.
var spelledByHand = map[string]schema{
	"io.k8s.apimachinery.pkg.api.resource.Quantity":   {"oneOf": []any{schema{"type": "string", "pattern": quantity}, schema{"type": "number"}}},
	"io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"oneOf": []any{schema{"type": "string"}, schema{"type": "integer"}}},
}

// strict makes a type of an OpenAPI document strict.
func strict(name string, definition schema) schema {
	if own, ok := spelledByHand[name]; ok {
		return own
	}
	return closed(definition)
}

// closed returns a structural schema in which every object with listed fields has those only. What stands under allOf,
// anyOf, oneOf and not only restricts values further, and lists no fields of its own.
func closed(open schema) schema {
	s := maps.Clone(open)
	if properties, ok := s["properties"].(schema); ok {
		strictly := schema{}
		for name, property := range properties {
			strictly[name] = closed(property.(schema))
		}
		s["properties"] = strictly
		if _, more := s["additionalProperties"]; !more && s["x-kubernetes-preserve-unknown-fields"] != true {
			s["additionalProperties"] = false
		}
	}
	for _, below := range []string{"items", "additionalProperties"} {
		if inner, ok := s[below].(schema); ok {
			s[below] = closed(inner)
		}
	}
	if s["nullable"] == true {
		s["type"] = []any{s["type"], "null"}
	}
	return s
}

// named restricts an object's schema to manifests of one kind. The type itself stays as it is: objects that stand inside of
// others, such as the claims of a StatefulSet, may leave their names out.
func named(object schema, group, version, kind string) schema {
	apiVersion := version
	if group != "" {
		apiVersion = group + "/" + version
	}
	return schema{"$schema": draft, "allOf": []any{object, schema{
		"required": []any{"apiVersion", "kind"},
		"properties": schema{
			"apiVersion": schema{"enum": []any{apiVersion}},
			"kind":       schema{"enum": []any{kind}},
		},
	}}}
}
