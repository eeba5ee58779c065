//! The Workload life cycle: every Workload as it was observed, the transitions that were decided, and their writes.
//!
//! Inputs: observations, answers, and transitions that other machines propose. Outputs: [`WorkloadChange`]s, which the
//! composition routes to the other machines, writes, and Events. Everything that was decided about a Workload goes out in
//! one status write ([`status`]).
//!
//! | file | concept |
//! |---|---|
//! | `phase` | the phase that conditions stand for |
//! | `transition` | transitions that are decided and not visible yet |
//! | `observation` | observations and answers |
//! | `proposals` | transitions that other machines propose |
//! | `tracked_workload` | one Workload: object, phase, transitions |
//! | `reason_period` | how often the reason of a pending Workload is written |
//! | `workload_change` | what an observation changed |
//! | `status`, `status_draft` | the next status, in one write |
//! | `status_write` | the write of the next status |
//! | `stop_policy` | stop policies of queues |
//! | `pods_ready_policy` | the settings of PodsReady, and the requeue backoff |
//! | `time_limits` | when a Workload reaches its time limits |
//! | `time_limit_enforcement` | what follows when a limit is reached |
//! | `retention` | how long a finished Workload stays |
//! | `command` | writes that other machines ask for |
//! | `announcement` | Events |

mod announcement;
mod command;
mod observation;
mod phase;
mod pods_ready_policy;
mod proposals;
mod reason_period;
mod retention;
mod status;
mod status_draft;
mod status_write;
mod stop_policy;
mod time_limit_enforcement;
mod time_limits;
mod tracked_workload;
mod transition;
mod workload_change;

use std::{collections::BTreeSet, sync::Arc};

use crds::{
    names::{annotations::JOB_OWNER_NAME, conditions::REFUSED, labels::JOB_UID},
    v1beta2::Workload,
};
use engine::ids::WorkloadId;
use index::status::{NewCondition, StatusStamp, set};
use jiff::{SignedDuration, Timestamp};
use runtime::{events::EventRecord, watch::Key};
use serde_json::json;

pub use self::pods_ready_policy::PodsReadyPolicy;
pub(crate) use self::time_limits::is_set_elsewhere;
pub(crate) use self::{
    command::WorkloadCommand,
    phase::WorkloadPhase,
    status::{StatusInputs, gates_cleared, not_evaluated},
    status_draft::is_of_single_pod,
    stop_policy::StopPolicy,
    tracked_workload::TrackedWorkload,
    transition::{
        CheckRetry, EvictionRequest, NominationChange, PendingMessage, Preemption, ReservedQuota,
        Transition,
    },
    workload_change::WorkloadChange,
};

use self::status::{needs_deactivation, next_status, rules_out_reservation};
use super::{
    context::Context,
    outbox::{Intent, Purpose, Subject, Target},
    timers::{Deadlines, Reevaluation},
};
use crate::control::key_map::KeyMap;

/// The field manager of the condition by which an agent refuses a clone.
const AGENT_MANAGER: &str = "sluice-agent";

/// The outcome of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evaluation {
    /// Nothing for other machines.
    Done,
    /// The object rules out the reservation that the engine made.
    ReservationWithdrawn(WorkloadId),
}

/// All Workloads, with decided transitions and deadlines.
#[derive(Debug, Default)]
pub(crate) struct Workloads {
    records: KeyMap<Key, TrackedWorkload>,
    by_id: KeyMap<WorkloadId, Key>,
    deadlines: Deadlines,
}

impl Workloads {
    pub(crate) fn get(&self, key: &Key) -> Option<&TrackedWorkload> {
        self.records.get(key)
    }

    /// A Workload and its key.
    pub(crate) fn get_key_value(&self, key: &Key) -> Option<(&Key, &TrackedWorkload)> {
        self.records.get_key_value(key)
    }

    /// The number of a Workload in the engine, unless it is over.
    pub(crate) fn id_of(&self, key: &Key) -> Option<WorkloadId> {
        self.records.get(key)?.id()
    }

