//! A group of pods with one Workload (docs/reference/kueue.md §7.9).
//!
//! The unit of work is the group: members are counted by role, and the Workload, which all of them own, has a pod set for each
//! role. [`reconcile`] is level-triggered like [`crate::reconcile`]: called after every change of a member or of the Workload, it
//! returns the next steps, each of which names its object.
//!
//! | file | concept |
//! |---|---|
//! | `members` | which members count, which are too many, which are replaced |
//! | `composition` | the Workload of a complete group |
//! | `role_requests` | members that request more than their role has quota for |
//! | `status` | end, activity, readiness and reclaimable pods of the group |

mod composition;
mod members;
mod role_requests;
mod status;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashSet};

use crds::{
    meta::{find, find_true, is_deleting},
    names::{
        annotations::IS_GROUP_WORKLOAD,
        conditions::{EVICTED, WAITING_FOR_REPLACEMENT_PODS},
        reasons,
    },
    v1beta2::{Workload, WorkloadSpec},
};
use jiff::Timestamp;

pub(crate) use self::composition::owner_references;
pub use self::{
    composition::{ComposeError, Composition, compose, group_workload, priority_source},
    role_requests::{RoleComparison, RoleQuota},
};

use self::members::Members;
use crate::{
    GenericJob, JobGates,
    construct_workload::{KeysToCopy, max_exec_time},
    integrations::controller,
    pods::{Pod, kind},
    prebuilt::prebuilt_name,
    reconcile::{
        JobStep, ReconcileStep, StopCause, StopReason, WorkloadStep, clamped_reclaimable_pods,
        finish, follow_keys, is_dispatched, may_end, out_of_sync, remove_finalizer, stop_of,
    },
    start::admitted_infos::{self, AssignedFlavors},
    start::pod_set_info::PodSetInfo,
};

/// A group and what decides about it.
#[derive(Clone, Copy)]
pub struct GroupContext<'a> {
    /// Name of the group, and of its Workload.
    pub group: &'a str,
    /// All members.
    pub pods: &'a [&'a Pod],
    /// The Workload of this name.
    pub workload: Option<&'a Workload>,
    /// Keys that members give to their Workload.
    pub copied: &'a KeysToCopy,
    /// All flavors.
    pub flavors: AssignedFlavors<'a>,
    /// Feature gates.
    pub gates: JobGates,
    /// The time.
    pub now: Timestamp,
    /// Whether a member may be written now. Steps about the others follow once they may.
    pub is_free: &'a dyn Fn(&Pod) -> bool,
    /// How members are compared with their roles.
    pub comparison: RoleComparison<'a>,
}

type Steps = Vec<ReconcileStep<Pod>>;

/// Members that one evaluation writes at most. A group has thousands, and nothing else is decided while their writes are made; the
/// answers bring the next evaluation, long before the API server has taken this number.
const MAX_WRITES: usize = 64;

/// Returns the next steps of a group.
#[must_use]
pub fn reconcile(context: GroupContext<'_>) -> Steps {
    // Pods of an earlier Kueue have a finalizer, for which a StatefulSet would wait for ever. The rest follows after the answers.
    let give_way = context.pods.iter().copied().filter(|pod| pod.gives_way_to_its_parent());
    let released = finalize(&give_way.collect::<Vec<_>>(), context);
    if !released.is_empty() {
        return released;
    }
    let Some(workload) = context.workload else {
        return without_workload(context);
    };
    if !context.owns(workload) {
        return name_conflict(context);
    }
    if context.pods.is_empty() {
        return without_pods(workload).into_iter().collect();
    }
    // Before the deletion: a finished Workload stops none of its members when it is deleted.
    if workload.is_finished() {
        return release_members(workload, context);
    }
    if is_deleting(&workload.metadata) {
        return delete_members(workload, context);
    }
    let is_held = |pod: &Pod| context.is_held(pod, workload);
    let members = members::assign(context.pods, &workload.spec.pod_sets, &is_held);
    let limit = workload.spec.maximum_execution_time_seconds;
    // The Workload of a serving group follows its owner, which has the time limit. A prebuilt one has its own, as upstream.
    let has_own_limit = || status::is_serving(context.pods) || context.is_prebuilt();
    let fits_none = members.kept.is_empty() && members.replaced.is_empty();
    if fits_none || (limit != context.max_exec_time() && !has_own_limit()) {
        return replace_workload(workload, context);
    }
    recompose(workload, &members, context)
        .unwrap_or_else(|| with_workload(workload, &members, context))
}

