//! The phases of an AppWrapper.
//!
//! ```text
//! "" --> Suspended --> Resuming --> Running --> Succeeded
//!            ^            |  ^         |
//!            |            |  +---- Resetting <-- unhealthy, retries left
//!            +-- Suspending <-- spec.suspend      +--> Failed, otherwise
//! ```
//! Source: docs/reference/appwrapper.md §2.

use std::time::Duration;

use crds::{decode::from_value, go_duration};
use serde_json::{Value, json};

use crate::{
    creation::{create_components, initialize},
    deletion::delete_components,
    health::{PodCounts, count_components, count_pods},
    json::{annotation, is_terminating, items},
    names::{self, ANNOTATION_PREFIX},
    phase::WrapperPhase,
    settings::WrapperSettings,
    state::{WrapperFacts, WrapperState},
    step::{WrapperAnswer, WrapperPass, WrapperStep},
    v1beta2::{AppWrapperSpec, AppWrapperStatus},
};

/// When pods that are ready are looked at again.
const HEALTH_CHECK: Duration = Duration::from_secs(60);

/// When pods that are not ready are looked at again.
const WARMUP_CHECK: Duration = Duration::from_secs(5);

/// When a refused creation is tried again.
const CREATION_RETRY: Duration = Duration::from_secs(1);

const RESUMED: &str = "Suspend is false";

/// The message after a reset.
const RESET: &str = "Reset complete; resuming";

/// What an AppWrapper needs next.
///
/// `children` are the pods with its label, and the objects with the kinds and names of its components, also those of others. The caller
/// takes the steps in order up to the first that is refused, and calls again with the same objects and facts and with all answers of this
/// pass, until no step is an order. Steps that are no orders come in the last call of a pass only.
#[must_use]
pub fn decide(
    wrapper: &Value,
    children: &[&Value],
    answers: &[WrapperAnswer],
    facts: &WrapperFacts,
    settings: &WrapperSettings,
) -> Vec<WrapperStep> {
    let mut pass = WrapperPass::new(answers);
    let spec = match from_value::<AppWrapperSpec>(&wrapper["spec"]) {
        Ok(spec) => spec,
        Err(error) => {
            let message = format!("InvalidSpec: {error}");
            pass.note(WrapperStep::Event { reason: names::UNHEALTHY, message });
            return pass.finish();
        }
    };
    // Another controller runs the AppWrapper; under MultiKueue that is one of a worker cluster.
    if spec.managed_by.as_deref().is_some_and(|by| by != names::BUILT_IN_CONTROLLER) {
        return Vec::new();
    }
    let status = from_value::<AppWrapperStatus>(&wrapper["status"]);
    let status = status.unwrap_or_default();
    let mut state = WrapperState { wrapper, spec: &spec, children, facts, settings, status };
    if is_terminating(wrapper) {
        terminate(&mut state, &mut pass);
    } else {
        advance(&mut state, &mut pass);
    }
    if pass.is_pending() {
        return pass.finish();
    }
    let status = serde_json::to_value(&state.status).unwrap_or_default();
    if status != wrapper["status"] {
        pass.note(WrapperStep::ReplaceStatus(status));
    }
    pass.finish()
}

fn advance(state: &mut WrapperState<'_>, pass: &mut WrapperPass<'_>) {
    use WrapperPhase as Phase;
    let phase = WrapperPhase::parse(&state.status.phase);
    // Before the work of the phase: with a suspension Kueue takes back the quota.
    if state.spec.suspend && matches!(phase, Phase::Resuming | Phase::Running | Phase::Resetting) {
        let message = format!("Externally suspended while in the {} phase", phase.as_str());
        pass.note(WrapperStep::Event { reason: names::SUSPENDING, message });
        state.enter(&WrapperPhase::Suspending);
        return;
    }
    if has_late_component(state, &phase) {
        delete_components(state, pass);
        return;
    }
    match phase {
        Phase::New => {
            initialize(state);
            state.enter(&Phase::Suspended);
        }
        Phase::Suspended if !state.spec.suspend => resume(state, pass),
        Phase::Resuming => create(state, pass),
        Phase::Running => watch(state, pass),
        Phase::Suspending => suspend(state, pass),
        Phase::Resetting => reset(state, pass),
        Phase::Failed => clean_up_failure(state, pass),
        Phase::Succeeded => clean_up_success(state, pass),
        // A suspended AppWrapper waits for its user, and a phase of another version is left alone.
        Phase::Suspended | Phase::Terminating | Phase::Other(_) => {}
    }
}

