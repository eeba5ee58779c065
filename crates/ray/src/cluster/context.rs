//! What all parts of a decision about a RayCluster read.

use crds::{decode::from_value, meta::is_controlled_by};
use jiff::Timestamp;
use serde_json::{Value, json};
use sha1::{Digest, Sha1};

use super::cluster_children::ClusterChildren;
use crate::{
    json::{annotation, items, label, name, text},
    names,
    settings::OperatorSettings,
    v1::RayClusterSpec,
};

/// The default port of Ray's control service.
const GCS_PORT: &str = "6379";

/// What a pass reads beside objects: the time, and the only randomness that it may use.
#[derive(Clone, Copy, Debug)]
pub struct PassInputs {
    /// Now.
    pub now: Timestamp,
    /// Random bytes, for tokens and for names that must be known before an object is made.
    pub seed: [u8; 32],
}

/// The kind of the object that a cluster was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// None: the cluster was made by a user.
    User,
    /// A RayJob.
    Job,
    /// A RayService.
    Service,
}

/// A RayCluster, the objects around it, the settings and the time.
pub(crate) struct ClusterContext<'a> {
    pub(crate) cluster: &'a Value,
    pub(crate) spec: &'a RayClusterSpec,
    pub(crate) children: &'a ClusterChildren<'a>,
    pub(crate) settings: &'a OperatorSettings,
    pub(crate) inputs: &'a PassInputs,
}

impl<'a> ClusterContext<'a> {
    pub(crate) fn name(&self) -> &'a str {
        name(self.cluster)
    }

    pub(crate) fn namespace(&self) -> &'a str {
        text(&self.cluster["metadata"]["namespace"])
    }

    pub(crate) fn uid(&self) -> &'a str {
        text(&self.cluster["metadata"]["uid"])
    }

    /// `namespace/name` of an object beside the cluster, for messages.
    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.namespace())
    }

    pub(crate) fn origin(&self) -> Origin {
        match label(self.cluster, names::ORIGIN_KIND_LABEL) {
            "RayJob" => Origin::Job,
            "RayService" => Origin::Service,
            _ => Origin::User,
        }
    }

    pub(crate) fn head_service_name(&self) -> String {
        let given = self.spec.head_group_spec.head_service.as_ref();
        match given.map(name).filter(|name| !name.is_empty()) {
            Some(name) => name.to_owned(),
            None => names::head_service_name(self.name()),
        }
    }

    /// The name of the head's Service, as pods resolve it.
    pub(crate) fn head_address(&self) -> String {
        let service = self.head_service_name();
        format!("{service}.{}.svc.{}", self.namespace(), self.settings.cluster_domain)
    }

    pub(crate) fn gcs_port(&self) -> &str {
        let port = self.spec.head_group_spec.ray_start_params.get("port");
        port.map_or(GCS_PORT, String::as_str)
    }

    pub(crate) fn is_autoscaling(&self) -> bool {
        self.spec.enable_in_tree_autoscaling == Some(true)
    }

    /// Whether the option chooses the second version of the autoscaler, which runs only with autoscaling.
    pub(crate) fn chooses_autoscaler_v2(&self) -> bool {
        let options = self.spec.autoscaler_options.as_ref();
        options.and_then(|options| options.version.as_deref()) == Some("v2")
    }

    /// Whether the option makes the second version run. The variable of the head, the older way to choose, leaves restart policies alone.
    pub(crate) fn runs_autoscaler_v2(&self) -> bool {
        self.is_autoscaling() && self.chooses_autoscaler_v2()
    }

    /// The value of a variable of the head's Ray container.
    pub(crate) fn head_variable(&self, name: &str) -> Option<&str> {
        let container = &self.spec.head_group_spec.template["spec"]["containers"][0];
        let variable = items(&container["env"]).iter().find(|item| item["name"] == name)?;
        Some(text(&variable["value"]))
    }

    pub(crate) fn is_fault_tolerant(&self) -> bool {
        self.spec.gcs_fault_tolerance_options.is_some()
            || annotation(self.cluster, names::FT_ENABLED).eq_ignore_ascii_case("true")
    }

    /// Whether the head's state is in a volume.
    pub(crate) fn has_embedded_storage(&self) -> bool {
        let options = self.spec.gcs_fault_tolerance_options.as_ref();
        options.and_then(|options| options.backend.as_deref()) == Some("rocksdb")
    }

    /// The prefix of the keys in the storage: from the options, the annotation, also one without text, or the uid of the cluster.
    pub(crate) fn storage_namespace(&self) -> String {
        let options = self.spec.gcs_fault_tolerance_options.as_ref();
        let given = options.map(|options| options.external_storage_namespace.as_str());
        let annotation = self.cluster["metadata"]["annotations"][names::STORAGE_NAMESPACE].as_str();
        // The uid is the last choice: a cluster of the same name finds no keys of a former one.
        let named = given.filter(|name| !name.is_empty()).or(annotation);
        named.unwrap_or_else(|| self.uid()).to_owned()
    }

    /// What tells workers of one place from each other in a cluster with an autoscaler; empty in others.
    ///
    /// The autoscaler knows workers by their names, and must not meet that of a worker which it has given up. The cluster changes in
    /// between: its spec, or its status, which counts the worker. It may also change before a create without an answer is repeated, which
    /// then makes a second worker of the place: the younger one is deleted ([`super::duplicate_workers`]).
    pub(crate) fn edition(&self) -> String {
        if self.is_autoscaling() {
            format!("/{}", text(&self.cluster["metadata"]["resourceVersion"]))
        } else {
            String::new()
        }
    }

    pub(crate) fn owner_reference(&self) -> Value {
        json!({
            "apiVersion": "ray.io/v1",
            "kind": "RayCluster",
            "name": self.name(),
            "uid": self.uid(),
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }

    /// Children of a kind other than pods.
    pub(crate) fn of_kind(&self, kind: &str) -> impl Iterator<Item = &'a Value> {
        self.children.others.iter().copied().filter(move |child| child["kind"] == kind)
    }

    /// The child of this kind and name, other than a pod.
    pub(crate) fn child(&self, kind: &str, wanted: &str) -> Option<&'a Value> {
        self.of_kind(kind).find(|child| name(child) == wanted)
    }

    /// Whether an object has this cluster as its controller.
    pub(crate) fn owns(&self, object: &Value) -> bool {
        is_controlled_by(object, self.cluster)
    }

    /// Pods of the head of this cluster.
    pub(crate) fn heads(&self) -> impl Iterator<Item = &'a Value> {
        self.children.heads.iter().copied()
    }

    /// Pods of workers of this cluster.
    pub(crate) fn workers(&self) -> impl Iterator<Item = &'a Value> {
        self.children.workers.iter().copied()
    }

    /// Worker pods of a group.
    pub(crate) fn group_pods(&self, group: &str) -> impl Iterator<Item = &'a Value> {
        self.workers().filter(move |pod| label(pod, names::GROUP_LABEL) == group)
    }
}

