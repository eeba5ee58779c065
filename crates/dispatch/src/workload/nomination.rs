//! From nomination to recording.
//!
//! A cluster that was chosen by its capacity gets clone and job at once. Under another dispatcher, or with several nominated
//! clusters, they race with clones, and the job follows the recorded cluster. The first cluster that admits its clone wins; the
//! copies of this epoch on the other clusters are removed before it is recorded.
//!
//! If no nominated cluster takes the Workload, the nomination is cancelled: jobs are deleted, the epoch is raised,
//! nomination and quota are given back. The clone with the refusal stays until then, so that a restart in between
//! reads it again; without a job it cannot start anything. Source: docs/reference/dispatch.md §4-6.

use engine::{Time, ids::ClusterId};

use super::{
    DispatchStep, RemoteConnection, RemoteCopy, RemoteWorkload, SlicePredecessor, StampState,
    dispatch_view::{DispatchView, with_deadline},
    removal,
    withdrawal::{self, RemoteActivity},
};

/// State of one nominated cluster.
enum NominationProgress {
    /// The cluster may still admit: steps to take, and the deadline.
    Ongoing(Vec<DispatchStep>, Option<Time>),
    /// The cluster does not take the Workload.
    Rejected,
}

/// Steps up to [`DispatchStep::SetCheckReady`] or [`DispatchStep::CancelNomination`].
pub(super) fn dispatch_nominated(view: &DispatchView<'_>) -> Vec<DispatchStep> {
    let chosen = view.chosen();
    let elsewhere = view.copies.iter().filter(|copy| !chosen.contains(&copy.cluster));
    let mut steps = removal::removals(view, elsewhere);
    steps.extend(decide_among(view, &chosen));
    steps
}

/// Whether a cluster that is not nominated yet may join the race, or a nominated one has left the MultiKueueConfig.
pub(super) fn changes_race(view: &DispatchView<'_>) -> bool {
    let hub = view.hub;
    let joins = |race: &Vec<ClusterId>| {
        race.iter().any(|cluster| !hub.nominated_clusters.contains(cluster))
    };
    let leaves = !hub.unconfigured_clusters.is_empty();
    // A raised epoch means that the nomination is being cancelled.
    hub.race.as_ref().is_some_and(|race| leaves || joins(race)) && !hub.epoch_raised
}

/// Nominates a cluster once no earlier copy is left: its epoch would be that of the new one.
pub(super) fn nominate(view: &DispatchView<'_>) -> Vec<DispatchStep> {
    // Without a cluster the Workload keeps its quota, as upstream's does.
    if view.hub.race.as_ref().is_some_and(Vec::is_empty) {
        return removal::removals(view, view.copies.iter());
    }
    match withdrawal::remote_activity(view, RemoteCopy::is_empty) {
        // A clone that a finalizer keeps is no copy of the next dispatch.
        RemoteActivity::None if view.connected().any(|copy| view.has_leaving_clone(copy)) => {
            vec![view.raise_epoch()]
        }
        RemoteActivity::None => vec![DispatchStep::Nominate],
        RemoteActivity::Possible => removal::removals(view, view.copies.iter()),
        RemoteActivity::PossibleUntil(due) => {
            with_deadline(removal::removals(view, view.copies.iter()), [due])
        }
    }
}