/// Whether a component or a pod is there although the AppWrapper has none: the create of the component was carried out after the end of
/// the deletion. Its pods may stay when it goes, and need a forced deletion.
///
/// The official controller does not notice it, and its pods run without quota.
fn has_late_component(state: &WrapperState<'_>, phase: &WrapperPhase) -> bool {
    let has_none = match phase {
        WrapperPhase::Failed | WrapperPhase::Succeeded => true,
        WrapperPhase::Suspended => state.spec.suspend,
        _ => false,
    };
    has_none
        && !state.is_true(names::RESOURCES_DEPLOYED)
        && (state.pods().next().is_some()
            || (0..state.spec.components.len()).any(|index| state.object_of(index).is_some()))
}

fn finalizers(state: &WrapperState<'_>) -> Vec<Value> {
    items(&state.wrapper["metadata"]["finalizers"]).to_vec()
}

/// Replaces the list of finalizers, and returns whether that was done. It is written as a whole, so the write carries the version of the
/// list that was read.
fn write_finalizers(
    state: &WrapperState<'_>,
    pass: &mut WrapperPass<'_>,
    finalizers: &[Value],
) -> bool {
    let mut patch = json!({"metadata": {"finalizers": finalizers}});
    let version = &state.wrapper["metadata"]["resourceVersion"];
    if !version.is_null() {
        patch["metadata"]["resourceVersion"] = version.clone();
    }
    match pass.order(WrapperStep::Patch(patch)) {
        Some(WrapperAnswer::Done(_)) => true,
        Some(WrapperAnswer::Refused { .. }) => {
            pass.note(WrapperStep::RequeueAfter(CREATION_RETRY));
            false
        }
        None => false,
    }
}

/// The finalizer is there before the first object.
fn resume(state: &mut WrapperState<'_>, pass: &mut WrapperPass<'_>) {
    let mut finalizers = finalizers(state);
    if !finalizers.iter().any(|name| name == names::FINALIZER) {
        finalizers.push(json!(names::FINALIZER));
        if !write_finalizers(state, pass, &finalizers) {
            return;
        }
    }
    // Kueue counts a job as active, and keeps its quota, while this condition is true.
    state.set(names::QUOTA_RESERVED, true, names::RESUMING, RESUMED);
    // True before the first object: from now on a suspension deletes, and periods begin.
    state.set(names::RESOURCES_DEPLOYED, true, names::RESUMING, RESUMED);
    state.set(names::PODS_READY, false, names::RESUMING, RESUMED);
    state.set(names::UNHEALTHY, false, names::RESUMING, RESUMED);
    state.enter(&WrapperPhase::Resuming);
}

fn create(state: &mut WrapperState<'_>, pass: &mut WrapperPass<'_>) {
    let Err(error) = create_components(state, pass) else {
        state.enter(&WrapperPhase::Running);
        return;
    };
    let grace = state.period("admissionGracePeriodDuration", state.limits().admission_grace);
    if !error.is_final && state.remaining(names::RESOURCES_DEPLOYED, grace).is_some() {
        pass.note(WrapperStep::RequeueAfter(CREATION_RETRY));
        return;
    }
    let message = format!("error creating components: {}", error.message);
    report(state, pass, "CreateFailed", &message);
    // Without a look at the retry limit: the next attempt would fail in the same way.
    if error.is_final {
        state.enter(&WrapperPhase::Failed);
    } else {
        reset_or_fail(state, false, 1);
    }
}

/// Records that something is wrong.
fn report(state: &mut WrapperState<'_>, pass: &mut WrapperPass<'_>, reason: &str, message: &str) {
    report_as(state, pass, (reason, message), format!("{reason}: {message}"));
}

/// Records that something is wrong, with an event of its own words.
fn report_as(
    state: &mut WrapperState<'_>,
    pass: &mut WrapperPass<'_>,
    (reason, message): (&str, &str),
    event: String,
) {
    let is_new = !state.status.conditions.iter().any(|condition| {
        condition.r#type == names::UNHEALTHY
            && condition.status == "True"
            && condition.reason == reason
    });
    state.set(names::UNHEALTHY, true, reason, message);
    if is_new {
        pass.note(WrapperStep::Event { reason: names::UNHEALTHY, message: event });
    }
}

fn reset_or_fail(state: &mut WrapperState<'_>, is_final: bool, retries: i32) {
    let limit = annotation(state.wrapper, &format!("{ANNOTATION_PREFIX}retryLimit"));
    let limit = limit.parse().unwrap_or(state.limits().retry_limit);
    let again = !is_final && state.status.resetting_count < limit;
    if again {
        state.status.resetting_count = state.status.resetting_count.saturating_add(retries);
    }
    state.enter(if again { &WrapperPhase::Resetting } else { &WrapperPhase::Failed });
}