/// Whether a Workload is that of a group by its mark.
#[must_use]
pub fn is_group_workload(workload: &Workload) -> bool {
    let annotations = workload.metadata.annotations.as_ref();
    annotations.is_some_and(|all| all.contains_key(IS_GROUP_WORKLOAD))
}

/// The oldest member, which stands for the group.
#[must_use]
pub fn oldest<'a>(pods: &[&'a Pod]) -> Option<&'a Pod> {
    pods.iter().copied().min_by_key(|pod| members::age(pod))
}

/// Whether the pods of a group are ready; `None` for a finished group. A pod of a role that the Workload does not have waits beside
/// the group.
#[must_use]
pub fn pods_ready(pods: &[&Pod], workload: &Workload) -> Option<bool> {
    if status::finished(pods, &|_| false).is_some() {
        return None;
    }
    let has_role = |pod: &&Pod| workload.spec.pod_sets.iter().any(|set| set.name == pod.role());
    let members: Vec<&Pod> = pods.iter().copied().filter(has_role).collect();
    Some(status::pods_ready(&members))
}

/// Until when running pods hold the quota of an evicted group; see [`status::active_until`].
#[must_use]
pub fn active_until(pods: &[&Pod], now: Timestamp, gates: JobGates) -> Option<Timestamp> {
    status::active_until(pods, now, gates)
}

/// Whether the members of a deactivated group may be deleted: the group is not over, and none of it runs. The owner of a serving
/// group, and the controller of a pod, would make the pods again.
#[must_use]
pub fn may_expire(pods: &[&Pod], now: Timestamp, gates: JobGates) -> bool {
    let runs = pods.iter().any(|pod| pod.runs());
    let idle = !runs && active_until(pods, now, gates).is_none();
    let is_controlled = |pod: &&Pod| controller(&pod.metadata).is_some();
    let is_made_again = status::is_serving(pods) || pods.iter().any(is_controlled);
    idle && status::finished(pods, &|_| false).is_none() && !is_made_again
}

impl<'a> GroupContext<'a> {
    /// The group of all members.
    fn compose(&self) -> Result<Composition<'a>, ComposeError> {
        compose(self.group, self.pods, self.comparison, self.gates)
    }

    /// Whether members name a prebuilt Workload. The webhook refuses any other name than that of the group.
    fn is_prebuilt(&self) -> bool {
        self.pods.iter().any(|pod| prebuilt_name(*pod, self.gates).name == self.group)
    }

    /// Whether a Workload of the name of the group is the group's. Without the gate any Workload of that name is.
    fn owns(&self, workload: &Workload) -> bool {
        !self.gates.validate_group_owner || is_group_workload(workload) || self.is_prebuilt()
    }

    /// The time limit is that of the oldest member.
    fn max_exec_time(&self) -> Option<i32> {
        oldest(self.pods).and_then(max_exec_time)
    }

    fn is_active(&self) -> bool {
        status::active_until(self.pods, self.now, self.gates).is_some()
    }
}

