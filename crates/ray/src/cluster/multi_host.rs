//! Groups in which a replica has several pods: replicas are made and deleted as a whole.
//!
//! Source: docs/reference/ray.md §3 "Multi-host path".

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    context::{ClusterContext, letters},
    duplicate_workers::{IndexedPod, younger_duplicates},
    failure::Failure,
    group_size::{MOST_PODS_PER_PASS, desired_replicas, hosts},
    groups::{create_workers, delete_worker, replica_index},
    pod_health::{end_of, must_be_replaced, phase, terminated_text},
    worker_pod::WorkerPlace,
};
use crate::{
    json::{is_terminating, label, name},
    names,
    pass::Pass,
    v1::WorkerGroupSpec,
};

/// The pods of a group by replica, in the order of the replicas' indexes.
type Replicas<'a> = Vec<Vec<&'a Value>>;

/// Makes and deletes replicas of a group.
pub(crate) fn reconcile<'a>(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'a>,
    group: &WorkerGroupSpec,
    created: &mut Vec<&'a Value>,
) -> Result<(), Failure> {
    let replicas = replicas(context, group);
    let n_hosts = usize::try_from(hosts(group)).unwrap_or(1);
    let mut n_deleted = 0;
    let reasons: Vec<Option<String>> =
        replicas.iter().map(|pods| reason_to_delete(pods, n_hosts, group)).collect();
    let staying = replicas.iter().zip(&reasons).filter(|(_, reason)| reason.is_none());
    let duplicates = duplicates(context, staying.map(|(pods, _)| &pods[..]));
    for (pods, reason) in replicas.iter().zip(reasons) {
        let is_duplicate = duplicates.contains(replica_name(pods));
        let duplicate = || is_duplicate.then(|| "another replica has its place".to_owned());
        if let Some(why) = reason.or_else(duplicate) {
            delete_replica(context, pass, group, pods, &why)?;
            n_deleted += 1;
        }
    }
    // New replicas are made in a later pass, as in the official operator.
    if n_deleted > 0 {
        if pass.is_pending() {
            return Ok(());
        }
        return Err(Failure::plain(format!(
            "deleted {n_deleted} replicas of {}",
            group.group_name
        )));
    }
    let wanted = usize::try_from(desired_replicas(group)).unwrap_or_default();
    if replicas.len() < wanted {
        // Replicas are made as a whole; validation keeps their size below the most pods of a pass.
        let count = (wanted - replicas.len()).min(MOST_PODS_PER_PASS / n_hosts.max(1));
        let places = free_replicas(context, group, &replicas, n_hosts, count);
        return create_workers(context, pass, group, &places, created);
    }
    // The autoscaler names the replicas that go in `workersToDelete`.
    if context.is_autoscaling() && !context.settings.random_pod_delete {
        return Ok(());
    }
    // A replica works with all of its pods only, so one that loses a pod is leaving.
    let leaving = replicas.iter().filter(|pods| is_leaving(pods)).count();
    let staying = replicas.iter().filter(|pods| !is_leaving(pods));
    let surplus = (replicas.len() - wanted).saturating_sub(leaving);
    // The highest indexes go first; the official operator has no fixed order.
    for pods in staying.rev().take(surplus) {
        delete_replica(context, pass, group, pods, "scaling down")?;
    }
    Ok(())
}

fn replicas<'a>(context: &ClusterContext<'a>, group: &WorkerGroupSpec) -> Replicas<'a> {
    let mut by_name: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for pod in context.group_pods(&group.group_name) {
        by_name.entry(label(pod, names::REPLICA_NAME_LABEL)).or_default().push(pod);
    }
    let mut replicas: Replicas<'_> = by_name.into_values().collect();
    replicas.sort_by_key(|pods| pods.first().and_then(|pod| replica_index(pod)));
    replicas
}

/// Why a replica must go: a host is missing or at its end, or one of its pods is named. A replica that is on its way out has a reason
/// until its pods are gone.
fn reason_to_delete(pods: &[&Value], n_hosts: usize, group: &WorkerGroupSpec) -> Option<String> {
    if let Some(pod) = pods.iter().find(|pod| must_be_replaced(pod)) {
        return Some(why_replaced(pod));
    }
    if pods.len() != n_hosts {
        return Some("cleanup of incomplete multi-host group".to_owned());
    }
    let wanted = group.scale_strategy.iter().flat_map(|strategy| &strategy.workers_to_delete);
    let wanted: BTreeSet<&str> = wanted.map(String::as_str).collect();
    let is_named = pods.iter().any(|pod| wanted.contains(name(pod)));
    is_named.then(|| "autoscaler scale-down request".to_owned())
}

/// The younger of two replicas of one place.
fn duplicates<'a: 'r, 'r>(
    context: &ClusterContext<'_>,
    replicas: impl Iterator<Item = &'r [&'a Value]>,
) -> BTreeSet<&'a str> {
    let placed = replicas.filter(|pods| !is_leaving(pods)).filter_map(|pods| {
        let pod = pods.first()?;
        Some(IndexedPod { index: replica_index(pod), name: replica_name(pods), pod })
    });
    younger_duplicates(context, placed)
}

fn is_leaving(pods: &[&Value]) -> bool {
    pods.iter().any(|pod| is_terminating(pod))
}

fn replica_name<'a>(pods: &[&'a Value]) -> &'a str {
    pods.first().map_or("", |pod| label(pod, names::REPLICA_NAME_LABEL))
}

fn why_replaced(pod: &Value) -> String {
    let (pod_name, phase) = (name(pod), phase(pod));
    if phase != "Running" {
        return format!(
            "The worker Pod {pod_name} status is {phase} which is a terminal state. KubeRay will delete the Pod and create new Pods in the next reconciliation if necessary."
        );
    }
    format!(
        "The Pod status of the worker Pod {pod_name} is Running, and the Ray container terminated status is {}. The container is unable to restart due to its restart policy Never, so KubeRay will delete it.",
        terminated_text(pod)
    )
}

fn delete_replica(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'_>,
    group: &WorkerGroupSpec,
    pods: &[&Value],
    why: &str,
) -> Result<(), Failure> {
    for pod in pods.iter().filter(|pod| !is_terminating(pod) || must_be_replaced(pod)) {
        let worker =
            format!("worker Pod {} for group {}", context.path(name(pod)), group.group_name);
        delete_worker(
            pass,
            pod,
            &format!("{worker}: {why}"),
            &format!("{worker}; {}", end_of(pod)),
        )?;
    }
    Ok(())
}

/// Places of all hosts of new replicas, at the lowest indexes that no replica has.
fn free_replicas(
    context: &ClusterContext<'_>,
    group: &WorkerGroupSpec,
    replicas: &Replicas<'_>,
    n_hosts: usize,
    count: usize,
) -> Vec<WorkerPlace> {
    let used: BTreeSet<usize> = replicas
        .iter()
        .filter_map(|pods| pods.first().and_then(|pod| replica_index(pod)))
        .collect();
    let free = (0..).filter(|index| !used.contains(index)).take(count);
    free.flat_map(|index| {
        let place = format!("{}/{index}{}", group.group_name, context.edition());
        // The same for the same replica, as the names of its pods are: a repeated create meets its own pods.
        let suffix = letters(&[context.uid().as_bytes(), place.as_bytes()], 5);
        let replica = format!("{}-{suffix}", group.group_name);
        (0..n_hosts).map(move |host| WorkerPlace {
            replica: Some(index),
            host: Some((replica.clone(), host)),
        })
    })
    .collect()
}
