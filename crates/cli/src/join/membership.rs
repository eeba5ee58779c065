//! The entry of a worker in a MultiKueueConfig.

use crds::{
    names::annotations::JOINED_CONFIGS,
    v1beta2::{MultiKueueCluster, MultiKueueConfig},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::json;

use super::{JoinFailure, OtherHub, apply::ensure, hub_objects};
use crate::{
    conflicts::retry_conflicts,
    made_by::is_made_by_sluicectl,
    requests::{RequestFailure, find},
};

/// The configurations that `join` added a worker to.
#[must_use]
pub fn joined_configs(cluster: &MultiKueueCluster) -> Vec<String> {
    let annotation = cluster.metadata.annotations.as_ref().and_then(|all| all.get(JOINED_CONFIGS));
    let names = annotation.map(String::as_str).unwrap_or_default().split(',');
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Adds a worker to a configuration, which is made if it does not exist. Gives a line about what happened.
///
/// # Errors
/// If a request fails.
pub(super) async fn add_member(
    client: &Client,
    config: &str,
    cluster: &str,
) -> Result<String, JoinFailure> {
    let extend = || extend_config(client, config, cluster);
    match retry_conflicts(extend, RequestFailure::is_conflict).await? {
        Some(line) => Ok(line),
        None => ensure(client, &hub_objects::config(config, cluster), OtherHub::Refuse).await,
    }
}

/// Adds a worker to a configuration; `None` if that does not exist.
async fn extend_config(
    client: &Client,
    config: &str,
    cluster: &str,
) -> Result<Option<String>, RequestFailure> {
    let Some(found) = find::<MultiKueueConfig>(client, config).await? else {
        return Ok(None);
    };
    if found.spec.clusters.iter().any(|one| one == cluster) {
        return Ok(Some(format!("MultiKueueConfig {config} unchanged")));
    }
    let clusters = [found.spec.clusters.clone(), vec![cluster.to_owned()]].concat();
    set_members(client, &found, &clusters).await?;
    Ok(Some(format!("MultiKueueConfig {config} lists {cluster}")))
}

/// What remains of a configuration without a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberRemoval {
    /// It does not list the worker.
    NotListed,
    /// It keeps these workers.
    Keep(Vec<String>),
    /// `join` made it for this worker alone: it goes as well.
    Delete,
    /// It must list a worker, and this one is the last.
    Last,
}

/// Decides what happens to a configuration when a worker leaves.
#[must_use]
pub fn without_member(config: &MultiKueueConfig, cluster: &str) -> MemberRemoval {
    let listed = &config.spec.clusters;
    if !listed.iter().any(|one| one == cluster) {
        return MemberRemoval::NotListed;
    }
    let left: Vec<String> = listed.iter().filter(|one| *one != cluster).cloned().collect();
    match (left.is_empty(), is_made_by_sluicectl(&config.metadata)) {
        (false, _) => MemberRemoval::Keep(left),
        (true, true) => MemberRemoval::Delete,
        (true, false) => MemberRemoval::Last,
    }
}

/// Writes the list of workers, if the configuration is still the one that was read.
///
/// # Errors
/// If the request fails; a conflict if another write came in between.
pub async fn set_members(
    client: &Client,
    config: &MultiKueueConfig,
    clusters: &[String],
) -> Result<(), RequestFailure> {
    let name = config.metadata.name.clone().unwrap_or_default();
    let version = &config.metadata.resource_version;
    let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"clusters": clusters}});
    let failed = RequestFailure::of("change", format!("MultiKueueConfig {name}"));
    let configs: Api<MultiKueueConfig> = Api::all(client.clone());
    let patched = configs.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
    patched.map(drop).map_err(failed)
}

#[cfg(test)]
mod tests {
    use crds::names::{SLUICECTL, labels::MANAGED_BY};

    use super::*;

    fn config(clusters: &[&str], joined: bool) -> MultiKueueConfig {
        let labels = if joined { json!({MANAGED_BY: SLUICECTL}) } else { json!({}) };
        let object = json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueConfig",
            "metadata": {"name": "c", "labels": labels}, "spec": {"clusters": clusters}});
        serde_json::from_value(object).expect("a configuration")
    }

    #[test]
    fn a_configuration_keeps_the_other_workers() {
        let kept = MemberRemoval::Keep(vec!["west".to_owned()]);
        assert_eq!(without_member(&config(&["east", "west"], true), "east"), kept);
        assert_eq!(without_member(&config(&["west"], true), "east"), MemberRemoval::NotListed);
    }

    #[test]
    fn the_last_worker_takes_along_only_a_configuration_that_join_made() {
        assert_eq!(without_member(&config(&["east"], true), "east"), MemberRemoval::Delete);
        assert_eq!(without_member(&config(&["east"], false), "east"), MemberRemoval::Last);
    }

    #[test]
    fn the_joined_configurations_are_those_of_the_annotation() {
        let mut cluster = MultiKueueCluster::default();
        assert!(joined_configs(&cluster).is_empty());
        let annotations = [(JOINED_CONFIGS.to_owned(), "a,b".to_owned())];
        cluster.metadata.annotations = Some(annotations.into());
        assert_eq!(joined_configs(&cluster), ["a", "b"]);
    }
}
