//! The configuration file of the official operator: `Configuration` of `config.ray.io/v1alpha1`.
//!
//! Source: docs/reference/ray.md §1. What is read are the defaults of pods. Fields about the process itself are left out: the agent has
//! flags of its own.

use std::collections::BTreeMap;

use crds::{
    validation::labels::{check_annotations, check_labels},
    yaml::decode_yaml,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::settings::{OperatorSettings, RayPodDefaults};

const API_VERSION: &str = "config.ray.io/v1alpha1";
const KIND: &str = "Configuration";

/// Why a file is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RayFileError {
    /// It is no YAML, or has unknown fields, or fields of another type.
    #[error("read the configuration of the operator of Ray: {0}")]
    Malformed(String),
    /// Something else.
    #[error("apiVersion and kind must be config.ray.io/v1alpha1 and Configuration")]
    OtherKind,
    /// A container or a variable has no name.
    #[error("{0}: each item needs a name")]
    NoName(&'static str),
    /// A label or an annotation that no pod can have.
    #[error("{0}")]
    Invalid(String),
    /// The official operator has it.
    #[error("{0} is not built")]
    NotBuilt(&'static str),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OperatorFile {
    api_version: String,
    kind: String,
    #[serde(default)]
    head_sidecar_containers: Vec<Value>,
    #[serde(default)]
    worker_sidecar_containers: Vec<Value>,
    #[serde(default)]
    default_container_envs: Vec<Value>,
    #[serde(default)]
    default_pod_labels: BTreeMap<String, String>,
    #[serde(default)]
    default_pod_annotations: BTreeMap<String, String>,
    #[serde(default)]
    delete_ray_job_after_job_finishes: bool,
}

/// Fields about the process of the official operator. The agent has flags of its own for what it has of them.
const OF_PROCESS: [&str; 11] = [
    "metricsAddr",
    "probeAddr",
    "enableLeaderElection",
    "leaderElectionNamespace",
    "logFile",
    "logFileEncoder",
    "logStdoutEncoder",
    "reconcileConcurrency",
    "enableMetrics",
    "qps",
    "burst",
];

/// Fields with a meaning for RayClusters that are not built.
///
/// The last two are of versions after 1.7, of which the chart writes them in any case.
const NOT_BUILT: [&str; 6] = [
    "watchNamespace",
    "batchScheduler",
    "enableBatchScheduler",
    "useKubernetesProxy",
    "nodeEventForwarder",
    "allowedNodeLabels",
];

impl OperatorSettings {
    /// These settings with those of the file.
    ///
    /// # Errors
    /// If a field is unknown, malformed, or not built.
    pub fn with_file(mut self, text: &str) -> Result<Self, RayFileError> {
        // By way of JSON: a decoder of YAML is large, and each type would have one.
        let mut fields: Map<String, Value> = decode_yaml(text).map_err(RayFileError::Malformed)?;
        // A field without a value has its default, as for the official operator.
        fields.retain(|name, value| !value.is_null() && !OF_PROCESS.contains(&name.as_str()));
        for name in NOT_BUILT {
            if fields.remove(name).is_some_and(|value| !is_off(&value)) {
                return Err(RayFileError::NotBuilt(name));
            }
        }
        let file: OperatorFile = serde_json::from_value(Value::Object(fields))
            .map_err(|error| RayFileError::Malformed(error.to_string()))?;
        if (file.api_version.as_str(), file.kind.as_str()) != (API_VERSION, KIND) {
            return Err(RayFileError::OtherKind);
        }
        self.delete_finished_jobs |= file.delete_ray_job_after_job_finishes;
        self.pods = file.pod_defaults()?;
        Ok(self)
    }
}

/// Whether a field asks for nothing.
fn is_off(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.get("enabled").is_none_or(is_off),
        _ => false,
    }
}

impl OperatorFile {
    fn pod_defaults(self) -> Result<RayPodDefaults, RayFileError> {
        for (field, items) in [
            ("headSidecarContainers", &self.head_sidecar_containers),
            ("workerSidecarContainers", &self.worker_sidecar_containers),
            ("defaultContainerEnvs", &self.default_container_envs),
        ] {
            if !items.iter().all(|item| item["name"].as_str().is_some_and(|name| !name.is_empty()))
            {
                return Err(RayFileError::NoName(field));
            }
        }
        let mut errors = check_labels("defaultPodLabels", &self.default_pod_labels);
        errors.extend(check_annotations("defaultPodAnnotations", &self.default_pod_annotations));
        if let Some(error) = errors.first() {
            return Err(RayFileError::Invalid(error.to_string()));
        }
        Ok(RayPodDefaults {
            head_sidecars: self.head_sidecar_containers,
            worker_sidecars: self.worker_sidecar_containers,
            env: self.default_container_envs,
            labels: self.default_pod_labels,
            annotations: self.default_pod_annotations,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HEADER: &str = "apiVersion: config.ray.io/v1alpha1\nkind: Configuration\n";

    fn read(text: &str) -> Result<OperatorSettings, RayFileError> {
        OperatorSettings::default().with_file(&format!("{HEADER}{text}"))
    }

    #[test]
    fn the_file_has_the_defaults_of_pods() {
        let settings = read(
            "headSidecarContainers: [{name: h, image: i}]\nworkerSidecarContainers: [{name: w, image: i}]\n\
             defaultContainerEnvs: [{name: SITE, value: one}]\ndefaultPodLabels: {site: one}\n\
             defaultPodAnnotations: {Site/note: x}\ndeleteRayJobAfterJobFinishes: true\nmetricsAddr: ':8080'\n",
        );
        let settings = settings.expect("a file");
        let pods = settings.pods;
        assert_eq!(
            (&pods.head_sidecars[0]["name"], &pods.worker_sidecars[0]["name"]),
            (&json!("h"), &json!("w"))
        );
        assert_eq!(pods.env[0]["value"], "one");
        assert_eq!(
            (pods.labels["site"].as_str(), pods.annotations["Site/note"].as_str()),
            ("one", "x")
        );
        assert!(settings.delete_finished_jobs);
        for text in [
            "batchScheduler: ''\n",
            "headSidecarContainers:\ndefaultPodLabels: null\n",
            "nodeEventForwarder: {enabled: false, types: [Warning]}\nallowedNodeLabels: []\n",
        ] {
            assert!(!read(text).expect("defaults").delete_finished_jobs);
        }
    }

    #[test]
    fn a_field_without_an_effect_is_refused() {
        for (text, part) in [
            ("batchScheduler: volcano\n", "batchScheduler is not built"),
            ("useKubernetesProxy: true\n", "useKubernetesProxy is not built"),
            ("nodeEventForwarder: {enabled: true}\n", "nodeEventForwarder is not built"),
            ("allowedNodeLabels: [zone]\n", "allowedNodeLabels is not built"),
            ("sidecars: []\n", "unknown field `sidecars`"),
            (
                "headSidecarContainers: [{image: i}]\n",
                "headSidecarContainers: each item needs a name",
            ),
            ("defaultPodLabels: {'a b': c}\n", "defaultPodLabels"),
            ("defaultPodLabels: {a: [b]}\n", "expected a string"),
        ] {
            let error = read(text).expect_err("refused").to_string();
            assert!(error.contains(part), "{error}");
        }
        let other = "apiVersion: v1\nkind: Configuration\n";
        let error = OperatorSettings::default().with_file(other).expect_err("refused");
        assert_eq!(error, RayFileError::OtherKind);
    }
}
