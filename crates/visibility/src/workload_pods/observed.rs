//! What is read of pods and of their owners. Fields that nothing reads are skipped while an answer is decoded.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

/// An object of any kind.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct ObservedObject {
    /// Its metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
}

/// A page of a list of pods.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct ObservedPodPage {
    /// Where the next page begins.
    #[serde(default)]
    metadata: PageMetadata,
    /// The pods.
    #[serde(default)]
    pub items: Vec<ObservedPod>,
}

/// The longest token that is sent back. Those of API servers have a few hundred characters.
const LONGEST_TOKEN: usize = 4096;

impl ObservedPodPage {
    /// The token of the next page, as a query has it; `None` on the last one.
    #[must_use]
    pub fn next(&self) -> Option<String> {
        let token = &self.metadata.continue_token;
        let is_one = !token.is_empty() && token.len() <= LONGEST_TOKEN;
        is_one.then(|| utf8_percent_encode(token, NON_ALPHANUMERIC).to_string())
    }
}

/// The metadata of a page.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
struct PageMetadata {
    /// Empty on the last page.
    #[serde(default, rename = "continue")]
    continue_token: String,
}

/// A pod.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct ObservedPod {
    /// Its metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Its containers.
    #[serde(default)]
    pub(super) spec: ContainersOfPod,
    /// What became of them.
    #[serde(default)]
    pub(super) status: StateOfPod,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContainersOfPod {
    #[serde(default)]
    pub(super) containers: Vec<ContainerName>,
    #[serde(default)]
    pub(super) init_containers: Vec<ContainerName>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct ContainerName {
    #[serde(default)]
    pub(super) name: String,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StateOfPod {
    #[serde(default)]
    pub(super) phase: String,
    #[serde(default)]
    pub(super) container_statuses: Vec<StateOfContainer>,
    #[serde(default)]
    pub(super) init_container_statuses: Vec<StateOfContainer>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StateOfContainer {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) restart_count: i32,
}

/// The name of an object; empty without one.
pub(super) fn name_of(metadata: &ObjectMeta) -> &str {
    metadata.name.as_deref().unwrap_or_default()
}