fn without_workload(context: GroupContext<'_>) -> Steps {
    if status::finished(context.pods, &|_| false).is_some() {
        return finalize(context.pods, context);
    }
    let mut steps = stop_running(context.pods, None, StopReason::NoMatchingWorkload, context);
    // Without a Workload a deleted member has nothing to wait for.
    let deleted: Vec<&Pod> = context.pods.iter().copied().filter(|pod| pod.is_deleting()).collect();
    steps.extend(finalize(&deleted, context));
    // Members that run or leave still take the quota of the former Workload; the next one is composed without them.
    let settles =
        context.pods.iter().any(|pod| pod.runs()) || deleted.iter().any(|pod| pod.has_finalizer());
    if context.is_prebuilt() || context.is_active() || settles {
        return steps;
    }
    // No other member waits for those that will not run.
    let over = context.pods.iter().copied().filter(|pod| !pod.is_runnable_or_succeeded());
    steps.extend(finalize(&over.filter(|pod| !pod.is_deleting()).collect::<Vec<_>>(), context));
    let composed = context.compose();
    match composed.and_then(|one| one.agreeing_about(context.copied, context.group)) {
        // Quota for members on a node that does not answer, or that a finalizer keeps, would be used by none.
        Ok(composition) if only_leaves(&composition.members) => {}
        Ok(composition) => {
            steps.extend(remove_excess(&composition.excess, context));
            steps.push(ReconcileStep::CreateWorkload);
        }
        Err(error) => {
            let (reason, message) = (reasons::ERR_WORKLOAD_COMPOSE, error.to_string());
            steps.push(ReconcileStep::Refuse { reason, message });
        }
    }
    steps
}

/// Whether members are being deleted, and no other one has not ended.
fn only_leaves(members: &[&Pod]) -> bool {
    let may_run = |pod: &&Pod| !pod.is_deleting() && !pod.is_terminated();
    members.iter().any(|pod| pod.is_deleting()) && !members.iter().any(may_run)
}

/// The Workload of a set outlives its pods; any other one goes with the last of them.
fn without_pods(workload: &Workload) -> Option<ReconcileStep<Pod>> {
    if is_deleting(&workload.metadata) || !is_of_set(workload) {
        return remove_finalizer(workload);
    }
    let released = workload.is_evicted() && workload.has_quota_reservation();
    released.then(|| WorkloadStep::ReleaseQuota.of(workload))
}

/// Whether an object other than the pods owns the Workload of a group.
fn is_of_set(workload: &Workload) -> bool {
    let mut owners = workload.metadata.owner_references.iter().flatten();
    owners.any(|owner| owner.kind != kind().name())
}

fn name_conflict(context: GroupContext<'_>) -> Steps {
    if context.pods.is_empty() {
        return Vec::new();
    }
    let message = format!(
        "A Workload named {:?} already exists but is not a pod group workload; this pod group cannot be admitted",
        context.group
    );
    let refused = ReconcileStep::Refuse { reason: reasons::WORKLOAD_NAME_CONFLICT, message };
    // A member that runs all the same has no quota.
    let stops = stop_running(context.pods, None, StopReason::NoMatchingWorkload, context);
    std::iter::once(refused).chain(stops).collect()
}

/// A Workload that no member fits. It is composed again while it has no quota, and replaced otherwise.
fn replace_workload(workload: &Workload, context: GroupContext<'_>) -> Steps {
    let stops = stop_running(context.pods, Some(workload), StopReason::NoMatchingWorkload, context);
    // Quota is held until the last of them is gone.
    let pods_active = context.pods.iter().any(|pod| pod.runs()) || context.is_active();
    if context.is_prebuilt() {
        // The Workload is the group's before it is compared with its members.
        let owned = add_owners(workload, context.pods);
        let finished = may_end(workload, pods_active).then(|| out_of_sync(workload));
        return owned.into_iter().chain(finished).chain(stops).collect();
    }
    if pods_active {
        return stops;
    }
    if workload.has_quota_reservation() {
        return vec![WorkloadStep::Delete.of(workload)];
    }
    let Ok(composition) = context.compose() else {
        // Members may still come; the Workload keeps its place in the queue.
        return Vec::new();
    };
    vec![ReconcileStep::UpdateWorkload(Box::new(of_composition(workload, composition, context)))]
}

/// The Workload with the pod sets of other members.
fn of_composition(
    workload: &Workload,
    composition: Composition<'_>,
    context: GroupContext<'_>,
) -> Workload {
    let oldest = oldest(&composition.members);
    let spec = WorkloadSpec {
        queue_name: oldest.map(|pod| pod.queue_name().to_owned()).unwrap_or_default(),
        maximum_execution_time_seconds: context.max_exec_time(),
        pod_sets: composition.pod_sets,
        ..workload.spec.clone()
    };
    Workload { spec, ..workload.clone() }
}

