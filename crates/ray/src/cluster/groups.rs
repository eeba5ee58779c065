//! Which pods of the head and of worker groups are made and deleted.
//!
//! Source: docs/reference/ray.md §3 "Pods (reconcilePods)".

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    context::ClusterContext,
    duplicate_workers::{IndexedPod, younger_duplicates},
    failure::Failure,
    group_size::{MOST_PODS_PER_PASS, desired_replicas, hosts},
    head_pod::{has_fixed_name, head_pod},
    multi_host,
    pod_health::{end_of, must_be_replaced},
    spec_hash::recreate_hash,
    worker_pod::{WorkerPlace, worker_pod},
};
use crate::{
    conditions_of,
    json::{annotation, is_terminating, label, name, text},
    names,
    pass::{OrderOutcome, Pass},
    step::{ObjectTarget, RayStep},
    v1::WorkerGroupSpec,
};

/// Makes and deletes pods of a cluster that is not suspended. Adds the new ones to `created`.
pub(crate) fn reconcile_pods<'a>(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'a>,
    created: &mut Vec<&'a Value>,
) -> Result<(), Failure> {
    // All pods go first; the pods of the new spec are made once no old head is left.
    if is_outdated(context, pass)? {
        let reason = "due to spec change with Recreate upgradeStrategy";
        return delete_all(context, pass, reason, "all Pods");
    }
    reconcile_head(context, pass, created)?;
    for group in &context.spec.worker_group_specs {
        reconcile_group(context, pass, group, created)?;
    }
    Ok(())
}

/// Deletes all pods of the head and of workers.
pub(crate) fn delete_all(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'_>,
    why: &str,
    what: &str,
) -> Result<(), Failure> {
    let cluster = context.path(context.name());
    // The head last: it alone says of which spec the pods are. Without it an agent that starts in between would keep the other workers.
    for pod in context.workers().chain(context.heads()) {
        // A deletion that was sent is not repeated.
        if is_terminating(pod) {
            continue;
        }
        if let OrderOutcome::Refused(refusal) = pass.delete(pod) {
            let why_refused = refusal.message.clone();
            let message =
                format!("Failed deleting Pods {why} for RayCluster {cluster}, {why_refused}");
            pass.warning("FailedToDeletePodCollection", message);
            return Err(Failure::of("FailedDeleteAllPods", why_refused));
        }
    }
    pass.normal("DeletedPod", format!("Deleted {what} for RayCluster {cluster} {why}"));
    Ok(())
}

/// Whether the head was made from another spec, and the strategy asks for new pods.
///
/// A head that another version of the operator made is not compared, nor is one without a version, as early ones made it: versions hash
/// differently, and an upgrade of the operator must not restart clusters. It gets the hash and the version of this one, so that
/// later changes of the spec count.
fn is_outdated(context: &ClusterContext<'_>, pass: &mut Pass<'_>) -> Result<bool, Failure> {
    let strategy = context.spec.upgrade_strategy.as_ref().and_then(|it| it.r#type.as_deref());
    let Some(head) = context.heads().next().filter(|_| strategy == Some("Recreate")) else {
        return Ok(false);
    };
    let present = recreate_hash(&context.cluster["spec"]);
    let made_by = annotation(head, names::OPERATOR_VERSION);
    if made_by != context.settings.version {
        take_over(context, pass, head, &present)?;
        return Ok(false);
    }
    let hash = annotation(head, names::RECREATE_HASH);
    Ok(!hash.is_empty() && hash != present)
}

/// Writes the present hash to a head of another version.
fn take_over(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'_>,
    head: &Value,
    hash: &str,
) -> Result<(), Failure> {
    if is_terminating(head) {
        return Ok(());
    }
    let annotations =
        json!({names::RECREATE_HASH: hash, names::OPERATOR_VERSION: context.settings.version});
    // The version of the object: a head in a cache that lags may have been taken over before the spec changed.
    let version = &head["metadata"]["resourceVersion"];
    let patch = json!({"metadata": {"annotations": annotations, "resourceVersion": version}});
    match pass.order(RayStep::Patch { target: ObjectTarget::of(head), patch }) {
        OrderOutcome::Pending | OrderOutcome::Done(_) => Ok(()),
        OrderOutcome::Refused(refusal) => Err(Failure::plain(refusal.message.clone())),
    }
}

fn reconcile_head<'a>(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'a>,
    created: &mut Vec<&'a Value>,
) -> Result<(), Failure> {
    let heads: Vec<&Value> = context.heads().collect();
    match heads.as_slice() {
        [] => {
            let was_ready = conditions_of::is_true(context.cluster, names::PROVISIONED);
            // The cluster of a RayJob with a sidecar: a new head would not know the job.
            if was_ready && annotation(context.cluster, names::NO_HEAD_RESTART) == "true" {
                return Ok(());
            }
            create_head(context, pass, created)
        }
        [head] if must_be_replaced(head) => delete_head(context, pass, head),
        [_] => Ok(()),
        several => delete_later_heads(context, pass, several),
    }
}