fn decide_among(view: &DispatchView<'_>, chosen: &[ClusterId]) -> Vec<DispatchStep> {
    let copies: Vec<&RemoteCopy> =
        chosen.iter().filter_map(|&cluster| view.copy(cluster)).collect();
    let single_cluster = chosen.len() == 1 && view.hub.race.is_none();
    // A raised epoch in a nominated Workload means that the cancellation has begun.
    if view.hub.epoch_raised {
        return stop_and_cancel(view, &copies, single_cluster);
    }
    // A clone may be admitted before the API server has answered the creates of all jobs.
    let extends = view.hub.predecessor == SlicePredecessor::Runs;
    let complete = |winner: &&RemoteCopy| extends || !winner.missing_job && view.has_job(winner);
    let winner = winner(view, &copies).filter(|winner| !single_cluster || complete(winner));
    let winner = winner.filter(|winner| !is_unconfigured(view, winner));
    if let Some(winner) = winner {
        // Copies on clusters that are not chosen are removed by `dispatch_nominated`.
        return record_alone(view, winner, |copy| chosen.contains(&copy.cluster));
    }
    let progress: Vec<NominationProgress> =
        copies.iter().map(|copy| progress(view, copy, single_cluster)).collect();
    let all_rejected =
        progress.iter().all(|cluster| matches!(cluster, NominationProgress::Rejected));
    // `all` holds for an empty list, too: without a nomination there is nothing to cancel.
    if all_rejected && !copies.is_empty() {
        return stop_and_cancel(view, &copies, single_cluster);
    }
    let (mut steps, mut deadline) = (Vec::new(), None);
    for (copy, progress) in copies.into_iter().zip(progress) {
        match progress {
            NominationProgress::Ongoing(more, until) => {
                steps.extend(more);
                deadline = deadline.into_iter().chain(until).min();
            }
            // What its worker has made of the clone may take quota there while the race goes on.
            NominationProgress::Rejected if has_stale_clone(view, copy) => {
                steps.extend(removal::removal(view, copy));
            }
            NominationProgress::Rejected => {}
        }
    }
    with_deadline(steps, deadline)
}

/// Whether a nominated cluster has left the MultiKueueConfig.
fn is_unconfigured(view: &DispatchView<'_>, copy: &RemoteCopy) -> bool {
    view.hub.unconfigured_clusters.contains(&copy.cluster)
}

/// The cluster that admitted first.
pub(super) fn winner<'a>(
    view: &DispatchView<'a>,
    copies: &[&'a RemoteCopy],
) -> Option<&'a RemoteCopy> {
    let admitted = copies.iter().filter_map(|copy| Some((admitted_at(view, copy)?, *copy)));
    let position =
        |copy: &RemoteCopy| view.copies.iter().position(|other| other.cluster == copy.cluster);
    // Condition times have whole seconds, so ties occur. The order of `copies` breaks them in
    // the same way after a restart.
    admitted.min_by_key(|(at, copy)| (*at, position(copy))).map(|(_, copy)| copy)
}

/// Admission time of the clone. A cluster with an API server that refuses the job has nothing to run and does not count.
pub(super) fn admitted_at(view: &DispatchView<'_>, copy: &RemoteCopy) -> Option<Time> {
    let can_start = copy.connection == RemoteConnection::Connected && copy.refused.is_none();
    let clone = usable_clone(view, copy).filter(|_| can_start)?;
    let has_ended = clone.evicted || clone.stamp == StampState::Ended;
    let is_valid = !clone.deleting && !has_ended && clone.refused.is_none();
    clone.admitted_at.filter(|_| is_valid)
}

/// A clone of this epoch that its worker has not changed, and that stays.
pub(super) fn usable_clone<'c>(
    view: &DispatchView<'_>,
    copy: &'c RemoteCopy,
) -> Option<&'c RemoteWorkload> {
    let carries = |clone: &&RemoteWorkload| view.carries(clone.epoch, clone.history);
    // A worker may admit a clone while its deletion is on the way: it has lost to another one already, and would take that one's place.
    let stays = |clone: &&RemoteWorkload| clone.same_spec && !clone.delete_sent;
    copy.clone.as_ref().filter(carries).filter(stays)
}

/// Whether a clone is of another epoch, its worker has changed it, or its deletion was sent.
fn has_stale_clone(view: &DispatchView<'_>, copy: &RemoteCopy) -> bool {
    copy.clone.is_some() && usable_clone(view, copy).is_none()
}

/// Records the winner once no other cluster has a copy of this epoch. Until then the copies that `removed` names are removed.
pub(super) fn record_alone(
    view: &DispatchView<'_>,
    winner: &RemoteCopy,
    removed: impl Fn(&RemoteCopy) -> bool,
) -> Vec<DispatchStep> {
    let others = || view.copies.iter().filter(|copy| copy.cluster != winner.cluster);
    if others().any(|copy| may_compete(view, copy)) {
        return removal::removals(view, others().filter(|copy| removed(copy)));
    }
    vec![DispatchStep::SetCheckReady(winner.cluster)]
}

