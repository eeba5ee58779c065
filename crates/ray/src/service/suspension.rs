//! Removal of everything that a RayService has, and its return.
//!
//! A suspension that began ends: everything is removed before the RayService may return.
//!
//! Source: docs/reference/ray.md §9.

use serde_json::Value;

use super::{
    clusters::remove,
    conditions::{
        READY, ROLLBACK_IN_PROGRESS, SUSPENDED, SUSPENDING, ServiceCondition, UPGRADE_IN_PROGRESS,
    },
    context::{ServiceContext, Unfinished},
    state::ServiceState,
};
use crate::{
    json::{is_terminating, name, text},
    pass::{OrderOutcome, Pass},
};

const REQUESTED: &str = "SuspendRequested";
const IN_PROGRESS: &str = "SuspendInProgress";
const COMPLETE: &str = "SuspendComplete";
const RESUMED: &str = "RayServiceResumed";

/// What the suspension needs of a RayService.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SuspensionStep {
    /// It is not suspended.
    None,
    /// Everything is to be removed from now on.
    Begin,
    /// Objects may be left.
    Remove,
    /// Nothing is left, and it stays so.
    Rest,
    /// It returns.
    Resume,
}

fn step(state: &ServiceState, is_wanted: bool) -> SuspensionStep {
    match (state.is_true(SUSPENDING), state.is_true(SUSPENDED), is_wanted) {
        (true, _, _) => SuspensionStep::Remove,
        (false, true, true) => SuspensionStep::Rest,
        (false, true, false) => SuspensionStep::Resume,
        (false, false, true) => SuspensionStep::Begin,
        (false, false, false) => SuspensionStep::None,
    }
}

/// Takes one step of the suspension. Returns whether the pass ends with it.
pub(super) fn suspend(
    context: &ServiceContext<'_>,
    pass: &mut Pass<'_>,
    state: &mut ServiceState,
) -> Result<bool, Unfinished> {
    match step(state, context.spec.suspend) {
        SuspensionStep::None => return Ok(false),
        // A cluster that a late create made would run without quota.
        SuspensionStep::Rest => {
            remove_all(context, pass)?;
        }
        SuspensionStep::Begin => begin(context, state),
        SuspensionStep::Remove => {
            let is_empty = remove_all(context, pass)?;
            note_removal(context, state, is_empty);
        }
        SuspensionStep::Resume => {
            state.observed_generation = context.generation();
            let message = "Spec.Suspend is false; RayService has resumed.";
            set(context, state, (SUSPENDED, "False"), RESUMED, message);
            state.initialize_conditions(context.now());
        }
    }
    Ok(true)
}

/// Whether a suspended RayService waits for the user.
pub(super) fn rests(state: &ServiceState, is_wanted: bool) -> bool {
    step(state, is_wanted) == SuspensionStep::Rest
}

fn begin(context: &ServiceContext<'_>, state: &mut ServiceState) {
    state.observed_generation = context.generation();
    let message = "RayService is being suspended.";
    set(context, state, (SUSPENDING, "True"), REQUESTED, message);
    for kind in [READY, UPGRADE_IN_PROGRESS, ROLLBACK_IN_PROGRESS] {
        set(context, state, (kind, "False"), IN_PROGRESS, message);
    }
    state.reset();
}

fn note_removal(context: &ServiceContext<'_>, state: &mut ServiceState, is_empty: bool) {
    if !is_empty {
        let message = "Owned resources are being deleted.";
        set(context, state, (SUSPENDING, "True"), IN_PROGRESS, message);
        return;
    }
    state.observed_generation = context.generation();
    let deleted = "All owned resources have been deleted.";
    for (condition, message) in [
        ((SUSPENDING, "False"), deleted),
        ((READY, "False"), "RayService is suspended."),
        ((UPGRADE_IN_PROGRESS, "False"), "No upgrade in progress."),
        ((ROLLBACK_IN_PROGRESS, "False"), "No rollback in progress."),
        ((SUSPENDED, "True"), deleted),
    ] {
        set(context, state, condition, COMPLETE, message);
    }
}

fn set(
    context: &ServiceContext<'_>,
    state: &mut ServiceState,
    (kind, status): (&'static str, &'static str),
    reason: &'static str,
    message: &str,
) {
    state.set(&ServiceCondition { kind, status, reason, message }, context.now());
}

/// Deletes what the RayService made. Returns whether nothing was left.
fn remove_all(context: &ServiceContext<'_>, pass: &mut Pass<'_>) -> Result<bool, Unfinished> {
    let mut is_empty = true;
    for object in context.children.iter().copied().filter(|object| context.owns(object)) {
        is_empty = false;
        if object["kind"] == "RayCluster" {
            remove(&context.path(name(object)), " during suspend", pass, object);
        } else {
            remove_other(context, pass, object);
        }
    }
    if pass.is_pending() { Err(Unfinished::Waiting) } else { Ok(is_empty) }
}

fn remove_other(context: &ServiceContext<'_>, pass: &mut Pass<'_>, object: &Value) {
    let kind = text(&object["kind"]);
    let (reason, failure) = match kind {
        "Service" => ("DeletedService", "FailedToDeleteService"),
        "Gateway" => ("DeletedGateway", "FailedToDeleteGateway"),
        "HTTPRoute" => ("DeletedHTTPRoute", "FailedToDeleteHTTPRoute"),
        _ => return,
    };
    if is_terminating(object) {
        return;
    }
    let path = context.path(name(object));
    match pass.delete(object) {
        OrderOutcome::Done(_) => {
            pass.normal(reason, format!("Deleted the {kind} {path} during suspend"));
        }
        OrderOutcome::Refused(refusal) => {
            let why = &refusal.message;
            let message = format!("Failed to delete the {kind} {path} during suspend: {why}");
            pass.warning(failure, message);
        }
        OrderOutcome::Pending => {}
    }
}