fn watch(state: &mut WrapperState<'_>, pass: &mut WrapperPass<'_>) {
    let (components, pods) = (count_components(state), count_pods(state));
    let expected = state.spec.components.len();
    // The order of the official controller: a missing object outweighs the state of pods.
    if components.deployed != expected {
        let message = format!(
            "Only found {} deployed components, but was expecting {expected}",
            components.deployed
        );
        report(state, pass, "MissingComponent", &message);
        state.enter(&WrapperPhase::Failed);
        return;
    }
    if components.failed > 0 {
        let message = format!("Found {} failed components", components.failed);
        report(state, pass, "FailedComponent", &message);
        reset_or_fail(state, pods.is_final, 1);
        return;
    }
    if pods.succeeded >= pods.expected && pods.pending + pods.running + pods.failed == 0 {
        let message =
            format!("{} pods succeeded and no running, pending, or failed pods", pods.succeeded);
        // The objects stay for their time to live and use no quota.
        state.set(names::QUOTA_RESERVED, false, names::SUCCEEDED, &message);
        state.set(names::RESOURCES_DEPLOYED, true, names::SUCCEEDED, &message);
        state.enter(&WrapperPhase::Succeeded);
        return;
    }
    watch_pods(state, pass, &pods);
}

fn watch_pods(state: &mut WrapperState<'_>, pass: &mut WrapperPass<'_>, pods: &PodCounts) {
    if pods.failed > 0 {
        const REASON: &str = "FoundFailedPods";
        state.set(names::UNHEALTHY, true, REASON, "");
        // The owner of the pods may replace one that failed within this time.
        let grace = state.period("failureGracePeriodDuration", state.limits().failure_grace);
        match state.remaining(names::UNHEALTHY, grace) {
            Some(left) => pass.note(WrapperStep::RequeueAfter(left)),
            None => {
                let message = format!("{REASON}: {} failed pods", pods.failed);
                pass.note(WrapperStep::Event { reason: names::UNHEALTHY, message });
                reset_or_fail(state, pods.is_final, 1);
            }
        }
        return;
    }
    if !pods.evicting.is_empty() {
        // The list as Go prints a set.
        let nodes: Vec<String> = pods.evicting.iter().map(|node| format!("{node}:{{}}")).collect();
        let message = format!(
            "Workload contains pods using NoExecute resources on Nodes: map[{}]",
            nodes.join(" ")
        );
        report_as(state, pass, ("AutopilotNoExecute", &message), message.clone());
        // The pods are not to blame, so no retry is used.
        reset_or_fail(state, false, 0);
        return;
    }
    state.clear(names::UNHEALTHY, "FoundNoFailedPods", "");
    if pods.running + pods.succeeded >= pods.expected {
        let message = format!("{} pods running; {} pods succeeded", pods.running, pods.succeeded);
        state.set(names::PODS_READY, true, "SufficientPodsReady", &message);
        pass.note(WrapperStep::RequeueAfter(HEALTH_CHECK));
        return;
    }
    wait_for_pods(state, pass, pods);
}

/// Waits for pods to exist and to be ready. Both periods begin with the creation of the components.
fn wait_for_pods(state: &mut WrapperState<'_>, pass: &mut WrapperPass<'_>, pods: &PodCounts) {
    const REASON: &str = "InsufficientPodsReady";
    let message = format!(
        "{} pods pending; {} pods running; {} pods succeeded",
        pods.pending, pods.running, pods.succeeded
    );
    state.clear(names::PODS_READY, REASON, &message);
    let limits = state.limits();
    let all_exist = pods.pending + pods.running + pods.succeeded >= pods.expected;
    let grace = if all_exist {
        state.period("warmupGracePeriodDuration", limits.warmup_grace)
    } else {
        state.period("admissionGracePeriodDuration", limits.admission_grace)
    };
    if state.remaining(names::RESOURCES_DEPLOYED, grace).is_some() {
        pass.note(WrapperStep::RequeueAfter(WARMUP_CHECK));
        return;
    }
    report(state, pass, REASON, &message);
    reset_or_fail(state, false, 1);
}

fn suspend(state: &mut WrapperState<'_>, pass: &mut WrapperPass<'_>) {
    const MESSAGE: &str = "Suspend is true";
    if state.is_true(names::RESOURCES_DEPLOYED) {
        if !delete_components(state, pass) {
            return;
        }
        state.set(names::RESOURCES_DEPLOYED, false, names::SUSPENDED, MESSAGE);
    }
    // After the deletion, because Kueue then gives the quota to other work.
    state.set(names::QUOTA_RESERVED, false, names::SUSPENDED, MESSAGE);
    state.clear(names::PODS_READY, names::SUSPENDED, "");
    state.clear(names::UNHEALTHY, names::SUSPENDED, "");
    state.enter(&WrapperPhase::Suspended);
}