/// Whether a cluster other than the winner has a copy of this epoch that has to be removed first.
fn may_compete(view: &DispatchView<'_>, copy: &RemoteCopy) -> bool {
    // On a disconnected cluster a clone alone starts nothing, but a job may run there until the
    // cluster counts as lost.
    copy.connection == RemoteConnection::Connected
        && (!copy.creates_answered || view.is_current(copy) && !copy.is_empty())
        || view.has_job(copy) && !view.is_lost(copy)
}

fn progress(
    view: &DispatchView<'_>,
    copy: &RemoteCopy,
    single_cluster: bool,
) -> NominationProgress {
    match copy.connection {
        RemoteConnection::Connected if is_rejected(view, copy, single_cluster) => {
            NominationProgress::Rejected
        }
        RemoteConnection::Connected => {
            let deadline = admission_deadline(view, copy, single_cluster);
            NominationProgress::Ongoing(create(view, copy, single_cluster), deadline)
        }
        RemoteConnection::NotSynced { .. } | RemoteConnection::Disconnected { .. } => {
            progress_unreached(view, copy)
        }
    }
}

/// The state of a cluster that is not reached.
fn progress_unreached(view: &DispatchView<'_>, copy: &RemoteCopy) -> NominationProgress {
    let (hub, lost_at) = (view.hub, view.loss_deadline(copy));
    if view.is_lost(copy) {
        return match hub.nominated_by_others {
            // Cancelled, it would be nominated again at once.
            true => NominationProgress::Ongoing(Vec::new(), None),
            false => NominationProgress::Rejected,
        };
    }
    // An incomplete list proves neither presence nor absence, and a create may have reached the cluster.
    if withdrawal::is_awaited(view, copy) {
        return NominationProgress::Ongoing(Vec::new(), lost_at);
    }
    let queues_are_late = hub.race_until.is_some_and(|until| view.now >= until);
    // Of a single cluster that was chosen by its room nothing is lost if another one is nominated.
    if hub.race.is_none() || queues_are_late {
        return NominationProgress::Rejected;
    }
    let deadline = lost_at.into_iter().chain(hub.race_until).min();
    NominationProgress::Ongoing(Vec::new(), deadline)
}

/// A cluster that was chosen by its room has to admit soon; in a race its queues may need longer. The nodes of an autoscaler
/// take minutes or hours: they are waited for as long as the agent says so, which a dead one does not.
fn admission_deadline(
    view: &DispatchView<'_>,
    copy: &RemoteCopy,
    single_cluster: bool,
) -> Option<Time> {
    if !single_cluster {
        return view.hub.race_until;
    }
    let chosen = Time(view.hub.nominated_at.0.saturating_add(view.settings.admission_timeout));
    let asked = usable_clone(view, copy).and_then(|clone| clone.awaits_nodes_until);
    Some(asked.map_or(chosen, |until| until.max(chosen)))
}

/// Whether a connected cluster refuses the Workload, exceeds the admission timeout, or has left the MultiKueueConfig.
fn is_rejected(view: &DispatchView<'_>, copy: &RemoteCopy, single_cluster: bool) -> bool {
    let against =
        usable_clone(view, copy).and_then(|clone| refusal_of(clone, single_cluster)).is_some();
    let ended = usable_clone(view, copy).is_some_and(|clone| clone.stamp == StampState::Ended);
    let deadline = admission_deadline(view, copy, single_cluster);
    let late = deadline.is_some_and(|deadline| view.now >= deadline);
    copy.refused.is_some() || against || ended || late || is_unconfigured(view, copy)
}

