//! Scheduling cycles, run until no Workload gets anything more.
//!
//! While no Workload gets anything, a head is evaluated a few times only. It may have further flavors to try; but a blocked
//! head of a StrictFIFO queue, or one whose targets are being evicted, would be evaluated forever. The next event runs
//! cycles again.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crds::v1beta2::Workload;
use dispatch::{DispatchedEntry, Fleet, FleetPlacer};
use engine::{CycleEntry, Engine, Event, ids::WorkloadId};
use index::Index;
use jiff::Timestamp;
use runtime::watch::Key;

use super::{
    block_admission::{GatedPlacer, PodsReadyGate, pending_message},
    preemption_counts::PreemptionCounts,
    second_passes,
    verdict::{Verdict, VerdictInputs},
};
use crate::control::{
    context::Context,
    measurement::Measurement,
    outbox::after,
    time::{engine_time, timestamp},
    timers::Reevaluation,
    workloads::{Transition, Workloads},
};

/// Evaluations of one head while no Workload gets anything.
const MAX_EVALUATIONS: usize = 8;

/// Cycles of one decision, before other machines decide.
const MAX_CYCLES: usize = 256;

/// The longest time for which a message may show old numbers.
const REFRESH_PERIOD: Duration = Duration::from_secs(60);

/// Heads that a part of a cycle processes.
const HEADS_PER_PART: usize = 64;

/// What an entry asks of the fleet. `None` for an entry that needs no cluster.
pub(crate) type DispatchedEntryOf = fn(&Index, &Workloads, &CycleEntry) -> Option<DispatchedEntry>;

/// Whether a reservation of a Workload changes what pods take of nodes: it accounts for pods that were charged to their nodes before.
pub(crate) type ChangesNodes<'a> = &'a dyn Fn(&Key, &Workload) -> bool;

/// What cycles did.
#[derive(Debug, Default)]
pub(crate) struct CyclesRun {
    /// A Workload got quota, or targets are evicted.
    pub(crate) progress: bool,
    /// Workloads that got quota.
    pub(crate) reserved: Vec<Key>,
    /// Nodes change for the engine with these reservations.
    changes_nodes: bool,
}

/// Evaluations of heads since a Workload last got something.
#[derive(Default)]
struct Evaluations(BTreeMap<WorkloadId, usize>);

impl Evaluations {
    /// Counts the heads of a cycle. Returns whether another cycle is worth running.
    fn count(&mut self, heads: &[WorkloadId], progress: bool) -> bool {
        if progress {
            self.0.clear();
            return true;
        }
        let mut worthwhile = false;
        for &head in heads {
            let evaluations = self.0.entry(head).or_default();
            *evaluations += 1;
            worthwhile |= *evaluations <= MAX_EVALUATIONS;
        }
        worthwhile
    }
}

/// What cycles change: the scheduler's parts and the fleet.
pub(super) struct SchedulingCycles<'a> {
    pub(super) engine: &'a mut Engine,
    pub(super) index: &'a Index,
    pub(super) gate: &'a mut PodsReadyGate,
    pub(super) fleet: &'a mut Fleet,
    pub(super) work_of: DispatchedEntryOf,
    pub(super) changes_nodes: ChangesNodes<'a>,
    pub(super) preemption_counts: &'a mut PreemptionCounts,
    pub(super) explain_after: Duration,
    /// Since when messages may have old numbers.
    pub(super) stale_since: &'a mut Option<Timestamp>,
    /// Workloads whose requests to a cluster were changed.
    pub(super) edited: &'a mut BTreeSet<WorkloadId>,
    /// Something changed since the last cycle that cycles depend on.
    pub(super) pending: &'a mut bool,
}