/// Composes a waiting group again for members that request more than its Workload asks for; `None` if that would let none of them start.
fn recompose(
    workload: &Workload,
    members: &Members<'_>,
    context: GroupContext<'_>,
) -> Option<Steps> {
    let waits = !workload.has_quota_reservation()
        && !context.is_prebuilt()
        && !status::is_serving(context.pods)
        && !context.pods.iter().any(|pod| pod.runs())
        && !context.is_active();
    let holds_any =
        |workload: &Workload| members.kept.iter().any(|pod| context.is_held(pod, workload));
    if !waits || !holds_any(workload) {
        return None;
    }
    let after = of_composition(workload, context.compose().ok()?, context);
    (!holds_any(&after)).then(|| vec![ReconcileStep::UpdateWorkload(Box::new(after))])
}

/// The Workload is finished: no member is held any longer. One that came after the end is not needed.
fn release_members(workload: &Workload, context: GroupContext<'_>) -> Steps {
    let mut pods = context.pods.to_vec();
    pods.sort_by_key(|pod| (!pod.is_terminated(), members::age(pod)));
    let total = pods.iter().find_map(|pod| pod.group_total()).unwrap_or(i64::MAX);
    let n_needed = usize::try_from(total).unwrap_or(usize::MAX);
    let (late, others): (Vec<_>, Vec<_>) =
        pods.into_iter().enumerate().partition(|(index, pod)| *index >= n_needed && pod.is_gated());
    let [late, others] = [late, others].map(|all| all.into_iter().map(|(_, pod)| pod).collect());
    let (late, others): (Vec<&Pod>, Vec<&Pod>) = (late, others);
    // A member that comes after the end of a prebuilt Workload owns it as well.
    let owned = context.is_prebuilt().then(|| add_owners(workload, &others)).flatten();
    let mut steps: Steps = owned.into_iter().collect();
    steps.extend(finalize(&others, context));
    steps.extend(remove_excess(&late, context));
    steps.extend(remove_finalizer(workload));
    steps
}

/// The Workload is being deleted: its members go first, and with them the quota.
fn delete_members(workload: &Workload, context: GroupContext<'_>) -> Steps {
    let mut steps =
        stop_running(context.pods, Some(workload), StopReason::WorkloadDeleted, context);
    let deleted: Vec<&Pod> = context.pods.iter().copied().filter(|pod| pod.is_deleting()).collect();
    steps.extend(finalize(&deleted, context));
    if deleted.len() == context.pods.len() && !context.is_active() {
        steps.extend(remove_finalizer(workload));
    }
    steps
}

fn with_workload(workload: &Workload, members: &Members<'_>, context: GroupContext<'_>) -> Steps {
    let mut steps: Steps = add_owners(workload, &members.kept).into_iter().collect();
    let is_owned = steps.is_empty();
    steps.extend(remove_excess(&members.excess, context));
    // Garbage collection deletes a Workload whose owners are all gone: replacements own it before the members that they replace go.
    if is_owned {
        steps.extend(finalize(&members.replaced, context));
    }
    if let Some(outcome) = status::finished(context.pods, &|pod| context.is_held(pod, workload)) {
        steps.extend(finish(workload, &outcome));
        return steps;
    }
    steps.extend(followed(workload, context));
    let reclaimable =
        clamped_reclaimable_pods(status::reclaimable(context.pods), workload, context.gates);
    steps.extend(reclaimable.map(|pods| WorkloadStep::UpdateReclaimablePods(pods).of(workload)));
    let admitted = workload.is_admitted();
    if workload.is_evicted() {
        let stops =
            stop_running(&members.kept, Some(workload), StopReason::WorkloadEvicted, context);
        // Both count: a pod that has no node yet is not active, and one that is being deleted may be.
        let runs = members.kept.iter().any(|pod| pod.runs());
        let released = !runs && workload.has_quota_reservation() && !context.is_active();
        steps.extend(stops);
        steps.extend(released.then(|| WorkloadStep::ReleaseQuota.of(workload)));
    } else if admitted && is_dispatched(workload) {
        // The copies of the members run; the members show their status. One that requests too much gets no copy.
        steps.extend(role_requests::reports(workload, members, context));
    } else if admitted {
        steps.extend(start_gated(workload, members, context));
    } else {
        // Reserved quota alone lets no pod run, nor does a gate that another client removed.
        steps.extend(stop_running(&members.kept, Some(workload), StopReason::NotAdmitted, context));
        steps.extend(moved(workload, members, context));
    }
    steps
}