fn create_head<'a>(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'a>,
    created: &mut Vec<&'a Value>,
) -> Result<(), Failure> {
    let pod = head_pod(context);
    // As the official operator words it, for which the API server chooses the name.
    let is_named = has_fixed_name(context);
    let asked = context.path(if is_named { name(&pod) } else { "" });
    match pass.order(RayStep::Create(pod)) {
        OrderOutcome::Pending => Ok(()),
        OrderOutcome::Done(pod) => {
            pass.normal("CreatedHeadPod", format!("Created head Pod {}", context.path(name(pod))));
            created.push(pod);
            Ok(())
        }
        OrderOutcome::Refused(refusal) => {
            let message = format!("Failed to create head Pod {asked}, {}", refusal.message);
            pass.warning("FailedToCreateHeadPod", message);
            Err(Failure::of("FailedCreateHeadPod", refusal.message.clone()))
        }
    }
}

fn delete_head(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'_>,
    head: &Value,
) -> Result<(), Failure> {
    let pod = format!("{}; {}", context.path(name(head)), end_of(head));
    match pass.delete(head) {
        OrderOutcome::Pending => Ok(()),
        OrderOutcome::Done(_) => {
            pass.normal("DeletedHeadPod", format!("Deleted head Pod {pod}"));
            // The error ends the pass before the workers and repeats it soon.
            Err(Failure::plain(format!("the head {pod} was deleted and is made again")))
        }
        OrderOutcome::Refused(refusal) => {
            let message = format!("Failed deleting head Pod {pod}, {}", refusal.message);
            pass.warning("FailedToDeleteHeadPod", message);
            Err(Failure::of("FailedDeleteHeadPod", refusal.message.clone()))
        }
    }
}

/// Deletes all heads but the oldest that lives. An operator that named its pods otherwise may have made a second one.
///
/// The official operator reports an error without end, and the cluster is never ready.
fn delete_later_heads(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'_>,
    heads: &[&Value],
) -> Result<(), Failure> {
    let rank = |head: &&&Value| {
        let is_leaving = is_terminating(head) || must_be_replaced(head);
        (is_leaving, text(&head["metadata"]["creationTimestamp"]).to_owned(), name(head).to_owned())
    };
    let kept = heads.iter().min_by_key(rank).map(|head| name(head));
    let later = heads.iter().filter(|head| Some(name(head)) != kept && !is_terminating(head));
    for head in later {
        if let OrderOutcome::Refused(refusal) = pass.delete(head) {
            return Err(Failure::of("FailedDeleteHeadPod", refusal.message.clone()));
        }
        let pod = context.path(name(head));
        pass.normal("DeletedHeadPod", format!("Deleted head Pod {pod}; it is not the only head"));
    }
    let cluster = context.path(context.name());
    Err(Failure::plain(format!("{} head pods of cluster {cluster}", heads.len())))
}