/// Calls a function that is written for a RayCluster, without the objects around it. Such a function must not depend on time or chance.
///
/// # Errors
/// The spec of the cluster does not decode.
pub(crate) fn of_cluster<T>(
    cluster: &Value,
    settings: &OperatorSettings,
    make: impl FnOnce(&ClusterContext<'_>) -> T,
) -> Result<T, String> {
    let spec: RayClusterSpec = from_value(&cluster["spec"]).map_err(|error| error.to_string())?;
    let inputs = PassInputs { now: Timestamp::UNIX_EPOCH, seed: [0; 32] };
    let children = ClusterChildren::default();
    Ok(make(&ClusterContext {
        cluster,
        spec: &spec,
        children: &children,
        settings,
        inputs: &inputs,
    }))
}

/// The name of an object: the last 50 characters, with a letter at the front.
pub(crate) fn object_name(text: &str) -> String {
    with_letter(last_characters(text, 50), |first| {
        first.is_ascii_digit() || first.is_ascii_punctuation()
    })
}

/// The value of a label: the last 63 characters, with a letter or a digit at the front.
pub(crate) fn label_value(text: &str) -> String {
    with_letter(last_characters(text, 63), |first| first.is_ascii_punctuation())
}

/// The end is kept, because the ends of names tell the objects of a cluster apart.
fn last_characters(text: &str, most: usize) -> String {
    let skipped = text.chars().count().saturating_sub(most);
    text.chars().skip(skipped).collect()
}

fn with_letter(mut text: String, is_wrong: impl Fn(char) -> bool) -> String {
    if text.starts_with(is_wrong) {
        text.replace_range(..1, "r");
    }
    text
}

impl PassInputs {
    /// Five characters for a name, the same for the same purpose within a pass.
    #[must_use]
    pub fn suffix(&self, purpose: &str) -> String {
        letters(&[&self.seed, purpose.as_bytes()], 5)
    }
}

/// So many characters for a name, the same for the same parts.
pub(crate) fn letters(parts: &[&[u8]], count: usize) -> String {
    // The characters of Kubernetes' generated names: without vowels they form no words.
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let hashed = parts.iter().fold(Sha1::new(), |hash, part| hash.chain_update(part));
    let letter = |byte: &u8| LETTERS.get(usize::from(*byte) % LETTERS.len()).copied();
    hashed.finalize().iter().take(count).filter_map(letter).map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_name_begins_with_a_letter_and_a_cut_label_also_with_a_digit() {
        let long = |first: char| format!("ab{first}{}", "x".repeat(62));
        assert_eq!(label_value(&long('7')), format!("7{}", "x".repeat(62)));
        assert_eq!(label_value(&long('-')), format!("r{}", "x".repeat(62)));
        let long = |first: char| format!("ab{first}{}", "x".repeat(49));
        assert_eq!(object_name(&long('7')), format!("r{}", "x".repeat(49)));
        assert_eq!(object_name("7"), "r");
        assert_eq!(label_value(""), "");
    }
}
