//! The order of the steps for a RayCluster.
//!
//! Source: docs/reference/ray.md §3.

use std::{borrow::Cow, time::Duration};

use crds::decode::from_value;
use serde_json::Value;

use super::{
    access::{reconcile_access, reconcile_token},
    cluster_children::ClusterChildren,
    context::{ClusterContext, PassInputs},
    failure::Failure,
    gcs_storage::reconcile_claim,
    groups::reconcile_pods,
    ingress::reconcile_ingress,
    network_policy::reconcile_policies,
    redis_cleanup,
    services::reconcile_services,
    status::next_status,
    suspension::reconcile_suspension,
    validate::{self, InvalidCluster},
};
use crate::{
    json::{is_run_elsewhere, is_terminating, name, text},
    pass::{Pass, SOON},
    security::{PreparedCluster, prepare, reconcile_security},
    settings::OperatorSettings,
    step::{RayAnswer, RayStep},
    v1::RayClusterSpec,
};

/// When a cluster is looked at again without a change.
const RESYNC: Duration = Duration::from_secs(300);

/// What a RayCluster needs next.
///
/// `children` are the objects of its namespace that it may own or meet: pods with its label, and Services, Secrets, ServiceAccounts,
/// Roles, RoleBindings, Ingresses, NetworkPolicies, PersistentVolumeClaims and Jobs by name or label. The caller takes the steps in
/// order up to the first that is refused, and calls again with the same objects and moment and with all answers of this pass, until no
/// step is an order. Steps that are no orders come in the last call of a pass only.
#[must_use]
pub fn decide(
    cluster: &Value,
    children: &[&Value],
    answers: &[RayAnswer],
    inputs: &PassInputs,
    settings: &OperatorSettings,
) -> Vec<RayStep> {
    let mut pass = Pass::new(answers);
    let Some(spec) = run_spec(cluster, &mut pass) else { return pass.finish() };
    let prepared = match &settings.security {
        Some(security) => prepare(cluster, children, security, &mut pass),
        None => Some(PreparedCluster::unchanged(cluster)),
    };
    let Some(PreparedCluster { cluster, prepared }) = prepared else { return pass.finish() };
    // The answer to the write is the cluster with all that was added.
    let spec = match &cluster {
        Cow::Borrowed(_) => Some(spec),
        Cow::Owned(changed) => run_spec(changed, &mut pass),
    };
    let Some(spec) = spec else { return pass.finish() };
    let sorted = ClusterChildren::of(&cluster, children);
    let context =
        ClusterContext { cluster: &cluster, spec: &spec, children: &sorted, settings, inputs };
    // Before the validation, so that a cluster that became invalid can still be deleted.
    if is_terminating(&cluster) {
        redis_cleanup::finalize(&context, &mut pass);
        return pass.finish();
    }
    let Some(protected) = protect(&context, children, prepared, &mut pass) else {
        return pass.finish();
    };
    let mut created = Vec::new();
    let result = match protected {
        Ok(()) => reconcile(&context, &mut pass, &mut created),
        // Nothing is made then, but the quota of a cluster that is suspended must come back.
        Err(failure) => reconcile_suspension(&context, &mut pass).and(Err(failure)),
    };
    if !pass.is_pending() {
        created.extend(answers.iter().filter_map(created_service));
        conclude(&context, &mut pass, &created, result.err().as_ref());
    }
    pass.finish()
}

/// The spec of a cluster that is run here.
pub(super) fn run_spec(cluster: &Value, pass: &mut Pass<'_>) -> Option<RayClusterSpec> {
    let spec = match from_value::<RayClusterSpec>(&cluster["spec"]) {
        Ok(spec) => spec,
        Err(error) => {
            let namespace = text(&cluster["metadata"]["namespace"]);
            let path = format!("{namespace}/{}", name(cluster));
            let message = format!("The RayCluster spec is invalid {path}: {error}");
            pass.warning("InvalidRayClusterSpec", message);
            return None;
        }
    };
    (!is_run_elsewhere(cluster)).then_some(spec)
}

/// What comes before the first pod. The error is about something without which none must be made. `None` if the pass ends here.
fn protect(
    context: &ClusterContext<'_>,
    children: &[&Value],
    prepared: Result<(), String>,
    pass: &mut Pass<'_>,
) -> Option<Result<(), Failure>> {
    // Both protect pods of a spec that became invalid, too. Names of the first follow from what a preparation adds.
    let secured = prepared.map_err(Failure::plain).and_then(|()| secure(context, children, pass));
    // Pods do not wait for policies: the official operator has another controller for these.
    if reconcile_policies(context, pass).is_err() {
        pass.requeue(SOON);
    }
    if let Err(InvalidCluster { reason, message }) = validate::check(context) {
        // Without a requeue: only a change of the cluster makes it valid.
        pass.warning(reason, message);
        return None;
    }
    // So that no key is in Redis without the finalizer.
    let stored = redis_cleanup::add_finalizer(context, pass)?;
    Some(secured.and(stored))
}

/// Completes the status. A pass that stopped early has one as well, which shows what was reached.
fn conclude(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'_>,
    created: &[&Value],
    failure: Option<&Failure>,
) {
    let status = next_status(context, created, failure);
    let changed = status.is_some();
    if let Some(status) = status {
        pass.status(status);
    }
    // An error is repeated without a backoff, as in the official operator.
    pass.requeue(if changed || failure.is_some() { SOON } else { RESYNC });
}

/// NetworkPolicies and other objects that secure the cluster.
fn secure(
    context: &ClusterContext<'_>,
    children: &[&Value],
    pass: &mut Pass<'_>,
) -> Result<(), Failure> {
    let Some(security) = &context.settings.security else { return Ok(()) };
    let settings = (security, context.inputs.seed.as_slice());
    reconcile_security(context.cluster, children, settings, pass).map_err(Failure::plain)
}

fn created_service(answer: &RayAnswer) -> Option<&Value> {
    match answer {
        RayAnswer::Done(object) if object["kind"] == "Service" => Some(object),
        RayAnswer::Done(_) | RayAnswer::Refused(_) | RayAnswer::Head(_) => None,
    }
}

fn reconcile<'a>(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'a>,
    created: &mut Vec<&'a Value>,
) -> Result<(), Failure> {
    // The order of the official operator; the first error ends the pass.
    reconcile_access(context, pass)?;
    reconcile_ingress(context, pass)?;
    reconcile_token(context, pass)?;
    reconcile_services(context, pass)?;
    reconcile_claim(context, pass)?;
    if reconcile_suspension(context, pass)? {
        reconcile_pods(context, pass, created)?;
    }
    Ok(())
}
