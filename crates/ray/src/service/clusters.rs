//! The clusters of a RayService: which are made, which are changed, and which are removed.
//!
//! Source: docs/reference/ray.md §9.

use crds::names::labels;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{
    conditions::UPGRADE_IN_PROGRESS,
    context::{ServiceContext, Unfinished},
    goal::{ClusterFit, fit, goal_annotations},
    memory::ServiceMemory,
    state::ServiceState,
};
use crate::{
    json::{is_terminating, items, label, merge_patch, name, object, texts},
    pass::{OrderOutcome, Pass},
    step::{ObjectTarget, RayStep},
};

/// How long a replaced cluster stays, if the spec does not say.
const REMOVAL_DELAY: i32 = 60;

/// The two clusters of a pass, as they are stored.
#[derive(Clone, Copy)]
pub(super) struct ServiceClusters<'a> {
    pub(super) active: Option<&'a Value>,
    pub(super) pending: Option<&'a Value>,
    /// Whether no change to the present spec was refused.
    pub(super) is_of_generation: bool,
}

/// A cluster that is changed to the present spec.
struct OutdatedCluster<'a> {
    cluster: &'a Value,
    is_pending: bool,
}

impl<'a> ServiceClusters<'a> {
    /// Those that are there, by the names of the status.
    pub(super) fn of(context: &ServiceContext<'a>, state: &ServiceState) -> Self {
        Self {
            active: context.cluster(&state.active.cluster),
            pending: context.cluster(&state.pending.cluster),
            is_of_generation: true,
        }
    }
}

/// Makes the pending cluster, or changes one of the two to the present spec.
///
/// A refused change is an event only: the cluster stays as it is, and so the rest of the pass is about a cluster that exists. Without a
/// cluster that could not be made nothing is asked or routed.
pub(super) fn reconcile_clusters<'a>(
    context: &ServiceContext<'a>,
    pass: &mut Pass<'a>,
    state: &ServiceState,
) -> Result<ServiceClusters<'a>, Unfinished> {
    let mut clusters = ServiceClusters::of(context, state);
    if clusters.pending.is_none() && !state.pending.cluster.is_empty() {
        clusters.pending = Some(create(context, pass, state)?);
        return Ok(clusters);
    }
    let Some(outdated) = outdated(context, state, &clusters) else { return Ok(clusters) };
    match update(context, pass, state, &outdated)? {
        Some(stored) if outdated.is_pending => clusters.pending = Some(stored),
        Some(stored) => clusters.active = Some(stored),
        None => clusters.is_of_generation = false,
    }
    Ok(clusters)
}

/// The cluster that is changed in this pass: one that is to run again comes first, then the active one.
fn outdated<'a>(
    context: &ServiceContext<'_>,
    state: &ServiceState,
    clusters: &ServiceClusters<'a>,
) -> Option<OutdatedCluster<'a>> {
    let active = clusters.active.map(|cluster| OutdatedCluster { cluster, is_pending: false });
    let pending = clusters.pending.map(|cluster| OutdatedCluster { cluster, is_pending: true });
    let resumed = |it: &OutdatedCluster<'_>| resumes(context, it.cluster);
    let changed = |it: &OutdatedCluster<'_>| fit(context, it.cluster).is_updated();
    // During an upgrade the spec is that of the pending cluster.
    let upgrades = state.is_true(UPGRADE_IN_PROGRESS);
    match (active, pending) {
        (_, Some(pending)) if resumed(&pending) => Some(pending),
        (Some(active), _) if resumed(&active) || (!upgrades && changed(&active)) => Some(active),
        (_, pending) => pending.filter(changed),
    }
}

/// Whether a cluster that Kueue had suspended is to run again, since Kueue has admitted its RayService.
///
/// Kueue switches the RayService and suspends the cluster, but starts no child; the official operator passes the switch on to new clusters
/// only. A suspended cluster has no pods, so it takes the nodes that it was admitted to in place.
fn resumes(context: &ServiceContext<'_>, cluster: &Value) -> bool {
    let is_queued = [labels::QUEUE_NAME, labels::PREBUILT_WORKLOAD_NAME]
        .iter()
        .any(|name| !label(context.service, name).is_empty());
    is_queued
        && context.spec.ray_cluster_config.suspend == Some(false)
        && cluster["spec"]["suspend"] == true
        && context.head_pod(cluster).is_none()
}

fn create<'a>(
    context: &ServiceContext<'a>,
    pass: &mut Pass<'a>,
    state: &ServiceState,
) -> Result<&'a Value, Unfinished> {
    let wanted = goal_cluster(context, state, &state.pending.cluster);
    let path = context.path(&state.pending.cluster);
    match pass.order(RayStep::Create(wanted)) {
        OrderOutcome::Done(cluster) => {
            pass.normal("CreatedRayCluster", format!("Created the RayCluster {path}"));
            Ok(cluster)
        }
        // Made by an earlier pass: the cache does not show it yet.
        OrderOutcome::Refused(refusal) if refusal.is_conflict() => Err(Unfinished::Waiting),
        OrderOutcome::Refused(refusal) => {
            let message = format!("Failed to create the RayCluster {path}: {}", refusal.message);
            pass.warning("FailedToCreateRayCluster", message);
            Err(Unfinished::ClusterRefused)
        }
        OrderOutcome::Pending => Err(Unfinished::Waiting),
    }
}