fn reconcile_group<'a>(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'a>,
    group: &WorkerGroupSpec,
    created: &mut Vec<&'a Value>,
) -> Result<(), Failure> {
    if group.suspend == Some(true) {
        return delete_group(context, pass, group);
    }
    if hosts(group) > 1 && context.settings.gates.multi_host_indexing {
        return multi_host::reconcile(context, pass, group, created);
    }
    // Before the count: a pod that ended would count as one of the group and not be replaced.
    delete_unhealthy(context, pass, group)?;
    // Before the count as well, so that scaling down takes no other pods in addition.
    let mut leaving = delete_named(context, pass, group)?;
    delete_duplicates(context, pass, group, &mut leaving)?;
    let pods: Vec<&Value> =
        context.group_pods(&group.group_name).filter(|pod| !leaving.contains(name(pod))).collect();
    let wanted = usize::try_from(desired_replicas(group) * hosts(group)).unwrap_or_default();
    if pods.len() < wanted {
        let places = free_places(context, &pods, (wanted - pods.len()).min(MOST_PODS_PER_PASS));
        return create_workers(context, pass, group, &places, created);
    }
    if context.is_autoscaling() && !context.settings.random_pod_delete {
        // The autoscaler names the pods that go.
        return Ok(());
    }
    delete_surplus(context, pass, &pods, pods.len() - wanted)
}

fn delete_group(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'_>,
    group: &WorkerGroupSpec,
) -> Result<(), Failure> {
    let pods = context.group_pods(&group.group_name).filter(|pod| !is_terminating(pod));
    let (group, cluster) = (&group.group_name, context.path(context.name()));
    let mut deleted = false;
    for pod in pods {
        match pass.delete(pod) {
            OrderOutcome::Pending | OrderOutcome::Done(_) => deleted = true,
            OrderOutcome::Refused(refusal) => {
                let message = format!(
                    "Failed deleting worker Pods for suspended group {group} in RayCluster {cluster}, {}",
                    refusal.message
                );
                pass.warning("FailedToDeleteWorkerPodCollection", message);
                return Err(Failure::of("FailedDeleteWorkerPod", refusal.message.clone()));
            }
        }
    }
    if deleted {
        let message =
            format!("Deleted all pods for suspended worker group {group} in RayCluster {cluster}");
        pass.normal("DeletedWorkerPod", message);
    }
    Ok(())
}

fn delete_unhealthy(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'_>,
    group: &WorkerGroupSpec,
) -> Result<(), Failure> {
    let pods = context.group_pods(&group.group_name).filter(|pod| must_be_replaced(pod));
    let mut n_deleted = 0;
    for pod in pods {
        let what = format!("worker Pod {}; {}", context.path(name(pod)), end_of(pod));
        delete_worker(pass, pod, &what, &what)?;
        n_deleted += 1;
    }
    // The error repeats the pass, which makes the replacements.
    if n_deleted == 0 || pass.is_pending() {
        return Ok(());
    }
    Err(Failure::plain(format!("deleted {n_deleted} unhealthy worker Pods")))
}

/// Deletes a worker, with an event `Deleted {deleted}` or `Failed deleting {refused}`.
pub(crate) fn delete_worker(
    pass: &mut Pass<'_>,
    pod: &Value,
    deleted: &str,
    refused: &str,
) -> Result<(), Failure> {
    match pass.delete(pod) {
        OrderOutcome::Pending => Ok(()),
        OrderOutcome::Done(_) => {
            pass.normal("DeletedWorkerPod", format!("Deleted {deleted}"));
            Ok(())
        }
        OrderOutcome::Refused(refusal) => {
            let message = format!("Failed deleting {refused}, {}", refusal.message);
            pass.warning("FailedToDeleteWorkerPod", message);
            Err(Failure::of("FailedDeleteWorkerPod", refusal.message.clone()))
        }
    }
}

