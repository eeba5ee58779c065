//! The order of the steps for a RayService.
//!
//! Source: docs/reference/ray.md §9.

use std::time::Duration;

use crds::decode::from_value;
use serde_json::Value;

use super::{
    applications::{Applications, BothApplications},
    clusters::{ServiceClusters, reconcile_clusters, remove, remove_superfluous},
    conditions::{
        INITIALIZING_TIMEOUT, READY, ROLLBACK_IN_PROGRESS, SUSPENDING, ServiceCondition,
        UPGRADE_IN_PROGRESS, VALIDATION_FAILED,
    },
    context::{ServiceContext, Unfinished},
    gateway::{reconcile_cluster_service, reconcile_gateway, reconcile_route},
    goal::{ClusterFit, fit},
    incremental::TrafficSplit,
    memory::ServiceMemory,
    promotion::{PassFindings, conclude, conclude_without_new_cluster, needs_cluster},
    serve_config::reconcile_serve,
    serve_label::reconcile_serve_label,
    services::reconcile_services,
    state::{ClusterSlot, ServiceState},
    suspension::{rests, suspend},
    validate::{InvalidService, check_service},
};
use crate::{
    PassInputs,
    finalizers::OF_SERVICE,
    json::{is_run_elsewhere, is_terminating, name},
    pass::Pass,
    settings::OperatorSettings,
    step::{RayAnswer, RayStep},
    v1::RayServiceSpec,
};

/// When a RayService is looked at again: heads are polled.
const POLL: Duration = Duration::from_secs(2);

/// What a RayService needs next.
///
/// `children` are the objects of its namespace that it may own or meet: its RayClusters and their pods, Services, Gateways and
/// HTTPRoutes by name. `memory` is what the last pass left in [`RayStep::Remember`]. The protocol of steps and answers is that of
/// [`crate::cluster::decide`]; a request to a head is an order as well.
#[must_use]
pub fn decide(
    service: &Value,
    children: &[&Value],
    memory: &ServiceMemory,
    answers: &[RayAnswer],
    inputs: &PassInputs,
    settings: &OperatorSettings,
) -> Vec<RayStep> {
    if is_run_elsewhere(service) {
        return Vec::new();
    }
    let mut pass = Pass::new(answers);
    let decoded = from_value::<RayServiceSpec>(&service["spec"]);
    let spec = decoded.as_ref().ok().cloned().unwrap_or_default();
    let context = ServiceContext { service, spec: &spec, children, settings, inputs };
    // Before the validation, so that a service that became invalid can still be deleted.
    if is_terminating(service) {
        finalize(&context, &mut pass);
        return pass.finish();
    }
    let before = ServiceState::read(service);
    // Before the first cluster, so that a deleted RayService waits for its clusters. The change of the object brings the next pass.
    if !OF_SERVICE.is_on(service) {
        let is_refused = OF_SERVICE.add(service, &mut pass).is_some_and(|written| written.is_err());
        // One that has clusters is run, suspended and upgraded although the finalizer was taken away. So is one
        // with a suspension under way, which has removed them: it would keep its quota.
        let goes_on = context.clusters().next().is_some() || before.is_true(SUSPENDING);
        if !is_refused || !goes_on {
            return pass.finish();
        }
    }
    let checked = decoded.map_err(|error| InvalidService {
        reason: "InvalidRayServiceSpec",
        message: format!("The RayService spec is invalid: {error}"),
    });
    let checked = checked.and_then(|spec| check_service(service, &spec, settings));
    let mut state = before.clone();
    let mut remembered = memory.clone();
    let ended = proceed(&context, &mut pass, &mut remembered, &mut state, checked);
    if pass.is_pending() {
        return pass.finish();
    }
    if remembered != *memory {
        pass.remember(remembered);
    }
    if let Err(Unfinished::ClusterRefused) = ended {
        conclude_without_new_cluster(&context, &mut pass, &mut state);
    }
    let is_known = matches!(ended, Ok(_) | Err(Unfinished::ClusterRefused));
    if is_known && state.differs(&before) {
        pass.status(state.to_value(inputs.now));
    }
    let is_final = ended.is_ok_and(|is_final| is_final);
    if !is_final {
        pass.requeue(POLL);
    }
    pass.finish()
}