    /// The Workload of a number of the engine, unless it is over.
    pub(crate) fn by_id(&self, id: WorkloadId) -> Option<(&Key, &TrackedWorkload)> {
        self.records.get_key_value(self.by_id.get(&id)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &TrackedWorkload)> + Clone {
        self.records.iter()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.records.keys()
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// The earliest time at which a Workload reaches a limit.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.deadlines.next()
    }

    /// Takes the Workloads that have reached a limit.
    pub(crate) fn take_reached(&mut self, now: Timestamp) -> Vec<Key> {
        self.deadlines.take_reached(now)
    }

    /// Keys of the Workloads that `concerned` selects.
    pub(crate) fn select(&self, concerned: impl Fn(&Workload) -> bool) -> BTreeSet<Key> {
        let records = self.records.iter().filter(|(_, record)| concerned(record.object()));
        records.map(|(key, _)| key.clone()).collect()
    }

    /// Releases the number of a Workload that is over: it may be given to another one. A finished Workload stays known without it.
    pub(crate) fn release_id(&mut self, key: &Key, id: WorkloadId) {
        self.by_id.remove(&id);
        if let Some(record) = self.records.get_mut(key) {
            record.release_id();
        }
    }

    /// Finishes a Workload without its owner, and lets it go then (docs/reference/kueue.md §2.5 row 1). Without
    /// `finishes_orphans` (gate FinishOrphanedWorkloads) only one that is being deleted.
    pub(crate) fn finish_orphan(&mut self, key: &Key, finishes_orphans: bool, ctx: &mut Context) {
        let record = self.records.get_mut(key);
        let orphan = record.filter(|one| is_orphan(one.object(), finishes_orphans));
        let Some(record) = orphan else {
            return;
        };
        if record.phase() == WorkloadPhase::Finished {
            return self.perform(key, &WorkloadCommand::RemoveFinalizer, None, ctx);
        }
        record.transitions_mut().propose_once(Transition::owner_not_found());
    }

    /// Lets a Workload go that is being rebuilt and was deleted. Nothing else is decided about it: what is written about it is
    /// half of what it will be (docs/reference/dispatch.md §11).
    pub(crate) fn release_deleted(&mut self, key: &Key, ctx: &mut Context) {
        let object = self.records.get(key).map(|record| record.object());
        if object.is_some_and(|workload| workload.metadata.deletion_timestamp.is_some()) {
            self.perform(key, &WorkloadCommand::RemoveFinalizer, None, ctx);
        }
    }

    /// The clock jumped.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        // Deadlines of a manager without MultiKueue follow from times of objects. Any other manager, and an agent, evaluates all
        // Workloads after a jump, which sets them again.
        let Self { records, by_id: _, deadlines: _ } = self;
        records.for_each_mut(|_, record| record.clock_jumped(by));
    }

    /// Whether the Workload may be written now; otherwise it is evaluated when it may.
    pub(crate) fn free_or_wait(&self, key: &Key, ctx: &mut Context) -> bool {
        let Some(record) = self.records.get(key) else {
            return false;
        };
        ctx.free_or_wait(&target(key), &record.stamp(), &Reevaluation::Workload(key.clone()))
    }

    /// Decides what is written about a Workload that may be written.
    pub(crate) fn evaluate(
        &mut self,
        key: &Key,
        inputs: &StatusInputs,
        ctx: &mut Context,
    ) -> Evaluation {
        // Spec and status are written by two requests, one at a time. The answer to the first
        // evaluates the Workload again.
        if let Some(command) = self.spec_command(key, inputs.class_priority) {
            self.perform(key, &command, None, ctx);
            return Evaluation::Done;
        }
        let Some(record) = self.records.get_mut(key) else {
            return Evaluation::Done;
        };
        // A queue that ends reservations ends one that is not written yet as well; the engine counts it until then.
        let ended = !record.phase().holds_quota() && inputs.stop != StopPolicy::default();
        let withdrawn = (ended || rules_out_reservation(record, inputs))
            && record.transitions_mut().withdraw_reservation();
        let id = record.id().filter(|_| withdrawn);
        // The next evaluation names the gates.
        if withdrawn && inputs.gated.is_some() {
            ctx.agenda.now(Reevaluation::Workload(key.clone()));
        }
        // What rules the reservation out is written at once: the engine may reserve again until it is.
        self.write_next(key, inputs, ctx);
        id.map_or(Evaluation::Done, Evaluation::ReservationWithdrawn)
    }

    /// Writes the next status, or deletes a Workload at the end of its retention.
    fn write_next(&mut self, key: &Key, inputs: &StatusInputs, ctx: &mut Context) {
        let Some(record) = self.records.get_mut(key) else {
            return;
        };
        let expires_at = retention::expires_at(record.object(), inputs.retention);
        self.deadlines
            .set(key, expires_at.or_else(|| time_limit_enforcement::deadline(record, inputs)));
        if expires_at.is_some_and(|at| at <= ctx.now) {
            let event = retention::deleted(record.object());
            return self.perform(key, &WorkloadCommand::Delete, Some(event), ctx);
        }
        tracing::trace!(workload = %key, transitions = ?record.transitions(), "evaluated");
        let next = next_status(record, inputs, ctx.now);
        status_write::submit(key, record, (next, inputs), ctx);
    }