/// Deletes the pods that `workersToDelete` names. Returns their names.
fn delete_named<'a>(
    context: &ClusterContext<'a>,
    pass: &mut Pass<'_>,
    group: &WorkerGroupSpec,
) -> Result<BTreeSet<&'a str>, Failure> {
    let wanted = group.scale_strategy.iter().flat_map(|strategy| &strategy.workers_to_delete);
    let wanted: BTreeSet<&String> = wanted.collect();
    let mut deleted = BTreeSet::new();
    for pod in context.group_pods(&group.group_name) {
        if !wanted.iter().any(|wanted| *wanted == name(pod)) {
            continue;
        }
        if !is_terminating(pod) {
            let what = format!("pod {}", context.path(name(pod)));
            delete_worker(pass, pod, &what, &what)?;
        }
        deleted.insert(name(pod));
    }
    Ok(deleted)
}

/// Deletes the younger of two workers of one place, and adds it to those that leave.
fn delete_duplicates<'a>(
    context: &ClusterContext<'a>,
    pass: &mut Pass<'_>,
    group: &WorkerGroupSpec,
    leaving: &mut BTreeSet<&'a str>,
) -> Result<(), Failure> {
    let pods = context.group_pods(&group.group_name);
    let staying = pods.filter(|pod| !is_terminating(pod) && !leaving.contains(name(pod)));
    let placed = staying.map(|pod| IndexedPod { index: replica_index(pod), name: name(pod), pod });
    let duplicates = younger_duplicates(context, placed);
    for pod in context.group_pods(&group.group_name).filter(|pod| duplicates.contains(name(pod))) {
        let what = format!("pod {}; another worker has its place", context.path(name(pod)));
        delete_worker(pass, pod, &what, &what)?;
    }
    leaving.extend(duplicates);
    Ok(())
}

/// The lowest indexes that no pod of the group has.
fn free_places(context: &ClusterContext<'_>, pods: &[&Value], count: usize) -> Vec<WorkerPlace> {
    // Indexes are labels of this gate only.
    if !context.settings.gates.multi_host_indexing {
        return vec![WorkerPlace::default(); count];
    }
    let used: BTreeSet<usize> = pods.iter().filter_map(|pod| replica_index(pod)).collect();
    let free = (0..).filter(|index| !used.contains(index)).take(count);
    free.map(|index| WorkerPlace { replica: Some(index), host: None }).collect()
}

pub(crate) fn replica_index(pod: &Value) -> Option<usize> {
    label(pod, names::REPLICA_INDEX_LABEL).parse().ok()
}

/// Creates workers.
pub(crate) fn create_workers<'a>(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'a>,
    group: &WorkerGroupSpec,
    places: &[WorkerPlace],
    created: &mut Vec<&'a Value>,
) -> Result<(), Failure> {
    for place in places {
        match pass.order_with(|| RayStep::Create(worker_pod(context, group, place))) {
            OrderOutcome::Pending => {}
            OrderOutcome::Done(pod) => {
                let message = format!("Created worker Pod {}", context.path(name(pod)));
                pass.normal("CreatedWorkerPod", message);
                created.push(pod);
            }
            OrderOutcome::Refused(refusal) => {
                let cluster = context.path(context.name());
                let message = format!(
                    "Failed to create worker Pod for the cluster {cluster}, {}",
                    refusal.message
                );
                pass.warning("FailedToCreateWorkerPod", message);
                return Err(Failure::of("FailedCreateWorkerPod", refusal.message.clone()));
            }
        }
    }
    Ok(())
}

/// Deletes as many pods as there are too many. Pods that are being deleted count as deleted, so that no pass deletes others in addition.
fn delete_surplus(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'_>,
    pods: &[&Value],
    surplus: usize,
) -> Result<(), Failure> {
    let terminating = pods.iter().filter(|pod| is_terminating(pod)).count();
    let running = pods.iter().filter(|pod| !is_terminating(pod));
    for pod in running.take(surplus.saturating_sub(terminating)) {
        let what = format!("Pod {}", context.path(name(pod)));
        delete_worker(pass, pod, &what, &what)?;
    }
    Ok(())
}
