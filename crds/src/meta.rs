//! Types that Kubernetes shares among its APIs: conditions, selectors, taints, tolerations.
//!
//! The fields are those of the API, but total: a missing field is empty.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;

fn is_zero(value: &i64) -> bool {
    *value == 0
}

/// One condition of an object.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// When the status last changed.
    #[serde(
        default,
        deserialize_with = "crate::stored_time::deserialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub last_transition_time: Option<Time>,
    /// The human-readable message.
    #[serde(default)]
    pub message: String,
    /// The generation that the condition speaks of; 0 when unknown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// For programs.
    #[serde(default)]
    pub reason: String,
    /// `True`, `False` or `Unknown`.
    #[serde(default)]
    pub status: String,
    /// The type, unique in the object.
    #[serde(default)]
    pub r#type: String,
}

/// Seconds of the first day of the year 1: Go's time without a value.
const ZERO_TIME: i64 = -62_135_596_800;

impl Condition {
    /// When the status last changed.
    #[must_use]
    pub fn transitioned_at(&self) -> Option<Timestamp> {
        self.last_transition_time.as_ref().map(|time| time.0)
    }

    /// Whether a time is set. Go's encoder writes the zero time for none.
    #[must_use]
    pub fn has_transition_time(&self) -> bool {
        self.transitioned_at().is_some_and(|time| time.as_second() != ZERO_TIME)
    }
}

/// An annotation of an object.
#[must_use]
pub fn annotation<'a>(metadata: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

/// A label of an object.
#[must_use]
pub fn label<'a>(metadata: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    metadata.labels.as_ref()?.get(name).map(String::as_str)
}

/// The controller among the owners of an object; the API server admits one.
#[must_use]
pub fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true))
}

/// Whether an object is being rebuilt: half of what it will be is written (docs/reference/dispatch.md §11).
#[must_use]
pub fn is_rebuilding(metadata: &ObjectMeta) -> bool {
    annotation(metadata, crate::names::annotations::REBUILD).is_some()
}

/// Whether an object is being deleted.
#[must_use]
pub fn is_deleting(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some()
}

/// Whether a condition of this type is true.
#[must_use]
pub fn is_true(conditions: &[Condition], r#type: &str) -> bool {
    find_true(conditions, r#type).is_some()
}

/// The condition of this type, if it is true.
#[must_use]
pub fn find_true<'a>(conditions: &'a [Condition], r#type: &str) -> Option<&'a Condition> {
    conditions.iter().find(|one| one.r#type == r#type && one.status == "True")
}

/// The condition of this type.
#[must_use]
pub fn find<'a>(conditions: &'a [Condition], r#type: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.r#type == r#type)
}

/// Whether `owner` is the controller of an object.
#[must_use]
pub fn is_controlled_by(object: &Value, owner: &Value) -> bool {
    let uid = &owner["metadata"]["uid"];
    let mut owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    owners.any(|reference| reference["controller"] == true && reference["uid"] == *uid)
}

/// Selects objects by label; empty selects everything.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Requirements that must all hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelSelectorRequirement>,
    /// Labels that must be there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
}

/// A requirement of a label selector.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct LabelSelectorRequirement {
    /// The label key.
    #[serde(default)]
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    #[serde(default)]
    pub operator: String,
    /// The values of `In` and `NotIn`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// A taint of a node.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    #[serde(default)]
    pub effect: String,
    /// The key.
    #[serde(default)]
    pub key: String,
    /// When a `NoExecute` taint was added.
    #[serde(
        default,
        deserialize_with = "crate::stored_time::deserialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub time_added: Option<Time>,
    /// The value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
}

/// A toleration of a pod.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// The effect tolerated; all when empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub effect: String,
    /// The key tolerated; all when empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// `Equal` (also when empty) or `Exists`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub operator: String,
    /// How long a `NoExecute` taint is tolerated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
    /// The value tolerated.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
}
