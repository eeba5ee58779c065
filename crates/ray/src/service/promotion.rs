//! The end of a pass: which cluster is active, whether another one is needed, how many pods serve, and the conditions.
//!
//! Source: docs/reference/ray.md §9.

use std::time::Duration;

use crds::go_duration;
use jiff::Timestamp;
use serde_json::Value;

use super::{
    applications::BothApplications,
    clusters::ServiceClusters,
    conditions::{
        INITIALIZING, INITIALIZING_TIMEOUT, READY, ROLLBACK_IN_PROGRESS, ServiceCondition,
        UPGRADE_IN_PROGRESS,
    },
    context::ServiceContext,
    goal::{ClusterFit, fit},
    incremental::TrafficSplit,
    state::{ClusterSlot, ServiceState},
    validate::timeout_of,
};
use crate::{
    cluster::{is_running_and_ready, no_cluster_status, rfc3339},
    json::{is_terminating, label, name, text},
    names,
    pass::Pass,
};

/// What a pass found and did before its end.
pub(super) struct PassFindings<'a> {
    pub(super) clusters: ServiceClusters<'a>,
    pub(super) applications: BothApplications,
    /// The parts of the traffic as the route has them.
    pub(super) traffic: Option<TrafficSplit>,
    /// The cluster that both Services select, if they were looked at.
    pub(super) selected: Option<String>,
}

/// Completes the status.
pub(super) fn conclude(
    context: &ServiceContext<'_>,
    pass: &mut Pass<'_>,
    state: &mut ServiceState,
    findings: PassFindings<'_>,
) {
    let PassFindings { clusters, applications, traffic, selected } = findings;
    if clusters.is_of_generation {
        state.observed_generation = context.generation();
    }
    let copy = |cluster: Option<&Value>| {
        let status = cluster.map(|cluster| cluster["status"].clone());
        status.filter(Value::is_object).unwrap_or_else(no_cluster_status)
    };
    state.active.copy = copy(clusters.active);
    state.pending.copy = copy(clusters.pending);
    state.active.applications = applications.active.by_name;
    state.pending.applications = applications.pending.by_name;
    let mut serves_already = false;
    if let Some(selected) = &selected {
        note_traffic(state, traffic, context.now());
        serves_already = *selected == state.pending.cluster;
        promote(context, state, selected);
    }
    if !serves_already && needs_cluster(context, state, &clusters) {
        prepare(context, state);
    }
    note_readiness(context, pass, state, &clusters);
}

/// Completes the status of a RayService that lacks a cluster which cannot be made: the others still count, and its time runs.
pub(super) fn conclude_without_new_cluster(
    context: &ServiceContext<'_>,
    pass: &mut Pass<'_>,
    state: &mut ServiceState,
) {
    let clusters = ServiceClusters::of(context, state);
    note_readiness(context, pass, state, &clusters);
}

fn note_readiness(
    context: &ServiceContext<'_>,
    pass: &mut Pass<'_>,
    state: &mut ServiceState,
    clusters: &ServiceClusters<'_>,
) {
    state.endpoints = count_endpoints(context, clusters);
    if state.conditions.is_empty() {
        state.initialize_conditions(context.now());
    }
    state.update_ready(context.now());
    give_up_late(context, pass, state);
    state.update_upgrade(context.now());
    state.is_running = state.is_true(READY);
}

fn note_traffic(state: &mut ServiceState, traffic: Option<TrafficSplit>, now: Timestamp) {
    let Some(TrafficSplit { active, pending }) = traffic else { return };
    let note = |slot: &mut ClusterSlot, part: i32| {
        if !slot.cluster.is_empty() && slot.traffic != Some(part) {
            slot.traffic = Some(part);
            slot.traffic_moved = Some(rfc3339(now));
        }
    };
    note(&mut state.active, active);
    note(&mut state.pending, pending);
}

/// Makes the pending cluster the active one, when the Services or all traffic have reached it.
fn promote(context: &ServiceContext<'_>, state: &mut ServiceState, selected: &str) {
    let has_both = state.is_true(UPGRADE_IN_PROGRESS);
    if has_both && state.is_rolling_back() {
        if state.is_migrated() {
            state.pending = ClusterSlot::default();
            state.remove_condition(ROLLBACK_IN_PROGRESS);
        }
        return;
    }
    let is_promoted = if !context.is_incremental() {
        state.active.cluster != selected
    } else if has_both {
        state.is_migrated()
    } else {
        // The first cluster has nothing to take over from.
        state.active.cluster.is_empty() && !state.pending.cluster.is_empty()
    };
    if is_promoted {
        state.active = std::mem::take(&mut state.pending);
    }
}