/// Whether nothing is left to do until an object changes.
fn proceed<'a>(
    context: &ServiceContext<'a>,
    pass: &mut Pass<'a>,
    memory: &mut ServiceMemory,
    state: &mut ServiceState,
    checked: Result<(), InvalidService>,
) -> Result<bool, Unfinished> {
    // Before the validation: a spec that became invalid must not keep the quota of a replaced cluster.
    let removal = remove_superfluous(context, pass, state, memory);
    match checked {
        Ok(()) => {
            let has_superfluous = removal?;
            Ok(advance(context, pass, memory, state)? && !has_superfluous)
        }
        Err(invalid) => {
            // Also when a deletion was refused, which is tried again.
            refuse(context, state, &invalid, pass);
            Ok(removal.is_ok_and(|has_superfluous| !has_superfluous))
        }
    }
}

/// Whether a valid RayService rests until an object changes.
fn advance<'a>(
    context: &ServiceContext<'a>,
    pass: &mut Pass<'a>,
    memory: &mut ServiceMemory,
    state: &mut ServiceState,
) -> Result<bool, Unfinished> {
    if suspend(context, pass, state)? {
        return Ok(rests(state, context.spec.suspend));
    }
    // The official operator gives such a service up as well: it is deleted and made again.
    if state.reason(READY) == INITIALIZING_TIMEOUT {
        return Ok(true);
    }
    if goes_back(context, state) {
        state.pending = ClusterSlot::default();
        state.remove_condition(ROLLBACK_IN_PROGRESS);
    }
    let clusters = reconcile_clusters(context, pass, state)?;
    note_rollback(context, state, &clusters);
    for cluster in [clusters.active, clusters.pending].into_iter().flatten() {
        reconcile_serve_label(context, pass, cluster)?;
    }
    let applications = read_applications(context, pass, memory, state, &clusters)?;
    let traffic = if context.is_incremental() {
        route(context, pass, state, &clusters, &applications)?
    } else {
        None
    };
    let selected = select(context, pass, state, &clusters, &applications)?;
    let findings = PassFindings { clusters, applications, traffic, selected };
    conclude(context, pass, state, findings);
    Ok(false)
}

/// Whether the spec is that of the active cluster again, before the pending one took over.
///
/// The official operator makes a third cluster then, which users without room for it wait for in vain. An incremental upgrade is taken
/// back step by step instead, unless nothing has moved yet and the pending cluster is not there.
fn goes_back(context: &ServiceContext<'_>, state: &ServiceState) -> bool {
    let Some(active) = context.cluster(&state.active.cluster) else { return false };
    if state.pending.cluster.is_empty() || !fit(context, active).is_of_the_spec() {
        return false;
    }
    match context.cluster(&state.pending.cluster) {
        Some(pending) => !context.is_incremental() && fit(context, pending) == ClusterFit::Other,
        // A create that is carried out late makes a superfluous cluster, which is removed.
        None => !context.is_incremental() || state.active.has_all(),
    }
}

/// A spec that changes during an incremental upgrade takes the upgrade back first: the new cluster is not of it any more.
fn note_rollback(
    context: &ServiceContext<'_>,
    state: &mut ServiceState,
    clusters: &ServiceClusters<'_>,
) {
    let (Some(_), Some(pending)) = (clusters.active, clusters.pending) else { return };
    if !context.is_incremental() || !state.is_true(UPGRADE_IN_PROGRESS) {
        return;
    }
    match (fit(context, pending), state.is_rolling_back()) {
        (ClusterFit::Other, false) => {
            let wanted = ServiceCondition {
                kind: ROLLBACK_IN_PROGRESS,
                status: "True",
                reason: "DesiredClusterSpecChanged",
                message: "The spec has changed during the upgrade; traffic returns to the active cluster",
            };
            state.set(&wanted, context.now());
        }
        // The spec is that of the new cluster again.
        (fit, true) if fit.is_of_the_spec() => {
            state.remove_condition(ROLLBACK_IN_PROGRESS);
        }
        _ => {}
    }
}

