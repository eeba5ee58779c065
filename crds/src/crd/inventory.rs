//! Compares definitions with an inventory of another project's CRDs: every field, bound, default, list type and column.
//!
//! An inventory has a line for each field: path, type, `required`, and the constraints, tab separated. A line that begins with `# `
//! names a version of a kind, `# column` a column. Definitions are flattened to the same lines.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Definition;
use crate::json::text;

/// Marks a field that the inventory does not list further.
const OPAQUE: &str = "(standard Kubernetes type, not listed further)";

/// How many sections an inventory has: one per version of a kind.
#[must_use]
pub fn count(inventory: &str) -> usize {
    sections(inventory.lines().map(str::to_owned), &mut BTreeSet::new()).len()
}

/// Lines of the inventory that no definition has, with `-`, and lines of definitions of `group` that the inventory does not have,
/// with `+`. A field that the inventory marks as a standard type is compared without what is below it.
#[must_use]
pub fn differences(inventory: &str, definitions: &[Definition], group: &str) -> Vec<String> {
    let mut opaque = BTreeSet::new();
    let expected = sections(inventory.lines().map(str::to_owned), &mut opaque);
    let lines = definitions.iter().flat_map(|definition| flatten(&definition.manifest(), &opaque));
    let actual = sections(lines, &mut BTreeSet::new());
    let mut differences = Vec::new();
    for (header, lines) in &expected {
        let Some(ours) = actual.get(header) else {
            differences.push(format!("missing: {header}"));
            continue;
        };
        differences.extend(lines.difference(ours).map(|line| format!("- {header}\n    {line}")));
        differences.extend(ours.difference(lines).map(|line| format!("+ {header}\n    {line}")));
    }
    let of_group = |header: &&String| header.contains(&format!(" {group}/"));
    let more = actual.keys().filter(of_group).filter(|header| !expected.contains_key(*header));
    differences.extend(more.map(|header| format!("not in the inventory: {header}")));
    differences
}

/// Lines by header. Collects the paths of standard types, with the header.
fn sections(
    lines: impl Iterator<Item = String>,
    opaque: &mut BTreeSet<(String, String)>,
) -> BTreeMap<String, BTreeSet<String>> {
    let mut sections = BTreeMap::new();
    let mut header = String::new();
    for line in lines.filter(|line| !line.trim().is_empty()) {
        if line.starts_with("# ") && !line.starts_with("# column") {
            header.clone_from(&line);
            sections.entry(header.clone()).or_default();
        } else {
            if let (Some(path), true) = (line.split('\t').next(), line.ends_with(OPAQUE)) {
                opaque.insert((header.clone(), path.to_owned()));
            }
            sections.entry(header.clone()).or_insert_with(BTreeSet::new).insert(line);
        }
    }
    sections
}

fn flatten(manifest: &Value, opaque: &BTreeSet<(String, String)>) -> Vec<String> {
    let spec = &manifest["spec"];
    let mut lines = Vec::new();
    for version in spec["versions"].as_array().into_iter().flatten() {
        let header = header(spec, version);
        lines.push(header.clone());
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
        FieldLines { lines: &mut lines, opaque, header: &header }.properties(root, "");
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
        "# {} {}/{} scope={} plural={} singular={} shortNames={} categories={} served={} storage={} deprecated={} status={} scale=no selectable=[{}] rootCelRules={} conversion={}",
        text(&names["kind"]),
        text(&spec["group"]),
        text(&version["name"]),
        text(&spec["scope"]),
        text(&names["plural"]),
        text(&names["singular"]),
        list(&names["shortNames"]),
        list(&names["categories"]),
        capital(&version["served"]),
        capital(&version["storage"]),
        capital(&version["deprecated"]),
        capital(&Value::Bool(!version["subresources"]["status"].is_null())),
        selectable.join(","),
        rules(&version["schema"]["openAPIV3Schema"]),
        text(&spec["conversion"]["strategy"]),
    )
}

/// Collects the lines of the fields of one version.
struct FieldLines<'a> {
    lines: &'a mut Vec<String>,
    opaque: &'a BTreeSet<(String, String)>,
    header: &'a str,
}

impl FieldLines<'_> {
    fn properties(&mut self, schema: &Value, path: &str) {
        let required: BTreeSet<&str> =
            schema["required"].as_array().into_iter().flatten().map(text).collect();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            // Every kind has these, so an inventory does not list them.
            if path.is_empty() && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
                continue;
            }
            self.field(property, &format!("{path}.{name}"), required.contains(name.as_str()));
        }
    }

    fn field(&mut self, schema: &Value, path: &str, required: bool) {
        let opaque = self.opaque.contains(&(self.header.to_owned(), path.to_owned()));
        let marks = if opaque { OPAQUE.to_owned() } else { constraints(schema) };
        let required = if required { "required" } else { "" };
        let line = [path, kind(schema), required, &marks].join("\t");
        self.lines.push(line.trim_end_matches('\t').to_owned());
        if opaque {
            return;
        }
        self.properties(schema, path);
        if !schema["items"].is_null() {
            self.field(&schema["items"], &format!("{path}[]"), false);
        }
        if !schema["additionalProperties"].is_null() {
            self.field(&schema["additionalProperties"], &format!("{path}{{}}"), false);
        }
    }
}

fn kind(schema: &Value) -> &str {
    if schema["x-kubernetes-int-or-string"] == true {
        "int-or-string"
    } else {
        text(&schema["type"])
    }
}

/// Keywords of a constraint, in the order of the inventory.
const CONSTRAINTS: &[&str] = &[
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

fn constraints(schema: &Value) -> String {
    let mut marks: Vec<String> = CONSTRAINTS
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
    for (mark, key) in
        [("nullable=true", "nullable"), ("preserveUnknown", "x-kubernetes-preserve-unknown-fields")]
    {
        if schema[key] == true {
            marks.push(mark.to_owned());
        }
    }
    if rules(schema) > 0 {
        marks.push(format!("celRules={}", rules(schema)));
    }
    marks.join(" ")
}

fn rules(schema: &Value) -> usize {
    schema["x-kubernetes-validations"].as_array().map_or(0, Vec::len)
}

fn capital(value: &Value) -> &'static str {
    if value == true { "True" } else { "False" }
}
