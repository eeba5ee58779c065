//! A pod set that an object of a declared kind has.

use crds::{decode::from_value, pod::PodTemplate};
use serde::Deserialize;
use serde_json::Value;

use crate::{nulls::without_nulls, pointer::Pointer};

/// Labels of pods that a topology assignment by rank reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IndexLabels {
    /// Index of the pod in its replica, or in its pod set.
    #[serde(default)]
    pub pod: Option<String>,
    /// Index of the replica.
    #[serde(default)]
    pub replica: Option<String>,
}

/// A pod set that an object has.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DeclaredPodSet {
    pub(super) name: String,
    /// The name that its operator has for it, if that may differ: a name of a pod set has no capital letters.
    pub(super) called: Option<String>,
    /// Where the template stands in the job, or the additions to that of another object.
    pub(super) at: Pointer,
    /// The field path of it in error messages.
    pub(super) path: String,
    /// The whole template, with the additions that the job has.
    pub(super) template: PodTemplate,
    /// The template of another object or of a component, without additions.
    pub(super) base: Option<PodTemplate>,
    pub(super) replicas: i32,
    pub(super) pods_per_replica: i32,
    /// The replicas as the job writes them, if its operator runs another number.
    pub(super) written: Option<WrittenReplicas>,
    /// Number of groups of pods, if that is not the number of replicas.
    pub(super) n_groups: Option<i32>,
    pub(super) index_labels: IndexLabels,
}

/// A number of replicas that a job writes and that its operator bounds. Other versions of Kueue count it as it is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WrittenReplicas {
    pub(super) replicas: i32,
    /// The fields of the job.
    pub(super) at: Vec<Pointer>,
}

impl DeclaredPodSet {
    /// Number of pods as other versions of Kueue count them.
    pub(super) fn written_count(&self) -> i32 {
        let replicas = self.written.as_ref().map_or(self.replicas, |written| written.replicas);
        replicas.saturating_mul(self.pods_per_replica)
    }

    /// The name that its operator has for it.
    pub(super) fn operator_name(&self) -> &str {
        self.called.as_deref().unwrap_or(&self.name)
    }

    /// Number of pods.
    pub(super) fn count(&self) -> i32 {
        self.replicas.saturating_mul(self.pods_per_replica)
    }
}

/// Decodes a template; an absent one is empty.
pub(super) fn decode_template(value: Option<&Value>, at: &Pointer) -> Result<PodTemplate, String> {
    let decode = |value| from_value(&without_nulls(value));
    let decoded = value.map_or_else(|| Ok(PodTemplate::default()), decode);
    decoded.map_err(|error| format!("{}: {error}", at.field_path()))
}
