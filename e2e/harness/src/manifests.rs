//! Applies YAML manifests: strings, files, directories; kustomizations through kubectl.

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::{self, Scope};
use kube::{Api, ResourceExt};

use crate::cluster::{Cluster, ClusterError};
use crate::wait::GaveUp;

/// The name under which fields are owned.
const FIELD_MANAGER: &str = "sluice-lab";

/// From a CRD's creation until its kind is served.
const ESTABLISHED: Duration = Duration::from_secs(30);

/// Why a manifest was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// A file could not be read.
    #[error("read {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A document is no object.
    #[error("parse {origin}: {reason}")]
    Parse {
        /// The source of the manifest.
        origin: String,
        /// What is wrong.
        reason: String,
    },
    /// The server refused an object.
    #[error("apply {object} on {cluster}: {source}")]
    Apply {
        /// Its kind and name.
        object: String,
        /// The cluster.
        cluster: String,
        /// What the server said.
        source: kube::Error,
    },
    /// A CRD was not served in time.
    #[error(transparent)]
    GaveUp(#[from] GaveUp),
    /// kubectl failed.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

impl Cluster {
    /// Applies all documents of a YAML text, server side, in their order, but CRDs and namespaces first. Objects that live in
    /// namespaces and name none go to `namespace`.
    pub async fn apply(&self, yaml: &str, namespace: &str) -> Result<(), ManifestError> {
        self.apply_all(parse("text", yaml)?, namespace).await
    }

    /// Applies all `.yaml` files of a directory, in the order of their names, without those below it.
    pub async fn apply_directory(
        &self,
        directory: &Path,
        namespace: &str,
    ) -> Result<(), ManifestError> {
        let mut objects = Vec::new();
        for path in yaml_files(directory)? {
            let text = std::fs::read_to_string(&path)
                .map_err(|source| ManifestError::Read { path: path.clone(), source })?;
            objects.extend(parse(&path.display().to_string(), &text)?);
        }
        self.apply_all(objects, namespace).await
    }

    /// Builds a kustomization and applies its objects.
    pub async fn apply_kustomization(
        &self,
        directory: &Path,
        namespace: &str,
    ) -> Result<(), ManifestError> {
        let text = self.kubectl(&["kustomize", &directory.display().to_string()]).await?;
        self.apply(&text, namespace).await
    }

    async fn apply_all(
        &self,
        mut objects: Vec<DynamicObject>,
        namespace: &str,
    ) -> Result<(), ManifestError> {
        objects.sort_by_key(rank);
        let mut definitions = Vec::new();
        for object in objects {
            if rank(&object) > 0 {
                self.until_served(&mut definitions).await?;
            }
            self.apply_one(&object, namespace).await?;
            if kind_of(&object) == "CustomResourceDefinition" {
                definitions.push(object.name_any());
            }
        }
        self.until_served(&mut definitions).await
    }

    async fn apply_one(&self, object: &DynamicObject, default: &str) -> Result<(), ManifestError> {
        let failed = |source| ManifestError::Apply {
            object: format!("{} {}", kind_of(object), object.name_any()),
            cluster: self.name().to_owned(),
            source,
        };
        let types = object.types.clone().unwrap_or_default();
        let kind = GroupVersionKind::try_from(&types).map_err(|error| ManifestError::Parse {
            origin: object.name_any(),
            reason: error.to_string(),
        })?;
        let (resource, capabilities) =
            discovery::pinned_kind(&self.client(), &kind).await.map_err(failed)?;
        let api: Api<DynamicObject> = match (capabilities.scope, object.namespace()) {
            (Scope::Cluster, _) => Api::all_with(self.client(), &resource),
            (Scope::Namespaced, own) => {
                let namespace = own.unwrap_or_else(|| default.to_owned());
                Api::namespaced_with(self.client(), &namespace, &resource)
            }
        };
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let applied = api.patch(&object.name_any(), &params, &Patch::Apply(object)).await;
        applied.map(drop).map_err(failed)
    }

    /// Waits for the definitions and forgets them.
    async fn until_served(&self, definitions: &mut Vec<String>) -> Result<(), ManifestError> {
        let api = self.cluster_api::<CustomResourceDefinition>();
        for name in definitions.drain(..) {
            let definition =
                self.until(&api, &name, "is established", ESTABLISHED, established).await?;
            for resource in resources(&definition) {
                self.until_listed(&resource).await?;
            }
        }
        Ok(())
    }

    /// Waits for the first list of a kind. The condition Established and the discovery document both precede the handler of
    /// the kind, which answers 404 until then.
    async fn until_listed(&self, resource: &ApiResource) -> Result<(), ManifestError> {
        let api: Api<DynamicObject> = Api::all_with(self.client(), resource);
        let what = format!("{} are served", resource.plural);
        self.until_all(&api, "", &what, ESTABLISHED, |_| true).await?;
        Ok(())
    }
}

/// The served versions of a definition.
fn resources(definition: &CustomResourceDefinition) -> impl Iterator<Item = ApiResource> {
    let spec = &definition.spec;
    spec.versions.iter().filter(|version| version.served).map(|version| {
        let kind = GroupVersionKind::gvk(&spec.group, &version.name, &spec.names.kind);
        ApiResource::from_gvk_with_plural(&kind, &spec.names.plural)
    })
}

fn established(definition: &CustomResourceDefinition) -> bool {
    let status = definition.status.as_ref();
    let mut conditions = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Established" && condition.status == "True")
}

fn kind_of(object: &DynamicObject) -> &str {
    object.types.as_ref().map_or("", |types| types.kind.as_str())
}

/// Dependencies first.
fn rank(object: &DynamicObject) -> u8 {
    match kind_of(object) {
        "CustomResourceDefinition" | "Namespace" => 0,
        _ => 1,
    }
}

fn parse(origin: &str, yaml: &str) -> Result<Vec<DynamicObject>, ManifestError> {
    let failed = |reason: String| ManifestError::Parse { origin: origin.to_owned(), reason };
    let documents: Vec<serde_json::Value> =
        serde_saphyr::from_multiple_with_options(yaml, as_kubectl_reads())
            .map_err(|error| failed(error.to_string()))?;
    let objects = documents.into_iter().filter(|document| !document.is_null());
    objects
        .map(|document| serde_json::from_value(document).map_err(|error| failed(error.to_string())))
        .collect()
}

/// Names such as `n` and `on` are words and not booleans, and definitions of kinds are as long as they are.
fn as_kubectl_reads() -> serde_saphyr::Options {
    serde_saphyr::options! { strict_booleans: true, budget: None }
}

fn yaml_files(directory: &Path) -> Result<Vec<PathBuf>, ManifestError> {
    let failed = |source| ManifestError::Read { path: directory.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        files.push(entry.map_err(failed)?.path());
    }
    let is_yaml = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "yaml");
    let is_object = |path: &PathBuf| path.file_stem().is_none_or(|stem| stem != "kustomization");
    files.retain(|path| is_yaml(path) && is_object(path));
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_and_namespaces_come_first_and_the_rest_keeps_its_order() {
        let text = "
apiVersion: v1
kind: ConfigMap
metadata: {name: b}
---
---
apiVersion: v1
kind: Secret
metadata: {name: a}
---
apiVersion: v1
kind: Namespace
metadata: {name: n}
";
        let mut objects = parse("text", text).unwrap();
        objects.sort_by_key(rank);
        let kinds: Vec<&str> = objects.iter().map(kind_of).collect();
        assert_eq!(kinds, ["Namespace", "ConfigMap", "Secret"]);
    }

    #[test]
    fn a_manifest_of_any_length_is_accepted() {
        let data: String = (0..100_000).map(|number| format!("  key-{number}: on\n")).collect();
        let text =
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: long}}\ndata:\n{data}");
        let objects = parse("text", &text).unwrap();
        assert_eq!(objects[0].data["data"]["key-99999"], "on");
    }

    #[test]
    fn a_broken_document_names_its_file() {
        let error = parse("queues.yaml", "kind: [").unwrap_err().to_string();
        assert!(error.starts_with("parse queues.yaml:"), "{error}");
    }
}