impl SchedulingCycles<'_> {
    /// Runs cycles if something changed that they depend on.
    pub(super) fn run(mut self, workloads: &mut Workloads, ctx: &mut Context) -> CyclesRun {
        let mut run = CyclesRun::default();
        self.wake(ctx);
        // Second passes precede heads (docs/reference/kueue.md §3.7).
        run.progress |= self.second_passes(workloads, ctx);
        if !std::mem::take(self.pending) {
            return run;
        }
        let mut evaluations = Evaluations::default();
        for _ in 0..MAX_CYCLES {
            let verdicts = self.evaluating_cycle(workloads, ctx);
            let heads: Vec<WorkloadId> = verdicts.iter().map(|(id, _)| *id).collect();
            let progress = self.take_verdicts(verdicts, workloads, &mut run, ctx);
            run.progress |= progress;
            // A further cycle would count pods that are charged to their nodes with the reservation, too.
            if run.changes_nodes {
                break;
            }
            if !evaluations.count(&heads, progress) {
                self.gate.end_run();
                self.await_refresh(ctx);
                return run;
            }
        }
        // Nodes change first, or the budget is used up: the next round or decision continues, after other machines have had theirs.
        *self.pending = true;
        run
    }

    /// Requeues Workloads whose wake-up key has room now, and those that wait with another request than they have now.
    fn wake(&mut self, ctx: &mut Context) {
        *self.pending |= ctx.agenda.take_fleet();
        let woken = self.fleet.woken_keys(engine_time(ctx.now));
        let edited = std::mem::take(self.edited);
        let edited = edited.into_iter().filter_map(|id| self.fleet.requeue_key(id));
        let edited: Vec<_> = edited.collect();
        for key in self.gate.take_opened().into_iter().chain(woken).chain(edited) {
            self.engine.apply(Event::ClusterCapacity(key));
            *self.pending = true;
        }
        if let Some(at) = self.fleet.next_wake_at() {
            ctx.agenda.at(timestamp(at), Reevaluation::Fleet);
        }
        if self.stale_since.is_some_and(|since| after(since, REFRESH_PERIOD) <= ctx.now) {
            self.engine.apply(Event::RefreshMessages);
            *self.stale_since = None;
            *self.pending = true;
        }
    }

    /// Has Workloads evaluated again whose messages may have old numbers, once per period: the engine predicts refusals, and a
    /// Workload whose refusal was predicted keeps the numbers of its last evaluation.
    fn await_refresh(&mut self, ctx: &mut Context) {
        if self.engine.has_stale_messages() {
            let since = *self.stale_since.get_or_insert(ctx.now);
            ctx.agenda.at(after(since, REFRESH_PERIOD), Reevaluation::Fleet);
        }
    }

    /// The next cycle that evaluates a head. A cycle without an entry moves on to later heads of its queues, whose refusal
    /// was foreseen.
    fn evaluating_cycle(
        &mut self,
        workloads: &Workloads,
        ctx: &mut Context,
    ) -> Vec<(WorkloadId, Verdict)> {
        loop {
            let verdicts = self.cycle(workloads, ctx);
            if !verdicts.is_empty() || !self.engine.has_pending_heads() {
                return verdicts;
            }
        }
    }

    fn cycle(&mut self, workloads: &Workloads, ctx: &mut Context) -> Vec<(WorkloadId, Verdict)> {
        let now = engine_time(ctx.now);
        let Self { engine, index, gate, fleet, work_of, .. } = self;
        let lookup = |entry: &CycleEntry| work_of(index, workloads, entry);
        let mut placer = GatedPlacer::new(FleetPlacer::new(fleet, &lookup, now), gate);
        let mut cycle = engine.begin(now);
        while !cycle.advance(&mut placer, HEADS_PER_PART) {}
        drop(cycle);
        let entries = engine.entries().to_vec();
        placer.placing.finish_cycle(&entries);
        let GatedPlacer { placing: FleetPlacer { refusals, .. }, refused: gated, .. } = placer;
        let counts = self.preemption_counts.count(&entries, self.engine.names());
        ctx.measurements.extend(counts);
        let not_before = after(ctx.now, self.explain_after);
        let inputs =
            VerdictInputs { engine: self.engine, index: self.index, fleet, workloads, not_before };
        // The engine takes the gate's refusal for a lack of cluster capacity; its message would be
        // wrong.
        let verdict = |entry: &CycleEntry| {
            if gated.contains(&entry.workload) {
                Verdict::Wait(pending_message(not_before))
            } else {
                inputs.verdict(entry, refusals.get(&entry.workload).map(Vec::as_slice))
            }
        };
        entries.iter().map(|entry| (entry.workload, verdict(entry))).collect()
    }

    /// Proposes what a cycle decided. Returns whether a Workload got something.
    fn take_verdicts(
        &mut self,
        verdicts: Vec<(WorkloadId, Verdict)>,
        workloads: &mut Workloads,
        run: &mut CyclesRun,
        ctx: &mut Context,
    ) -> bool {
        let mut progress = false;
        if !verdicts.is_empty() {
            let admitted = verdicts.iter().any(|(_, one)| matches!(one, Verdict::Reserve(_)));
            ctx.measurements.push(Measurement::Attempt { admitted });
        }
        for (id, verdict) in verdicts {
            let Some(key) = workloads.by_id(id).map(|(key, _)| key.clone()) else {
                continue;
            };
            // A preemptor whose targets are all leaving gets `Wait`, so waiting for them counts as no progress.
            progress |= !matches!(verdict, Verdict::Wait(_) | Verdict::NotReplaced(_));
            match verdict {
                Verdict::Reserve(reservation) => {
                    workloads.propose_quietly(&key, Transition::Reserve(reservation));
                    // blockAdmission counts the reservation before the API shows it.
                    let record = workloads.get(&key);
                    self.gate.watch(&key, record);
                    run.changes_nodes |=
                        record.is_some_and(|one| (self.changes_nodes)(&key, one.object()));
                    run.reserved.push(key.clone());
                }
                Verdict::Preempt(evictions, pending) => {
                    workloads.explain(&key, pending);
                    for (target, eviction) in evictions {
                        workloads.evict(target, eviction, ctx);
                    }
                }
                Verdict::Wait(pending) => workloads.explain(&key, pending),
                Verdict::Move(topologies) => {
                    workloads.propose_quietly(&key, Transition::AssignTopology(topologies));
                }
                Verdict::Evict(request) => workloads.evict(id, request, ctx),
                Verdict::NotReplaced(message) => {
                    second_passes::report(&key, workloads, message, ctx);
                }
            }
            ctx.agenda.now(Reevaluation::Workload(key));
        }
        progress
    }
}
