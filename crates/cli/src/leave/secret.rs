//! The Secret of a registration. Pure.

use crds::v1beta2::MultiKueueCluster;

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

/// Decides about the Secret that a MultiKueueCluster reads. One that was made again under another name reads that of its former name. `join` gives
/// both the same name; so it is called where the MultiKueueCluster is gone or reads no Secret. `all` is the MultiKueueClusters of the manager.
pub(super) fn secret_removal(
    name: &str,
    left: Option<&MultiKueueCluster>,
    all: &[MultiKueueCluster],
) -> SecretRemoval {
    let secret = left.and_then(secret_of).unwrap_or(name);
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
            assert_eq!(secret_removal(name, left, &all), removal, "{name} {left:?}");
        }
        let keep =
            |reader: &str| SecretRemoval::Keep { secret: "east".into(), reader: reader.into() };
        let both = [east.clone(), renamed.clone()];
        assert_eq!(secret_removal("east", Some(&east), &both), keep("east-1"));
        assert_eq!(secret_removal("east-1", Some(&renamed), &both), keep("east"));
        assert_eq!(secret_removal("east", None, &[renamed]), keep("east-1"));
    }
}