/// Whether a new cluster is needed: there is none, or the newest is of another spec. The active one stays as it is then.
pub(super) fn needs_cluster(
    context: &ServiceContext<'_>,
    state: &ServiceState,
    clusters: &ServiceClusters<'_>,
) -> bool {
    if state.is_rolling_back() {
        return false;
    }
    match newest(state, clusters) {
        None => true,
        Some(cluster) => fit(context, cluster) == ClusterFit::Other && context.replaces_clusters(),
    }
}

/// The cluster that is pending, else the active one. One that was given up in this pass is neither.
fn newest<'a>(state: &ServiceState, clusters: &ServiceClusters<'a>) -> Option<&'a Value> {
    let both = [clusters.pending, clusters.active];
    let named = |wanted: &str| both.into_iter().flatten().find(|cluster| name(cluster) == wanted);
    named(&state.pending.cluster).or_else(|| named(&state.active.cluster))
}

/// Names the new cluster. The name is stored before the cluster is made, so that a crash does not make two.
fn prepare(context: &ServiceContext<'_>, state: &mut ServiceState) {
    let name = format!("{}-{}", context.name(), context.inputs.suffix("cluster"));
    state.pending = ClusterSlot::of(name);
    if context.is_incremental() {
        // Without an active cluster there is no traffic that could move step by step.
        let is_first = state.active.cluster.is_empty();
        state.pending.target_capacity = Some(if is_first { 100 } else { 0 });
    }
}

/// Pods that serve and that a Service selects. Of an incremental upgrade both clusters serve.
fn count_endpoints(context: &ServiceContext<'_>, clusters: &ServiceClusters<'_>) -> i32 {
    let selected: Vec<&str> = if context.is_incremental() {
        let names = [clusters.active, clusters.pending].into_iter().flatten().map(name);
        let has_service = |cluster: &&str| {
            context.child("Service", &names::serve_service_name(cluster)).is_some()
        };
        names.filter(has_service).collect()
    } else {
        let serve = context.children.iter().copied().filter(|it| it["kind"] == "Service");
        let mut serve =
            serve.filter(|it| context.owns(it) && !label(it, names::SERVE_LABEL).is_empty());
        serve
            .next()
            .map(|it| text(&it["spec"]["selector"][names::CLUSTER_LABEL]))
            .into_iter()
            .collect()
    };
    let serves = |pod: &&Value| {
        pod["kind"] == "Pod"
            && selected.contains(&label(pod, names::CLUSTER_LABEL))
            && label(pod, names::SERVE_LABEL) == "true"
            && is_running_and_ready(pod)
            && !is_terminating(pod)
    };
    i32::try_from(context.children.iter().copied().filter(serves).count()).unwrap_or(i32::MAX)
}

/// Gives a RayService up that did not begin to serve in time. Only a new one recovers, as with the official operator.
fn give_up_late(context: &ServiceContext<'_>, pass: &mut Pass<'_>, state: &mut ServiceState) {
    if state.endpoints > 0 || state.reason(READY) != INITIALIZING {
        return;
    }
    let Some(timeout) = timeout_of(context.service) else { return };
    let since = state.condition(READY).map(|it| text(&it["lastTransitionTime"]));
    let Some(since) = since.and_then(|since| since.parse::<Timestamp>().ok()) else { return };
    let spent = Duration::try_from(context.now().duration_since(since)).unwrap_or_default();
    if spent < timeout {
        return;
    }
    let (timeout, spent) = (go_duration::format(timeout), go_duration::format(spent));
    // The clusters are then superfluous and removed.
    state.active.cluster.clear();
    state.pending.cluster.clear();
    let message = format!(
        "RayService failed to become ready within the configured timeout of {timeout}. Time spent initializing: {spent}"
    );
    let reason = INITIALIZING_TIMEOUT;
    let late = ServiceCondition { kind: READY, status: "False", reason, message: &message };
    state.set(&late, context.now());
    let message = format!(
        "RayService initializing timeout exceeded after {spent} (configured timeout: {timeout})"
    );
    pass.warning("RayServiceInitializingTimeout", message);
}
