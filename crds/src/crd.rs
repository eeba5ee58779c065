//! The CustomResourceDefinitions, generated from the types.

mod definitions;
mod field_types;
pub mod inventory;
mod structural;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

pub use definitions::all;
pub use field_types::field_types;
pub use structural::of as structural_schema;

/// The first line of a generated file.
fn generated(command: &str) -> String {
    format!("# Generated from the types of this crate: {command}\n")
}

/// The manifest as text. Keys are sorted, so that equal types give equal bytes. `command` writes the file.
///
/// # Errors
/// If the manifest cannot be written as YAML, which would be a defect of the writer.
pub fn yaml(definition: &Definition, command: &str) -> Result<String, serde_saphyr::ser::Error> {
    Ok(generated(command) + &serde_saphyr::to_string(&sorted(definition.manifest()))?)
}

/// The kustomization that lists all manifests.
#[must_use]
pub fn kustomization(definitions: &[Definition], command: &str) -> String {
    let files: String =
        definitions.iter().map(|kind| format!("- {}\n", kind.file_name())).collect();
    let generated = generated(command);
    format!(
        "{generated}apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n{files}"
    )
}

/// Sorts the keys of all objects, whatever order the JSON library keeps.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<String, Value> =
                map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(sorted.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

/// How objects of one kind are converted between versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// Only `apiVersion` changes.
    None,
    /// By the webhook at `/convert`.
    Webhook,
}

/// A kind with all its versions.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The API group.
    pub group: &'static str,
    /// The kind, as objects name it.
    pub kind: &'static str,
    /// The name in URLs.
    pub plural: &'static str,
    /// The name for one object in commands.
    pub singular: &'static str,
    /// Further names in commands.
    pub short_names: &'static [&'static str],
    /// Sets of kinds that a command may name, such as `all`.
    pub categories: &'static [&'static str],
    /// Whether objects are in a namespace.
    pub namespaced: bool,
    /// How objects are converted.
    pub conversion: Conversion,
    /// All versions, of which one is stored.
    pub versions: Vec<VersionDefinition>,
}

/// One version of a kind.
#[derive(Clone, Debug)]
pub struct VersionDefinition {
    /// The version.
    pub name: &'static str,
    /// Whether objects are stored in this version.
    pub storage: bool,
    /// Whether clients are warned.
    pub deprecated: bool,
    /// The text of the warning; the API server has one of its own.
    pub deprecation_warning: Option<&'static str>,
    /// Whether the status is a subresource.
    pub status: bool,
    /// Columns of `kubectl get`.
    pub columns: &'static [Column],
    /// Paths of fields for field selectors.
    pub selectable: &'static [&'static str],
    /// The structural schema.
    pub schema: Value,
}

/// A column of `kubectl get`.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The title.
    pub name: &'static str,
    /// `string`, `integer`, `boolean` or `date`.
    pub r#type: &'static str,
    /// The JSONPath of the value.
    pub path: &'static str,
    /// 0 is always shown, 1 in the wide output.
    pub priority: u8,
}

impl Definition {
    /// The name of the CRD object.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// The file that holds the manifest.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}_{}.yaml", self.group, self.plural)
    }

    /// The CRD object.
    #[must_use]
    pub fn manifest(&self) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name()},
            "spec": {
                "group": self.group,
                "names": self.names(),
                "scope": if self.namespaced { "Namespaced" } else { "Cluster" },
                "conversion": self.conversion.manifest(),
                "versions": self.versions.iter().map(VersionDefinition::manifest).collect::<Vec<_>>(),
            },
        })
    }

    fn names(&self) -> Value {
        let mut names = json!({
            "kind": self.kind,
            "listKind": format!("{}List", self.kind),
            "plural": self.plural,
            "singular": self.singular,
        });
        if !self.short_names.is_empty() {
            names["shortNames"] = json!(self.short_names);
        }
        if !self.categories.is_empty() {
            names["categories"] = json!(self.categories);
        }
        names
    }
}

impl Conversion {
    /// The service is where the manager's webhooks are reached; it fills in the CA bundle itself.
    fn manifest(self) -> Value {
        match self {
            Self::None => json!({"strategy": "None"}),
            Self::Webhook => json!({
                "strategy": "Webhook",
                "webhook": {
                    "clientConfig": {
                        "service": {
                            "name": "kueue-webhook-service",
                            "namespace": "kueue-system",
                            "path": "/convert",
                        },
                    },
                    "conversionReviewVersions": ["v1"],
                },
            }),
        }
    }
}

impl VersionDefinition {
    fn manifest(&self) -> Value {
        let mut version = Map::new();
        version.insert("name".into(), self.name.into());
        version.insert("served".into(), true.into());
        version.insert("storage".into(), self.storage.into());
        if self.deprecated {
            version.insert("deprecated".into(), true.into());
        }
        if let Some(warning) = self.deprecation_warning {
            version.insert("deprecationWarning".into(), warning.into());
        }
        if !self.columns.is_empty() {
            let columns = self.columns.iter().map(Column::manifest).collect();
            version.insert("additionalPrinterColumns".into(), columns);
        }
        if !self.selectable.is_empty() {
            let fields = self.selectable.iter().map(|path| json!({"jsonPath": path})).collect();
            version.insert("selectableFields".into(), fields);
        }
        if self.status {
            version.insert("subresources".into(), json!({"status": {}}));
        }
        version.insert("schema".into(), json!({"openAPIV3Schema": self.schema}));
        Value::Object(version)
    }
}

impl Column {
    fn manifest(&self) -> Value {
        let mut column = json!({"name": self.name, "type": self.r#type, "jsonPath": self.path});
        if self.priority > 0 {
            column["priority"] = self.priority.into();
        }
        column
    }
}
