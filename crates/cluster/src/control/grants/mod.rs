//! The agent's half of the leases under ExactlyOnce: beats, which clones may start or have to stop, and the end of their pods.
//!
//! Inputs: the Leases in the agent's namespace, clones, their pods. Outputs: the agent's Lease, and for each clone whether it is
//! held back, runs, or is evicted. The rules are [`dispatch::GrantHolder`]'s (docs/reference/dispatch.md §7).
//!
//! A clone without a stamp needs no grant, and without a hub Lease nothing is written.

mod fenced_pods;

use std::collections::BTreeSet;

use crds::{
    meta::{is_true, label},
    names::{
        AGENT_LEASE,
        conditions::{ADMITTED, EVICTED},
        labels::MULTI_KUEUE_ORIGIN,
        reasons::FENCED,
    },
    v1beta2::Workload,
};
use dispatch::{CopyVerdict, GrantHolder, LeaseStamp, LeasedCopy};
use index::status::find;
use jiff::SignedDuration;
use k8s_openapi::api::coordination::v1::Lease;
use runtime::{
    watch::{Change, Key},
    writer::WriteOutcome,
};

use self::fenced_pods::FencedPods;
use super::{
    capacity::CloneOfPod,
    change::for_each_object,
    context::Context,
    key_map::KeyMap,
    lease_objects::{agent_lease, beat_fields, beat_of, grant_of, origin_of, stamp_of, submit},
    outbox::{Intent, Purpose, Subject, Target, Ticket, Tracked, answer_single, upsert_single},
    pod_failure::PodFailure,
    time::{engine_time, signed_nanos, timestamp},
    timers::Reevaluation,
    workloads::Workloads,
};

/// Message of the eviction at the end of a grant.
const NO_GRANT: &str = "the manager has not renewed the grant of this cluster in time";

/// The grants that an agent holds, and what they allow.
#[derive(Debug)]
pub(crate) struct AgentGrants {
    namespace: String,
    boot: Box<str>,
    /// `None` before the Leases were listed.
    holder: Option<GrantHolder>,
    lease: Option<Tracked<Lease>>,
    /// Stamps of clones, with the number of the last beat when they were first observed.
    observed: KeyMap<Key, (LeaseStamp, u64)>,
    pods: FencedPods,
}

impl AgentGrants {
    /// Of a process with this boot id and a Lease in this namespace.
    pub(crate) fn new(namespace: String, boot: Box<str>) -> Self {
        let (holder, lease) = (None, None);
        Self {
            namespace,
            boot,
            holder,
            lease,
            observed: KeyMap::new(),
            pods: FencedPods::default(),
        }
    }

    /// Records a change of the Leases.
    pub(crate) fn observe(&mut self, change: Change<Lease>, ctx: &mut Context) {
        let mut hubs = Vec::new();
        for_each_object(change, |key, object| match (&*key.name, origin_of(&key.name)) {
            (AGENT_LEASE, _) => upsert_single(&mut self.lease, object),
            (_, Some(origin)) => hubs.push((Box::<str>::from(origin), object)),
            _ => {}
        });
        let (lease, boot, now) = (&self.lease, &self.boot, engine_time(ctx.now));
        let holder = self.holder.get_or_insert_with(|| {
            let previous = lease.as_ref().and_then(|one| beat_of(one.object()));
            GrantHolder::new(boot.clone(), previous.as_ref(), now)
        });
        for (origin, object) in hubs {
            match object.as_deref().and_then(grant_of) {
                Some(grant) => holder.observe(&origin, &grant),
                None => holder.forget(&origin),
            }
        }
        // What was held back may start, and what runs may have to stop.
        ctx.agenda.workloads(self.observed.keys().cloned());
    }

    /// Takes the answer to a write of the agent's Lease.
    pub(crate) fn answered(&mut self, ticket: &Ticket, answer: WriteOutcome) {
        answer_single(&mut self.lease, ticket.purpose == Purpose::BeatCreate, answer);
    }