/// Admission gates and priority class of the oldest member. A prebuilt Workload has its own, and that of a set follows the set.
fn followed(workload: &Workload, context: GroupContext<'_>) -> Steps {
    let oldest = oldest(context.pods).filter(|_| !context.is_prebuilt());
    oldest.map(|pod| follow_keys(pod, workload, context.gates)).unwrap_or_default()
}

/// Members that do not own the Workload yet.
fn add_owners(workload: &Workload, members: &[&Pod]) -> Option<ReconcileStep<Pod>> {
    let owners = workload.metadata.owner_references.as_deref().unwrap_or_default();
    // A set: a group has thousands of members, and each of them is an owner.
    let owners: HashSet<&str> = owners.iter().map(|one| one.uid.as_str()).collect();
    let owns = |pod: &Pod| pod.metadata.uid.as_deref().is_some_and(|uid| owners.contains(uid));
    let missing: Vec<&Pod> = members.iter().copied().filter(|pod| !owns(pod)).collect();
    let references = owner_references(&missing);
    (!references.is_empty()).then(|| WorkloadStep::AddOwners(references).of(workload))
}

/// Starts every gated member with the info of its role. One that requests more than the role stays gated.
fn start_gated(workload: &Workload, members: &Members<'_>, context: GroupContext<'_>) -> Steps {
    let failed = |message: String| {
        let reason = reasons::FAILED_TO_START;
        vec![WorkloadStep::Finish { reason, message }.of(workload)]
    };
    let infos = match admitted_infos::startable_infos(workload, context.flavors, context.gates) {
        Ok(Some(infos)) => infos,
        Ok(None) => return Vec::new(),
        Err(error) => return failed(error.to_string()),
    };
    let (mut steps, mut reports) = (Vec::new(), Vec::new());
    // A group starts as a whole, as it was composed.
    let total: i64 = infos.iter().map(|info| i64::from(info.count)).sum();
    let is_complete = i64::try_from(members.kept.len()).is_ok_and(|n_kept| n_kept >= total);
    // The pods of a serving group come one after the other: a leader is up before its workers are made. So may those of a Workload
    // that was made for a group, and is admitted before any of them exists.
    let early = |pod: &&Pod| pod.wants_fast_admission() || pod.is_serving();
    let made_first = context.is_prebuilt() && is_group_workload(workload);
    if !is_complete && !made_first && !context.pods.iter().any(early) {
        return steps;
    }
    for pod in members.kept.iter().filter(|pod| pod.is_gated() && !pod.is_deleting()) {
        // A group may have thousands of members: those with a write in flight are not even copied.
        if !(context.is_free)(pod) {
            continue;
        }
        let role = pod.role();
        let Some(info) = infos.iter().find(|info| info.name == role) else {
            continue;
        };
        if let Some(report) = context.report(pod, workload) {
            reports.push(report);
            if !(context.comparison.is_of_set)(pod) {
                continue;
            }
        }
        let mut started = (*pod).clone();
        let info = PodSetInfo { count: 1, ..info.clone() };
        match started.run_with_pod_sets_info(std::slice::from_ref(&info), context.gates) {
            Ok(()) => steps.push(ReconcileStep::Job(JobStep::Start(Box::new(started)))),
            Err(error) => return failed(error.to_string()),
        }
        if steps.len() == MAX_WRITES {
            break;
        }
    }
    steps.extend(reports);
    steps
}