/// Creates missing copies after stale copies are removed.
fn create(view: &DispatchView<'_>, copy: &RemoteCopy, single_cluster: bool) -> Vec<DispatchStep> {
    if has_stale_clone(view, copy) || view.has_stale_job(copy) {
        return removal::removal(view, copy).into_iter().collect();
    }
    let deleting = copy.clone.as_ref().is_some_and(|clone| clone.deleting)
        || copy.jobs.iter().any(|job| job.deleting);
    let closed = view.hub.exactly_once && !copy.lease.open;
    let waits = deleting || closed || !copy.creates_answered;
    if waits || started_elsewhere(view, copy.cluster) {
        return Vec::new();
    }
    let clone = copy.clone.is_none().then_some(DispatchStep::CreateClone(copy.cluster));
    // In a race the jobs follow the recorded cluster, so that only one copy starts.
    // Those of an earlier slice are there already.
    let own_jobs = view.hub.predecessor == SlicePredecessor::Absent;
    let jobs = (single_cluster && own_jobs && copy.missing_job)
        .then_some(DispatchStep::CreateJobs(copy.cluster));
    clone.into_iter().chain(jobs).collect()
}

/// Whether a cluster that is no longer nominated has a job of this epoch.
fn started_elsewhere(view: &DispatchView<'_>, here: ClusterId) -> bool {
    let mut others = view.copies.iter().filter(|copy| copy.cluster != here);
    others.any(|copy| view.has_job(copy) && !view.is_lost(copy))
}

/// Deletes the jobs and gives the nomination back.
fn stop_and_cancel(
    view: &DispatchView<'_>,
    copies: &[&RemoteCopy],
    single_cluster: bool,
) -> Vec<DispatchStep> {
    let jobs = copies.iter().filter(|copy| copy.connection == RemoteConnection::Connected);
    let stop = jobs.filter(|copy| copy.has_live_job() && !view.is_disputed(copy));
    let stop: Vec<DispatchStep> = stop.map(|copy| DispatchStep::DeleteJobs(copy.cluster)).collect();
    // Only the jobs have to be gone. The clone stays, because it holds the refusal.
    match withdrawal::remote_activity(view, |copy| !copy.has_own_job()) {
        RemoteActivity::Possible => stop,
        RemoteActivity::PossibleUntil(deadline) => with_deadline(stop, [deadline]),
        // The epoch rises before any further nomination (docs/reference/dispatch.md §6).
        RemoteActivity::None if !view.hub.epoch_raised => vec![view.raise_epoch()],
        RemoteActivity::None => copies
            .first()
            .map(|copy| cancel_nomination(view, copy, single_cluster))
            .into_iter()
            .collect(),
    }
}

/// The refusal is still on the clone of the previous epoch.
fn cancel_nomination(
    view: &DispatchView<'_>,
    copy: &RemoteCopy,
    single_cluster: bool,
) -> DispatchStep {
    let refusal_of = || copy.clone.as_ref().and_then(|clone| refusal_of(clone, single_cluster));
    let why = copy.refused.clone().or_else(refusal_of).unwrap_or_else(|| match copy.connection {
        _ if is_unconfigured(view, copy) => UNCONFIGURED.into(),
        RemoteConnection::NotSynced { .. } | RemoteConnection::Disconnected { .. } => LOST.into(),
        RemoteConnection::Connected => LATE.into(),
    });
    DispatchStep::CancelNomination { cluster: copy.cluster, why }
}

const LOST: &str = "the worker was lost before it admitted the workload";
pub(super) const LATE: &str = "not admitted by the worker in time";
const UNCONFIGURED: &str = "it was taken out of the MultiKueueConfig";
const FINISHED: &str = "finished on the worker before it was admitted there";
const EVICTED: &str = "evicted on the worker before it was recorded on the manager";

/// Reason on the clone against its cluster. In a race an evicted clone is requeued on its worker.
pub(super) fn refusal_of(clone: &RemoteWorkload, single_cluster: bool) -> Option<Box<str>> {
    let finished = clone.finished.is_some().then_some(FINISHED);
    let evicted = (single_cluster && clone.evicted).then_some(EVICTED);
    clone.refused.clone().or_else(|| finished.or(evicted).map(Into::into))
}