/// What changes a cluster to the present spec; `None` if nothing differs.
fn patch_of(context: &ServiceContext<'_>, state: &ServiceState, cluster: &Value) -> Option<Value> {
    let resumes = resumes(context, cluster);
    if !resumes && fit(context, cluster) == ClusterFit::OtherVersion {
        return Some(json!({"metadata": {"annotations": goal_annotations(context)}}));
    }
    let mut wanted = goal_cluster(context, state, name(cluster));
    // Kueue and the user suspend the cluster itself; the field of the RayService counts when it is made.
    if !resumes {
        object(&mut wanted["spec"]).remove("suspend");
        if !cluster["spec"]["suspend"].is_null() {
            wanted["spec"]["suspend"] = cluster["spec"]["suspend"].clone();
        }
    }
    merge_patch(&changed_parts(cluster), &changed_parts(&wanted))
}

/// Changes a cluster to the present spec. None if that is refused.
fn update<'a>(
    context: &ServiceContext<'a>,
    pass: &mut Pass<'a>,
    state: &ServiceState,
    outdated: &OutdatedCluster<'a>,
) -> Result<Option<&'a Value>, Unfinished> {
    let OutdatedCluster { cluster, is_pending } = *outdated;
    let Some(mut patch) = patch_of(context, state, cluster) else { return Ok(Some(cluster)) };
    let (path, role) = (context.path(name(cluster)), if is_pending { "pending" } else { "active" });
    // A patch that is carried out late must not bring an older spec back: the cluster would be replaced for it.
    patch["metadata"]["resourceVersion"] = cluster["metadata"]["resourceVersion"].clone();
    match pass.order(RayStep::Patch { target: ObjectTarget::of(cluster), patch }) {
        OrderOutcome::Done(cluster) => {
            let message = format!("Updated the {role} RayCluster {path}");
            pass.normal("UpdatedRayCluster", message);
            Ok(Some(cluster))
        }
        // It has changed since it was read.
        OrderOutcome::Refused(refusal) if refusal.is_conflict() => Err(Unfinished::Waiting),
        OrderOutcome::Refused(refusal) => {
            let why = &refusal.message;
            let message = format!("Failed to update the {role} RayCluster {path}: {why}");
            pass.warning("FailedToUpdateRayCluster", message);
            Ok(None)
        }
        OrderOutcome::Pending => Err(Unfinished::Waiting),
    }
}

/// The parts of a cluster that are changed in place.
fn changed_parts(cluster: &Value) -> Value {
    let metadata = &cluster["metadata"];
    let (labels, annotations) = (texts(&metadata["labels"]), texts(&metadata["annotations"]));
    json!({"metadata": {"labels": labels, "annotations": annotations}, "spec": cluster["spec"]})
}

/// A cluster of the present spec.
fn goal_cluster(context: &ServiceContext<'_>, state: &ServiceState, cluster: &str) -> Value {
    let metadata = &context.service["metadata"];
    let merged = |given: &Value, own: Value| {
        let mut all = json!(texts(given));
        for (key, value) in own.as_object().into_iter().flatten() {
            all[key] = value.clone();
        }
        all
    };
    let mut spec = context.service["spec"]["rayClusterConfig"].clone();
    // Beside an active cluster the autoscaler lets a new one grow with its share of the capacity.
    let is_second = !state.active.cluster.is_empty() && cluster != state.active.cluster;
    if context.is_incremental() && is_second {
        let count = items(&spec["workerGroupSpecs"]).len();
        for index in 0..count {
            object(&mut spec["workerGroupSpecs"][index]).remove("replicas");
        }
    }
    json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {
            "name": cluster,
            "namespace": context.namespace(),
            "labels": merged(&metadata["labels"], context.origin_labels()),
            "annotations": merged(&metadata["annotations"], goal_annotations(context)),
            "ownerReferences": [context.owner_reference()],
        },
        "spec": spec,
    })
}

/// Removes clusters that are not in use any more, after the delay. Returns whether there are some.
pub(super) fn remove_superfluous<'a>(
    context: &ServiceContext<'a>,
    pass: &mut Pass<'a>,
    state: &ServiceState,
    memory: &mut ServiceMemory,
) -> Result<bool, Unfinished> {
    let used = state.clusters();
    let superfluous: Vec<&Value> =
        context.clusters().filter(|cluster| !used.contains(&name(cluster))).collect();
    let names: Vec<&str> = superfluous.iter().map(|cluster| name(cluster)).collect();
    memory.retain(&used, &names);
    // An invalid delay counts as none: the spec is not checked yet.
    let delay = context.spec.ray_cluster_deletion_delay_seconds.filter(|delay| *delay >= 0);
    let delay = delay.unwrap_or(REMOVAL_DELAY);
    for cluster in &superfluous {
        let planned = context.now().saturating_add(SignedDuration::from_secs(delay.into()));
        let due = memory.removal(name(cluster), planned.unwrap_or(context.now()));
        if context.now() >= due {
            remove(&context.path(name(cluster)), "", pass, cluster);
        }
    }
    if pass.is_pending() { Err(Unfinished::Waiting) } else { Ok(!superfluous.is_empty()) }
}

/// Deletes a cluster, unless it is on its way out. `occasion` ends the message. A refusal is an event only: it must not hold up the other
/// objects.
pub(super) fn remove(path: &str, occasion: &str, pass: &mut Pass<'_>, cluster: &Value) {
    if is_terminating(cluster) {
        return;
    }
    match pass.delete(cluster) {
        OrderOutcome::Done(_) => {
            let message = format!("Deleted the RayCluster {path}{occasion}");
            pass.normal("DeletedRayCluster", message);
        }
        OrderOutcome::Refused(refusal) => {
            let why = &refusal.message;
            let message = format!("Failed to delete the RayCluster {path}{occasion}: {why}");
            pass.warning("FailedToDeleteRayCluster", message);
        }
        OrderOutcome::Pending => {}
    }
}