/// What both clusters serve. Outside of an incremental upgrade only the newer one is asked.
fn read_applications<'a>(
    context: &ServiceContext<'a>,
    pass: &mut Pass<'a>,
    memory: &mut ServiceMemory,
    state: &mut ServiceState,
    clusters: &ServiceClusters<'a>,
) -> Result<BothApplications, Unfinished> {
    let pending = match clusters.pending {
        Some(cluster) => reconcile_serve(context, pass, memory, state, cluster)?,
        None => Applications::default(),
    };
    let active = match (clusters.active, clusters.pending) {
        (Some(cluster), None) if !needs_cluster(context, state, clusters) => {
            reconcile_serve(context, pass, memory, state, cluster)?
        }
        (Some(cluster), Some(_)) if context.is_incremental() => {
            reconcile_serve(context, pass, memory, state, cluster)?
        }
        _ => Applications::default(),
    };
    Ok(BothApplications { active, pending })
}

/// The objects of an incremental upgrade.
fn route<'a>(
    context: &ServiceContext<'a>,
    pass: &mut Pass<'a>,
    state: &ServiceState,
    clusters: &ServiceClusters<'a>,
    BothApplications { active, pending }: &BothApplications,
) -> Result<Option<TrafficSplit>, Unfinished> {
    for cluster in [clusters.active, clusters.pending].into_iter().flatten() {
        reconcile_cluster_service(context, pass, cluster)?;
    }
    reconcile_gateway(context, pass)?;
    let takes_traffic = if state.is_rolling_back() { active.all_run } else { pending.all_run };
    reconcile_route(context, pass, state, takes_traffic)
}

/// Lets the Services select the cluster that serves. Returns its name.
fn select<'a>(
    context: &ServiceContext<'a>,
    pass: &mut Pass<'a>,
    state: &ServiceState,
    clusters: &ServiceClusters<'a>,
    BothApplications { active, pending }: &BothApplications,
) -> Result<Option<String>, Unfinished> {
    if !active.all_run && !pending.all_run {
        return Ok(None);
    }
    // An incremental upgrade moves traffic by the route, and the Services follow its end.
    let upgrades = context.is_incremental() && state.is_true(UPGRADE_IN_PROGRESS);
    let target = if pending.all_run && !upgrades { clusters.pending } else { clusters.active };
    let Some(target) = target else { return Ok(None) };
    reconcile_services(context, pass, target)?;
    Ok(Some(name(target).to_owned()))
}

fn refuse(
    context: &ServiceContext<'_>,
    state: &mut ServiceState,
    invalid: &InvalidService,
    pass: &mut Pass<'_>,
) {
    let before = state.clone();
    let message = &invalid.message;
    let wanted =
        ServiceCondition { kind: READY, status: "False", reason: VALIDATION_FAILED, message };
    state.set(&wanted, context.now());
    // Once per message: a pass may follow for the removal of a cluster.
    if state.differs(&before) {
        pass.warning(invalid.reason, format!("{}: {message}", context.path(context.name())));
    }
}

/// Removes the clusters at once, and lets the RayService go after them.
fn finalize(context: &ServiceContext<'_>, pass: &mut Pass<'_>) {
    if !OF_SERVICE.is_on(context.service) {
        return;
    }
    let mut has_clusters = false;
    for cluster in context.clusters() {
        has_clusters = true;
        remove(&context.path(name(cluster)), "", pass, cluster);
    }
    if has_clusters {
        pass.requeue(POLL);
        return;
    }
    OF_SERVICE.remove(context.service, pass);
}
