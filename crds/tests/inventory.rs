//! The generated CRDs against the inventory of upstream's: every field, bound, default, list type and column.
//!
//! `data/crd-kueue.tsv` holds a line for each field; the manifests are flattened to the same lines and compared.

use std::collections::{BTreeMap, BTreeSet};

use crds::crd;
use serde_json::Value;

const INVENTORY: &str = include_str!("data/crd-kueue.tsv");

/// Standard types that the inventory does not list further.
const OPAQUE: &[&str] = &[".spec.podSets[].template"];

#[test]
fn every_line_of_the_inventory_is_in_the_manifests_and_no_other() {
    let expected = sections(INVENTORY.lines().map(str::to_owned));
    let actual = sections(crd::all().iter().flat_map(|definition| flatten(&definition.manifest())));
    assert_eq!(expected.len(), 22, "eleven kinds in two versions");
    let mut differences = Vec::new();
    for (header, lines) in &expected {
        let Some(ours) = actual.get(header) else {
            differences.push(format!("missing: {header}"));
            continue;
        };
        differences.extend(lines.difference(ours).map(|line| format!("- {header}\n    {line}")));
        differences.extend(ours.difference(lines).map(|line| format!("+ {header}\n    {line}")));
    }
    for header in actual.keys().filter(|header| header.contains(" kueue.x-k8s.io/")) {
        if !expected.contains_key(header) {
            differences.push(format!("not in the inventory: {header}"));
        }
    }
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

#[test]
fn the_committed_manifests_are_fresh() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/");
    for definition in crd::all() {
        let committed = std::fs::read_to_string(folder.to_owned() + &definition.file_name())
            .unwrap_or_default();
        let generated = crd::yaml(&definition).expect("a manifest");
        assert!(
            committed == generated,
            "{} is stale: cargo run -p crds --bin crdgen",
            definition.file_name()
        );
    }
}

/// Lines by header.
fn sections(lines: impl Iterator<Item = String>) -> BTreeMap<String, BTreeSet<String>> {
    let mut sections = BTreeMap::new();
    let mut header = String::new();
    for line in lines.filter(|line| !line.trim().is_empty()) {
        if line.starts_with("# ") && !line.starts_with("# column") {
            header.clone_from(&line);
            sections.entry(header.clone()).or_default();
        } else {
            sections.entry(header.clone()).or_insert_with(BTreeSet::new).insert(line);
        }
    }
    sections
}

fn flatten(manifest: &Value) -> Vec<String> {
    let spec = &manifest["spec"];
    let mut lines = Vec::new();
    for version in spec["versions"].as_array().into_iter().flatten() {
        lines.push(header(spec, version));
        for column in version["additionalPrinterColumns"].as_array().into_iter().flatten() {
            lines.push(format!(
                "# column {} {} {} priority={}",
                text(&column["name"]),
                text(&column["type"]),
                text(&column["jsonPath"]),
                column["priority"].as_i64().unwrap_or_default()
            ));
        }
        let root = &version["schema"]["openAPIV3Schema"];
        properties(root, "", &mut lines, true);
    }
    lines
}

fn header(spec: &Value, version: &Value) -> String {
    let names = &spec["names"];
    let list = |value: &Value| {
        let items: Vec<&str> = value.as_array().into_iter().flatten().map(text).collect();
        items.join(",")
    };
    let selectable: Vec<String> = version["selectableFields"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|field| format!("'{}'", text(&field["jsonPath"])))
        .collect();
    format!(
        "# {} {}/{} scope={} plural={} singular={} shortNames={} categories= served={} storage={} deprecated={} status={} scale=no selectable=[{}] rootCelRules={} conversion={}",
        text(&names["kind"]),
        text(&spec["group"]),
        text(&version["name"]),
        text(&spec["scope"]),
        text(&names["plural"]),
        text(&names["singular"]),
        list(&names["shortNames"]),
        capital(&version["served"]),
        capital(&version["storage"]),
        capital(&version["deprecated"]),
        capital(&Value::Bool(!version["subresources"]["status"].is_null())),
        selectable.join(","),
        rules(&version["schema"]["openAPIV3Schema"]),
        text(&spec["conversion"]["strategy"]),
    )
}

fn properties(schema: &Value, path: &str, lines: &mut Vec<String>, root: bool) {
    let required: BTreeSet<&str> =
        schema["required"].as_array().into_iter().flatten().map(text).collect();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if root && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
            continue;
        }
        field(property, &format!("{path}.{name}"), required.contains(name.as_str()), lines);
    }
}

fn field(schema: &Value, path: &str, required: bool, lines: &mut Vec<String>) {
    let opaque = OPAQUE.contains(&path);
    let marks = if opaque {
        "(standard Kubernetes type, not listed further)".to_owned()
    } else {
        constraints(schema)
    };
    let required = if required { "required" } else { "" };
    let line = [path, kind(schema), required, &marks].join("\t");
    lines.push(line.trim_end_matches('\t').to_owned());
    if opaque {
        return;
    }
    properties(schema, path, lines, false);
    if !schema["items"].is_null() {
        field(&schema["items"], &format!("{path}[]"), false, lines);
    }
    if !schema["additionalProperties"].is_null() {
        field(&schema["additionalProperties"], &format!("{path}{{}}"), false, lines);
    }
}

fn kind(schema: &Value) -> &str {
    if schema["x-kubernetes-int-or-string"] == true {
        "int-or-string"
    } else {
        text(&schema["type"])
    }
}

fn constraints(schema: &Value) -> String {
    const ORDER: &[&str] = &[
        "format",
        "enum",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "pattern",
        "default",
    ];
    let mut marks: Vec<String> = ORDER
        .iter()
        .filter(|key| !schema[**key].is_null())
        .map(|key| format!("{key}={}", schema[*key]))
        .collect();
    if let Some(list) = schema["x-kubernetes-list-type"].as_str() {
        marks.push(format!("list={list}"));
    }
    if let Some(keys) = schema["x-kubernetes-list-map-keys"].as_array() {
        let keys: Vec<&str> = keys.iter().map(text).collect();
        marks.push(format!("keys={}", keys.join(",")));
    }
    if let Some(map) = schema["x-kubernetes-map-type"].as_str() {
        marks.push(format!("map={map}"));
    }
    if rules(schema) > 0 {
        marks.push(format!("celRules={}", rules(schema)));
    }
    marks.join(" ")
}

fn rules(schema: &Value) -> usize {
    schema["x-kubernetes-validations"].as_array().map_or(0, Vec::len)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn capital(value: &Value) -> &'static str {
    if value == true { "True" } else { "False" }
}