/// The queue of the members, if they agree about another one. A member without a queue agrees with the others: upstream moves
/// a group to a queue when its first pod names one. Of a serving group its owner moves the Workload.
fn moved(
    workload: &Workload,
    members: &Members<'_>,
    context: GroupContext<'_>,
) -> Option<ReconcileStep<Pod>> {
    let reserved = workload.has_quota_reservation();
    let names = members.kept.iter().map(|pod| pod.queue_name());
    let named: BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
    let queue_name = named.first().copied().unwrap_or_default();
    let differs = named.len() <= 1 && workload.spec.queue_name != queue_name;
    let follows = !members.kept.is_empty() && !context.is_prebuilt();
    (differs && follows && !reserved && !status::is_serving(context.pods))
        .then(|| WorkloadStep::UpdateQueueName(queue_name.to_owned()).of(workload))
}

/// The condition `WaitingForReplacementPods` of the Workload of a group, if it changes.
#[must_use]
pub fn waiting_for_replacement(
    pods: &[&Pod],
    workload: &Workload,
    comparison: RoleComparison<'_>,
    gates: JobGates,
) -> Option<ReplacementCondition> {
    let conditions = &workload.status.conditions;
    let current = find(conditions, WAITING_FOR_REPLACEMENT_PODS);
    let waits = current.is_some_and(|one| one.status == "True");
    // A group that was admitted before all its pods exist does not wait for a replacement.
    let name = workload.metadata.name.as_deref().unwrap_or_default();
    // Without quota the group is composed again for a member that requests more.
    let reserved = workload.has_quota_reservation();
    let is_held = |pod: &Pod| reserved && comparison.is_held(pod, workload, gates);
    let complete = !members::is_any_absent(pods, &workload.spec.pod_sets, &is_held);
    let evicted = find_true(conditions, EVICTED);
    // The evicted members are still there, as the history of their roles.
    let comes_back = evicted.is_some() && status::may_start_fast(pods);
    if complete || comes_back || status::may_be_incomplete(pods, name, gates) {
        return waits.then(|| ReplacementCondition {
            status: false,
            reason: reasons::PODS_READY.to_owned(),
            message: "No pods need replacement".to_owned(),
        });
    }
    let wanted = |reason: &str, message: &str| {
        let (reason, message) = (reason.to_owned(), message.to_owned());
        ReplacementCondition { status: true, reason, message }
    };
    let wanted = match evicted {
        Some(evicted) => wanted(&evicted.reason, &evicted.message),
        None if waits => return None,
        None => wanted(reasons::PODS_FAILED, "Some Failed pods need replacement"),
    };
    (!waits || current.is_some_and(|one| one.reason != wanted.reason)).then_some(wanted)
}

/// The condition `WaitingForReplacementPods`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplacementCondition {
    /// Its status.
    pub status: bool,
    /// Its reason.
    pub reason: String,
    /// Its message.
    pub message: String,
}

/// Members beyond what is needed lose their finalizer, and are deleted.
fn remove_excess(excess: &[&Pod], context: GroupContext<'_>) -> Steps {
    let present = excess.iter().filter(|pod| !pod.is_deleting() || pod.has_finalizer());
    present
        .filter(|pod| (context.is_free)(pod))
        .take(MAX_WRITES)
        .map(|pod| match pod.finalized() {
            Some(pod) => ReconcileStep::Job(JobStep::Finalize(Box::new(pod))),
            None => ReconcileStep::Job(JobStep::DeleteExcess(Box::new((*pod).clone()))),
        })
        .collect()
}

/// Members that nothing is to be learned from any more.
fn finalize(pods: &[&Pod], context: GroupContext<'_>) -> Steps {
    let held = pods.iter().filter(|pod| pod.has_finalizer() && (context.is_free)(pod));
    let finalized = held.filter_map(|pod| pod.finalized()).take(MAX_WRITES);
    finalized.map(|pod| ReconcileStep::Job(JobStep::Finalize(Box::new(pod)))).collect()
}

/// Stops members that run; with a deleted Workload all of them.
fn stop_running(
    pods: &[&Pod],
    workload: Option<&Workload>,
    reason: StopReason,
    context: GroupContext<'_>,
) -> Steps {
    let cause = StopCause { workload, reason, resized: false };
    let stop = |pod: &&Pod| stop_of(*pod, cause, context.gates, context.now);
    pods.iter().filter(|pod| (context.is_free)(pod)).filter_map(stop).take(MAX_WRITES).collect()
}
