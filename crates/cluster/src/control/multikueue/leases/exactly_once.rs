//! What `execution: ExactlyOnce` means for the dispatch of one Workload (docs/reference/dispatch.md §7-8).
//!
//! A Workload gets the guarantee before its first copy is created, as an annotation that a change of the policy does not remove.
//! Copies that exist without it keep running under KeepRunning until the next nomination.

use crds::{
    meta::annotation,
    names::{EXACTLY_ONCE, KEEP_RUNNING, annotations::EXECUTION},
};
use dispatch::{
    Fleet,
    workload::{DispatchCheckState, LocalWorkload, RemoteCopy, SlicePredecessor},
};
use engine::ids::ClusterId;
use index::status;

use super::{
    grants::Grants,
    lease_state::{LeaseState, WAITING_FOR_FENCE, awaited_fence},
};
use crate::control::{
    context::Context,
    lease_objects::{session_and_term, stamp_of},
    multikueue::{
        state::FormerCopies,
        view::{
            evaluated_workload::{EvaluatedWorkload, EvaluationView},
            hub_jobs::observed_jobs,
            observed_workload::ObservedWorkload,
        },
        workers::worker::Worker,
    },
    outbox::{Subject, Writes},
    time::engine_time,
    timers::Reevaluation,
    workloads::Transition,
};

/// What the guarantee means for a Workload.
#[derive(Clone, Copy)]
pub(crate) struct GuaranteeView {
    pub(crate) exactly_once: bool,
    /// Copies may be created from the observed version.
    pub(crate) is_own_version: bool,
}

/// Leases, as one evaluation uses them.
pub(crate) struct LeasedDispatch<'a> {
    grants: &'a Grants,
    /// Copies of this Workload carry a stamp.
    exactly_once: bool,
}

impl<'a> LeasedDispatch<'a> {
    /// Of a Workload before its guarantee is known.
    pub(crate) fn new(grants: &'a Grants) -> Self {
        Self { grants, exactly_once: false }
    }

    /// The leases of a worker.
    pub(crate) fn of_worker(&self, name: &str) -> LeaseState {
        self.grants.state(name)
    }

    /// Whether the Workload has the guarantee.
    pub(crate) fn is_exactly_once(&self) -> bool {
        self.exactly_once
    }

    /// Finds the guarantee of the Workload.
    pub(crate) fn guarantee(
        &mut self,
        view: EvaluationView<'_>,
        hub: &ObservedWorkload,
        writes: &Writes,
    ) -> GuaranteeView {
        let marked = execution(view.workload) == Some(EXACTLY_ONCE);
        self.exactly_once = marked || gets_mark(view, hub, writes);
        // The mark is written before the first copy exists.
        let is_own_version = hub.is_own_version && (marked || !self.exactly_once);
        GuaranteeView { exactly_once: self.exactly_once, is_own_version }
    }

    /// Reads copies under the guarantee that a former leader may have created.
    pub(crate) fn read_former(
        &self,
        view: EvaluationView<'_>,
        copies: &mut [RemoteCopy],
        former: &mut FormerCopies,
        ctx: &mut Context,
    ) {
        if self.exactly_once && former.may_exist {
            for copy in copies {
                self.read_after_claim(view, copy, former, ctx);
            }
        }
    }

    /// What was listed before the hub Lease had the term of this leader proves nothing: a create of a former leader may have
    /// followed. Clone and jobs are read once after that.
    fn read_after_claim(
        &self,
        view: EvaluationView<'_>,
        copy: &mut RemoteCopy,
        former: &mut FormerCopies,
        ctx: &mut Context,
    ) {
        let Some(worker) = view.workload.worker(copy.cluster, view.fleet) else {
            return;
        };
        let writes = self.of_worker(worker.name()).writes;
        if writes && former.read_on.insert(copy.cluster) {
            doubt_copies(view.workload, worker, ctx);
            copy.creates_answered = false;
        }
        copy.creates_answered &= writes;
    }