fn reset(state: &mut WrapperState<'_>, pass: &mut WrapperPass<'_>) {
    state.clear(names::PODS_READY, names::RESETTING, "");
    if state.is_true(names::RESOURCES_DEPLOYED) {
        if !delete_components(state, pass) {
            return;
        }
        let message = "Resources deleted for resetting AppWrapper";
        state.set(names::RESOURCES_DEPLOYED, false, names::RESETTING, message);
    }
    let pause = state.period("retryPausePeriodDuration", state.limits().reset_pause);
    // Counted from the failure and not from the end of the deletion.
    if let Some(left) = state.remaining(names::UNHEALTHY, pause) {
        pass.note(WrapperStep::RequeueAfter(left));
        return;
    }
    state.set(names::RESOURCES_DEPLOYED, true, names::RESUMING, RESET);
    state.enter(&WrapperPhase::Resuming);
}

/// Removes the objects of a failed AppWrapper, at once or after the time that it asks for. A removal that began goes on.
fn clean_up_failure(state: &mut WrapperState<'_>, pass: &mut WrapperPass<'_>) {
    const PERIOD: &str = "deletionOnFailureGracePeriodDuration";
    if state.is_true(names::RESOURCES_DEPLOYED) {
        let period = state.period(PERIOD, Duration::ZERO);
        let is_deleting = state.is_true(names::DELETING_RESOURCES);
        // A suspension by Kueue ends the wait, because the quota is needed.
        if !state.spec.suspend && !period.is_zero() && !is_deleting {
            // An older deletion must not count for the period.
            let is_paused = state.status.conditions.iter().any(|condition| {
                condition.r#type == names::DELETING_RESOURCES
                    && condition.reason == "DeletionPaused"
            });
            if !is_paused {
                state.status.conditions.retain(|it| it.r#type != names::DELETING_RESOURCES);
            }
            let value = go_duration::format(period);
            let message = format!("{ANNOTATION_PREFIX}{PERIOD} has value {value}");
            state.set(names::DELETING_RESOURCES, false, "DeletionPaused", &message);
            if let Some(left) = state.remaining(names::DELETING_RESOURCES, period) {
                pass.note(WrapperStep::RequeueAfter(left));
                return;
            }
        }
        if !delete_components(state, pass) {
            return;
        }
        let message = if state.spec.suspend && !period.is_zero() {
            "Kueue forced resource deletion by suspending AppWrapper"
        } else {
            "Resources deleted for failed AppWrapper"
        };
        state.set(names::RESOURCES_DEPLOYED, false, names::FAILED, message);
    }
    // The pods of a failed AppWrapper use quota until they are gone.
    state.set(names::QUOTA_RESERVED, false, names::FAILED, "No resources deployed");
}

fn clean_up_success(state: &mut WrapperState<'_>, pass: &mut WrapperPass<'_>) {
    if !state.is_true(names::RESOURCES_DEPLOYED) {
        return;
    }
    let ceiling = state.limits().success_ttl;
    let text = annotation(state.wrapper, &format!("{ANNOTATION_PREFIX}successTTLDuration"));
    // The annotation can only shorten the time of the administrator, and not to nothing.
    let period = go_duration::parse(text).filter(|period| !period.is_zero());
    let period = period.map_or(ceiling, |period| period.min(ceiling));
    // The condition became false at the success, so its age is the time since then.
    if let Some(left) = state.remaining(names::QUOTA_RESERVED, period) {
        pass.note(WrapperStep::RequeueAfter(left));
        return;
    }
    if delete_components(state, pass) {
        let period = go_duration::format(period);
        let message = format!("Time to live after success of {period} expired");
        state.set(names::RESOURCES_DEPLOYED, false, names::SUCCEEDED, &message);
    }
}

/// Removes the objects of a deleted AppWrapper, then the finalizer.
fn terminate(state: &mut WrapperState<'_>, pass: &mut WrapperPass<'_>) {
    let others: Vec<Value> =
        finalizers(state).into_iter().filter(|name| name != names::FINALIZER).collect();
    // The finalizer precedes the first object, so without it there is nothing to delete.
    if others.len() == finalizers(state).len() {
        return;
    }
    state.enter(&WrapperPhase::Terminating);
    if state.is_true(names::RESOURCES_DEPLOYED) {
        if !delete_components(state, pass) {
            return;
        }
        state.set(names::RESOURCES_DEPLOYED, false, names::TERMINATING, "");
    }
    state.clear(names::QUOTA_RESERVED, names::TERMINATING, "");
    write_finalizers(state, pass, &others);
}