    /// Writes what another machine asks for, if the Workload may be written and it changes anything. A deletion takes the
    /// finalizer off first. The Event follows if the write is done.
    pub(crate) fn perform(
        &mut self,
        key: &Key,
        command: &WorkloadCommand,
        event: Option<EventRecord>,
        ctx: &mut Context,
    ) {
        if *command == WorkloadCommand::Delete {
            // While this write is in flight `submit` skips the deletion. Its answer evaluates the
            // job, which asks for the deletion again.
            self.submit(key, &WorkloadCommand::RemoveFinalizer, None, ctx);
        }
        self.submit(key, command, event, ctx);
    }

    /// Refuses a clone on an agent's cluster, so that its manager chooses another one. Returns false if that is written or
    /// the clone is finished.
    pub(crate) fn refuse(
        &self,
        key: &Key,
        (reason, message): (&str, &str),
        ctx: &mut Context,
    ) -> bool {
        let refusable =
            |one: &&TrackedWorkload| !one.is(REFUSED) && one.phase() != WorkloadPhase::Finished;
        let Some(record) = self.records.get(key).filter(refusable) else {
            return false;
        };
        let workload = Arc::clone(record.object());
        let generation = workload.metadata.generation.unwrap_or_default();
        let mut conditions = Vec::new();
        set(
            &mut conditions,
            NewCondition { kind: REFUSED, status: true, reason, message },
            StatusStamp { now: ctx.now, generation },
        );
        let status = json!({ "conditions": conditions });
        ctx.outbox.submit(intent(key, record, Purpose::Refuse), |purpose, key| {
            command::apply_as((purpose, AGENT_MANAGER), key, &workload, &status)
        })
    }

    /// Changes of the spec that follow from the Workload itself: the value of its class, and deactivation.
    fn spec_command(&mut self, key: &Key, class_priority: Option<i32>) -> Option<WorkloadCommand> {
        let record = self.records.get_mut(key)?;
        let workload = record.object();
        // Priority and `active` of a Workload that never runs again decide nothing, and their write would delay that of
        // the finalizer.
        if record.phase() == WorkloadPhase::Finished
            || workload.metadata.deletion_timestamp.is_some()
        {
            return None;
        }
        if let Some(value) = record.priority_to_follow(class_priority) {
            return Some(WorkloadCommand::SetPriority(value));
        }
        needs_deactivation(record).then_some(WorkloadCommand::Deactivate)
    }

    fn submit(
        &mut self,
        key: &Key,
        command: &WorkloadCommand,
        event: Option<EventRecord>,
        ctx: &mut Context,
    ) {
        let record = self.records.get_mut(key);
        let Some(record) = record.filter(|one| command.changes(one.object())) else {
            return;
        };
        if !ctx.outbox.writes().is_free(&target(key), &record.stamp(), ctx.now) {
            return;
        }
        let workload = Arc::clone(record.object());
        let submitted =
            ctx.outbox.submit(intent(key, record, command.purpose()), |purpose, key| {
                command.encode(&workload, purpose, key)
            });
        if let Some(event) = event.filter(|_| submitted) {
            ctx.outbox.announce(event);
        }
    }
}

/// Whether a Workload had an owner that is gone, or is deleted and never had one.
fn is_orphan(workload: &Workload, finishes_orphans: bool) -> bool {
    let metadata = &workload.metadata;
    let labels = metadata.labels.as_ref();
    let annotations = metadata.annotations.as_ref();
    let had_owner = labels.is_some_and(|all| all.contains_key(JOB_UID));
    // An owner in another place than the references is named by annotations.
    let names_owner = annotations.is_some_and(|all| all.contains_key(JOB_OWNER_NAME));
    metadata.owner_references.as_ref().is_none_or(Vec::is_empty)
        && !names_owner
        && (finishes_orphans && had_owner || metadata.deletion_timestamp.is_some())
}

fn target(key: &Key) -> Target {
    Target::home(Subject::Workload, key)
}

fn intent(key: &Key, record: &TrackedWorkload, purpose: Purpose) -> Intent {
    let waiter = Reevaluation::Workload(key.clone());
    Intent { target: target(key), purpose, base: record.stamp(), waiter }
}