    /// The message of the check while the Workload waits for the fence of its worker, and the former one after that; `None` if
    /// the check shows it.
    pub(crate) fn fence_message(
        &self,
        EvaluationView { workload, fleet }: EvaluationView<'_>,
        hub: &LocalWorkload,
        check: Option<&str>,
        ctx: &Context,
    ) -> Option<Transition> {
        let runs = hub.exactly_once && hub.check == DispatchCheckState::Ready && !hub.evicted;
        let name = fleet.name(hub.recorded_cluster.filter(|_| runs)?);
        let shown = workload.shown_message(check)?;
        let leases = self.of_worker(name);
        // When time has fenced it, the check goes back as soon as that is recorded.
        if leases.fenced_at.is_some_and(|at| at <= engine_time(ctx.now)) {
            return None;
        }
        let message = match awaited_fence(name, &leases) {
            Some(reason) => format!("Worker cluster \"{name}\" is lost; {reason}"),
            None if shown.contains(WAITING_FOR_FENCE) => status::admitted_on(name),
            None => return None,
        };
        (shown != message).then_some(Transition::CheckMessage(message))
    }

    /// Session and term for copies that are created on a cluster now.
    pub(crate) fn stamp(&self, cluster: ClusterId, fleet: &Fleet) -> Option<String> {
        let stamp = self.of_worker(fleet.name(cluster)).stamp;
        self.exactly_once.then(|| session_and_term(stamp.session, stamp.term))
    }
}

/// What the Workload has from its job, or as the mark.
fn execution(workload: EvaluatedWorkload<'_>) -> Option<&str> {
    annotation(&workload.record()?.object().metadata, EXECUTION)
}

/// Whether the policy asks for the guarantee, the job does not decline it, and no copy of this epoch exists without it.
fn gets_mark(
    EvaluationView { workload, fleet }: EvaluationView<'_>,
    hub: &ObservedWorkload,
    writes: &Writes,
) -> bool {
    let policy = workload.multikueue_config().and_then(|config| fleet.exactly_once(config));
    let is_open = hub.exists && hub.quota_reserved && !hub.evicted && !hub.finished;
    // A slice takes over what runs without the guarantee.
    let takes_over = hub.slices.predecessor != SlicePredecessor::Absent;
    let undecided = is_open && hub.check == DispatchCheckState::Pending && !takes_over;
    let asked = policy.is_some() && execution(workload) != Some(KEEP_RUNNING);
    let has_unstamped = || {
        let mut holders = workload.workers.concerned(workload.key, writes);
        holders.any(|(_, worker)| runs_unstamped(workload, worker, hub))
    };
    asked && undecided && !has_unstamped()
}

fn runs_unstamped(
    workload: EvaluatedWorkload<'_>,
    worker: &Worker,
    hub: &ObservedWorkload,
) -> bool {
    let clone = worker.clones.get(workload.key).map(|tracked| &tracked.object().metadata);
    clone.is_some_and(|clone| {
        ::jobs::remote_objects::epoch(clone) == hub.epoch && stamp_of(clone).is_none()
    })
}

/// Reads clone and jobs on a worker once more.
fn doubt_copies(workload: EvaluatedWorkload<'_>, worker: &Worker, ctx: &mut Context) {
    let key = workload.key;
    let hub_jobs = observed_jobs(key, workload.workloads, workload.jobs);
    let jobs = hub_jobs
        .iter()
        .map(|(job, _)| (worker.job_target(job), worker.jobs.get(job).map(|one| one.version())));
    let observed = worker.clones.get(key).map(|one| one.version());
    let clone = (worker.target(Subject::Workload, key), observed);
    for (target, observed) in jobs.chain([clone]) {
        ctx.outbox.doubt(target, observed, Reevaluation::Workload(key.clone()));
    }
    // Reads are found at each decision.
    ctx.agenda.at(ctx.now, Reevaluation::Report);
}
