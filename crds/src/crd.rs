//! The CustomResourceDefinitions, generated from the types.

mod definitions;
mod structural;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

pub use definitions::all;

const GENERATED: &str =
    "# Generated from the types of this crate: cargo run -p crds --bin crdgen\n";

/// The manifest as text. Keys are sorted, so that equal types give equal bytes.
///
/// # Errors
/// If the manifest cannot be written as YAML, which would be a defect of the writer.
pub fn yaml(definition: &Definition) -> Result<String, serde_saphyr::ser::Error> {
    Ok(GENERATED.to_owned() + &serde_saphyr::to_string(&sorted(definition.manifest()))?)
}

/// The kustomization that lists all manifests.
#[must_use]
pub fn kustomization() -> String {
    let files: String = all().iter().map(|kind| format!("- {}\n", kind.file_name())).collect();
    format!(
        "{GENERATED}apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n{files}"
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
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    short_names: &'static [&'static str],
    namespaced: bool,
    conversion: Conversion,
    versions: Vec<VersionDefinition>,
}

/// One version of a kind.
#[derive(Clone, Debug)]
pub struct VersionDefinition {
    name: &'static str,
    storage: bool,
    deprecated: bool,
    status: bool,
    columns: &'static [Column],
    selectable: &'static [&'static str],
    schema: Value,
}

/// A column of `kubectl get`.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    name: &'static str,
    r#type: &'static str,
    path: &'static str,
    priority: u8,
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

    /// The schemas of all versions, by `apiVersion` and `kind`.
    pub(crate) fn into_schemas(self) -> impl Iterator<Item = ((String, String), Value)> {
        let Self { group, kind, versions, .. } = self;
        let key = move |version: &str| (format!("{group}/{version}"), kind.to_owned());
        versions.into_iter().map(move |version| (key(version.name), version.schema))
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
            version.insert(
                "deprecationWarning".into(),
                "This version is deprecated. Use v1beta2 instead.".into(),
            );
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