    /// The clock was set back: the ends of grants are not known any more. One that was set forward ends them early.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration, ctx: &mut Context) {
        if let (Some(holder), true) = (&mut self.holder, by.is_negative()) {
            holder.void_grants(signed_nanos(by));
        }
        ctx.agenda.workloads(self.observed.keys().cloned());
    }

    /// Records a clone; `None` if it is gone.
    pub(crate) fn observe_clone(&mut self, key: &Key, clone: Option<&Workload>) {
        let stamp = clone.and_then(|clone| stamp_of(&clone.metadata));
        match (stamp, self.observed.get(key)) {
            (Some(stamp), Some((known, _))) if stamp == *known => {}
            (Some(stamp), _) => {
                let beats = self.holder.as_ref().map_or(0, GrantHolder::sequence);
                self.observed.insert(key.clone(), (stamp, beats));
            }
            (None, _) => {
                self.observed.remove(key);
            }
        }
    }

    /// Records a pod; `None` if it is gone, has ended, or belongs to no clone.
    pub(crate) fn observe_pod(&mut self, key: &Key, pod: Option<&CloneOfPod>, ctx: &mut Context) {
        let clones = self.pods.observe(key, pod).into_iter();
        clones.for_each(|clone| ctx.agenda.now(Reevaluation::Workload(clone)));
    }

    /// Whether a clone must not be admitted now.
    pub(crate) fn holds_back(&self, key: &Key, clone: &Workload, ctx: &Context) -> bool {
        let is = |condition| is_true(&clone.status.conditions, condition);
        // A fenced clone stays fenced.
        let waits = || is(EVICTED) || self.verdict(key, clone, ctx) != Some(CopyVerdict::Start);
        stamp_of(&clone.metadata).is_some() && !is(ADMITTED) && waits()
    }

    /// Clones that are to be evicted.
    pub(crate) fn fenced(&self, clones: &Workloads, ctx: &Context) -> BTreeSet<Key> {
        let is_fenced = |key: &&Key| {
            let record = clones.get(key);
            record.is_some_and(|record| self.fence(key, record.object(), ctx).is_some())
        };
        self.observed.keys().filter(is_fenced).cloned().collect()
    }

    /// The eviction of a clone at the end of its grant.
    pub(crate) fn fence(&self, key: &Key, clone: &Workload, ctx: &Context) -> Option<PodFailure> {
        let is = |condition| is_true(&clone.status.conditions, condition);
        let runs = is(ADMITTED) && !is(EVICTED);
        let fenced = runs && self.verdict(key, clone, ctx) == Some(CopyVerdict::Fence);
        let message = NO_GRANT.to_owned();
        fenced.then_some(PodFailure { at: ctx.now, reason: FENCED, message })
    }

    /// Ends the pods of a clone at the end of its grant, and looks again when the present one ends.
    pub(crate) fn evaluate(&self, key: &Key, clone: &Workload, ctx: &mut Context) {
        let evicted = find(&clone.status.conditions, EVICTED);
        let is_fenced = evicted.is_some_and(|one| one.status == "True" && one.reason == FENCED);
        if is_fenced || self.fence(key, clone, ctx).is_some() {
            self.pods.end(key, ctx);
        }
        let deadline = origin(clone).zip(self.holder.as_ref());
        let deadline = deadline.and_then(|(origin, holder)| holder.deadline(origin));
        let leased = stamp_of(&clone.metadata).is_some();
        if let Some(at) = deadline.map(timestamp).filter(|at| leased && *at > ctx.now) {
            ctx.agenda.at(at, Reevaluation::Workload(key.clone()));
        }
    }

    /// Takes the answer to the deletion of a pod.
    pub(crate) fn pod_answered(&mut self, ticket: &Ticket, answer: &WriteOutcome) {
        self.pods.answered(&ticket.target.key, answer);
    }

    /// Writes a beat if one is due, or if a clone waits for its echo.
    pub(crate) fn beat<'a>(
        &mut self,
        clones: impl Fn(&Key) -> Option<&'a Workload>,
        ctx: &mut Context,
    ) {
        let Some(next) = self.holder.as_ref().and_then(GrantHolder::next_beat).map(timestamp)
        else {
            return;
        };
        if next > ctx.now && !self.awaits_beat(clones, ctx) {
            return ctx.agenda.at(next, Reevaluation::Grants);
        }
        let target = Target::home(Subject::Lease, &agent_lease(&self.namespace));
        let base = self.lease.as_ref().map(Tracked::stamp).unwrap_or_default();
        let waiter = Reevaluation::Grants;
        if !ctx.free_or_wait(&target, &base, &waiter) {
            return;
        }
        let Some(holder) = &mut self.holder else {
            return;
        };
        let purpose = if self.lease.is_some() { Purpose::Beat } else { Purpose::BeatCreate };
        let fields = beat_fields(&holder.beat(engine_time(ctx.now)));
        submit(Intent { target, purpose, base, waiter }, self.lease.as_ref(), fields, ctx);
        if let Some(next) = holder.next_beat() {
            ctx.agenda.at(timestamp(next), Reevaluation::Grants);
        }
    }

    /// Whether a clone starts after the next echo.
    fn awaits_beat<'a>(
        &self,
        clones: impl Fn(&Key) -> Option<&'a Workload>,
        ctx: &Context,
    ) -> bool {
        let sequence = self.holder.as_ref().map(GrantHolder::sequence);
        let mut recent =
            self.observed.iter().filter(|(_, (_, observed_at))| Some(*observed_at) == sequence);
        recent.any(|(key, _)| {
            let clone = clones(key).filter(|one| !is_true(&one.status.conditions, EVICTED));
            clone.is_some_and(|one| self.verdict(key, one, ctx) == Some(CopyVerdict::AwaitEcho))
        })
    }

    /// What becomes of a clone with a stamp. Before the Leases are listed it waits.
    fn verdict(&self, key: &Key, clone: &Workload, ctx: &Context) -> Option<CopyVerdict> {
        let (stamp, holder) = (stamp_of(&clone.metadata)?, self.holder.as_ref()?);
        let (_, observed_at) = self.observed.get(key).filter(|(known, _)| *known == stamp)?;
        let admitted = clone.is_admitted();
        let copy = LeasedCopy { stamp, admitted, observed_at: *observed_at };
        Some(holder.verdict(origin(clone)?, &copy, engine_time(ctx.now)))
    }
}

/// The manager that a clone belongs to.
fn origin(clone: &Workload) -> Option<&str> {
    label(&clone.metadata, MULTI_KUEUE_ORIGIN)
}
