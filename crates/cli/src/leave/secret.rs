//! The Secret of a registration. Pure.
//!
//! It goes after the MultiKueueCluster that names it. A command that ends in between has to leave a trace, unless both have the
//! same name: the Secret is marked before.

use crds::{names::annotations::LEAVING_CLUSTER, v1beta2::MultiKueueCluster};
use kube::api::ObjectMeta;

/// The `locationType` of a kubeconfig in a Secret, also the default.
const SECRET: &str = "Secret";

/// What happens to the Secret with the kubeconfig of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SecretRemoval {
    /// It goes, if `join` made it.
    Delete(String),
    /// Another MultiKueueCluster reads it.
    Keep {
        /// The Secret.
        secret: String,
        /// The MultiKueueCluster.
        reader: String,
    },
}

impl SecretRemoval {
    /// Whether one of these Secrets goes.
    pub(super) fn deletes_any(&self, joined: &[ObjectMeta]) -> bool {
        let deletes = |one: &ObjectMeta| match self {
            Self::Delete(secret) => one.name.as_ref() == Some(secret),
            Self::Keep { .. } => false,
        };
        joined.iter().any(deletes)
    }
}

/// The Secret of a registration: the one that its MultiKueueCluster reads, or where that is gone, the one that was marked for it.
/// One that was made again under another name reads that of its former name. `join` gives both the same name; so it is called
/// where neither is known. `joined` is the Secrets that `join` made.
pub(super) fn secret_name(
    name: &str,
    left: Option<&MultiKueueCluster>,
    joined: &[ObjectMeta],
) -> String {
    let marked = || joined.iter().find(|one| marked_for(one) == Some(name))?.name.as_deref();
    let secret = left.map_or_else(marked, secret_of);
    secret.unwrap_or(name).to_owned()
}

/// Whether the Secret of a registration has to be marked before its MultiKueueCluster goes: nothing else says then that it is the
/// one of `name`.
pub(super) fn needs_mark(name: &str, removal: &SecretRemoval, joined: &[ObjectMeta]) -> bool {
    let other_name = |one: &&ObjectMeta| one.name.as_deref() != Some(name);
    let mut unmarked = joined.iter().filter(|one| marked_for(one) != Some(name)).filter(other_name);
    unmarked.any(|one| removal.deletes_any(std::slice::from_ref(one)))
}

fn marked_for(secret: &ObjectMeta) -> Option<&str> {
    secret.annotations.as_ref()?.get(LEAVING_CLUSTER).map(String::as_str)
}

/// Decides about the Secret of a registration. `all` is the MultiKueueClusters of the manager.
pub(super) fn secret_removal(name: &str, secret: &str, all: &[MultiKueueCluster]) -> SecretRemoval {
    let mut others = all.iter().filter(|one| one.metadata.name.as_deref() != Some(name));
    let reader = others.find(|one| secret_of(one) == Some(secret));
    let secret = secret.to_owned();
    match reader.and_then(|one| one.metadata.name.clone()) {
        Some(reader) => SecretRemoval::Keep { secret, reader },
        None => SecretRemoval::Delete(secret),
    }
}

/// The Secret that a MultiKueueCluster reads.
fn secret_of(cluster: &MultiKueueCluster) -> Option<&str> {
    let source = cluster.spec.cluster_source.kube_config.as_ref()?;
    let is_secret = source.location_type.is_empty() || source.location_type == SECRET;
    is_secret.then_some(source.location.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn reads(name: &str, source: &Value) -> MultiKueueCluster {
        serde_json::from_value(json!({
            "metadata": {"name": name}, "spec": {"clusterSource": {"kubeConfig": source}},
        }))
        .expect("a MultiKueueCluster")
    }

    #[test]
    fn the_secret_of_a_renamed_registration_goes_unless_another_one_reads_it() {
        let delete = |secret: &str| SecretRemoval::Delete(secret.to_owned());
        let east = reads("east", &json!({"location": "east"}));
        let renamed = reads("east-1", &json!({"location": "east", "locationType": "Secret"}));
        let by_path = reads("east", &json!({"location": "/etc/east", "locationType": "Path"}));
        let west = reads("west", &json!({"location": "west"}));
        for (name, left, all, removal) in [
            ("east", Some(&east), vec![&east, &west], delete("east")),
            ("east-1", Some(&renamed), vec![&renamed, &west], delete("east")),
            ("east-1", Some(&renamed), vec![&west], delete("east")),
            ("east", Some(&by_path), vec![&by_path], delete("east")),
            ("east", None, vec![&west], delete("east")),
        ] {
            let all: Vec<MultiKueueCluster> = all.into_iter().cloned().collect();
            let secret = secret_name(name, left, &[]);
            assert_eq!(secret_removal(name, &secret, &all), removal, "{name} {left:?}");
        }
        let keep =
            |reader: &str| SecretRemoval::Keep { secret: "east".into(), reader: reader.into() };
        let both = [east, renamed.clone()];
        assert_eq!(secret_removal("east", "east", &both), keep("east-1"));
        assert_eq!(secret_removal("east-1", "east", &both), keep("east"));
        assert_eq!(secret_removal("east", "east", &[renamed]), keep("east-1"));
    }

    #[test]
    fn a_command_that_ended_early_is_taken_up_by_the_mark_of_the_secret() {
        let secret = |name: &str, mark: Option<&str>| -> ObjectMeta {
            let annotations = json!({"sluice.dev/leaving-cluster": mark});
            let annotations = if mark.is_some() { annotations } else { json!({}) };
            serde_json::from_value(json!({"name": name, "annotations": annotations}))
                .expect("metadata")
        };
        let (marked, other) = (secret("east", Some("east-1")), secret("west", None));
        let all = [other.clone(), marked.clone()];
        assert_eq!(secret_name("east-1", None, &all), "east", "its MultiKueueCluster is gone");
        assert_eq!(secret_name("north", None, &all), "north");
        let renamed = reads("east-1", &json!({"location": "west"}));
        assert_eq!(secret_name("east-1", Some(&renamed), &all), "west", "it reads another one now");

        let delete = |secret: &str| SecretRemoval::Delete(secret.to_owned());
        assert!(needs_mark("east-1", &delete("east"), &[secret("east", None)]));
        assert!(delete("east").deletes_any(std::slice::from_ref(&marked)));
        assert!(!delete("north").deletes_any(std::slice::from_ref(&marked)));
        assert!(!needs_mark("east-1", &delete("east"), &[marked]), "it is marked");
        assert!(
            !needs_mark("west", &delete("west"), std::slice::from_ref(&other)),
            "it has the same name"
        );
        assert!(!needs_mark("east-1", &delete("east"), &[other]), "join did not make it");
        let kept = SecretRemoval::Keep { secret: "east".into(), reader: "east".into() };
        assert!(!needs_mark("east-1", &kept, &[secret("east", None)]));
    }
}
