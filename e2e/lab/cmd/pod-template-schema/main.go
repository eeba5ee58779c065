// Command pod-template-schema prints the structural schema of a pod template, as a CRD embeds it.
//
// Kubernetes publishes the shapes (required fields, list types, defaults) in its OpenAPI definitions, and what an
// encoder writes for an unset field in its Go types. Both are joined here: a property carries, beside the schema,
//
//	x-written: always    written even when it was not given (no omitempty, or a struct by value)
//	x-zero: kept         a pointer: an explicit zero value survives
//	x-default            a declared default
//
// The output is committed as crds/src/pod_template.json; crdgen turns the last into a default and strips the others.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/generated/openapi"
)

type schema map[string]any

// The metadata of an embedded object is cut down to what users set.
var embeddedMetadata = map[string]bool{
	"annotations": true, "finalizers": true, "labels": true, "name": true, "namespace": true,
}

const quantityPattern = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`

func main() {
	definitions := openapi.GetOpenAPIDefinitions(func(path string) spec.Ref {
		return spec.MustCreateRef("#/" + path)
	})
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	out.SetIndent("", " ")
	if err := out.Encode(typeSchema(reflect.TypeFor[corev1.PodTemplateSpec](), definitions)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func typeSchema(t reflect.Type, definitions map[string]common.OpenAPIDefinition) schema {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return schema{
			"anyOf":                      []schema{{"type": "integer"}, {"type": "string"}},
			"pattern":                    quantityPattern,
			"x-kubernetes-int-or-string": true,
		}
	case reflect.TypeFor[intstr.IntOrString]():
		return schema{"anyOf": []schema{{"type": "integer"}, {"type": "string"}}, "x-kubernetes-int-or-string": true}
	case reflect.TypeFor[metav1.Time]():
		return schema{"type": "string", "format": "date-time"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeSchema(t.Elem(), definitions)
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Int32:
		return schema{"type": "integer", "format": "int32"}
	case reflect.Int64:
		return schema{"type": "integer", "format": "int64"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return schema{"type": "string", "format": "byte"}
		}
		return schema{"type": "array", "items": typeSchema(t.Elem(), definitions)}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": typeSchema(t.Elem(), definitions)}
	case reflect.Struct:
		return structSchema(t, definitions)
	default:
		panic(fmt.Sprintf("no schema for %v", t))
	}
}

func structSchema(t reflect.Type, definitions map[string]common.OpenAPIDefinition) schema {
	published := definitions[modelName(t)].Schema
	properties := schema{}
	collectFields(t, published, definitions, properties)
	if t == reflect.TypeFor[metav1.ObjectMeta]() {
		for name := range properties {
			if !embeddedMetadata[name] {
				delete(properties, name)
			}
		}
	}
	out := schema{"type": "object", "properties": properties}
	if len(published.Required) > 0 {
		out["required"] = published.Required
	}
	copyExtensions(published.Extensions, out)
	return out
}

// collectFields adds the fields of t, those of inlined structs included.
func collectFields(t reflect.Type, published spec.Schema, definitions map[string]common.OpenAPIDefinition, properties schema) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && strings.Contains(options, "inline") {
			collectFields(field.Type, published, definitions, properties)
			continue
		}
		if name == "-" || name == "" {
			continue
		}
		property := typeSchema(field.Type, definitions)
		copyPublished(published.Properties[name], field, property)
		markEncoding(field.Type, options, property)
		properties[name] = property
	}
}

// copyPublished takes over list types and the defaults that were declared. The zero value as the default of a field
// without omitempty is only what the encoder writes, unless the field is a pointer: its zero value is null.
func copyPublished(published spec.Schema, field reflect.StructField, property schema) {
	copyExtensions(published.Extensions, property)
	declared := strings.Contains(field.Tag.Get("json"), ",omitempty") || field.Type.Kind() == reflect.Pointer
	if published.Default == nil || isEmptyObject(published.Default) {
		return
	}
	if declared || !reflect.ValueOf(published.Default).IsZero() {
		property["x-default"] = published.Default
	}
}

func isEmptyObject(value any) bool {
	object, ok := value.(map[string]any)
	return ok && len(object) == 0
}

func copyExtensions(extensions spec.Extensions, into schema) {
	for key, value := range extensions {
		switch key {
		case "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type":
			into[key] = value
		}
	}
}

func markEncoding(t reflect.Type, options string, property schema) {
	omitted := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
	structByValue := t.Kind() == reflect.Struct && !strings.Contains(options, "omitzero")
	if !omitted || structByValue {
		property["x-written"] = "always"
	}
	if t.Kind() == reflect.Pointer {
		property["x-zero"] = "kept"
	}
}

func modelName(t reflect.Type) string {
	named, ok := reflect.New(t).Elem().Interface().(interface{ OpenAPIModelName() string })
	if !ok {
		panic(fmt.Sprintf("%v has no published definition", t))
	}
	return named.OpenAPIModelName()
}
