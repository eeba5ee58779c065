//! Scheduling cycles, and what they decided turned into wants.
//!
//! As long as nobody gets anything, a head is looked at only a few times: it may have further flavors to try, but the head
//! of a strict queue that does not fit would be looked at for ever, and so would one whose victims are on their way. The
//! next event looks again.

use std::{collections::BTreeMap, sync::Arc};

use ::dispatch::{
    AssignedWorkload, DispatchedEntry, FleetPlacer, PlacementRefusal, placement_message,
};
use crds::names::{conditions::EVICTED, reasons};
use engine::{CycleEntry, CycleOutcome, Event, explain, ids::WorkloadId};
use jiff::Timestamp;
use runtime::watch::Key;

use super::{
    Control, Role,
    capacity::carried,
    due::What,
    held::after,
    pods_gate::{Guarded, for_pods},
    record::{Evict, Pending, Record, Reserve, is},
    time,
};

/// How often a head is looked at while nobody gets anything.
const MOST_LOOKS: usize = 8;

/// Cycles before others get their turn.
const MOST_CYCLES: usize = 256;

/// The one worker that a thin worker knows: itself.
pub(super) const LOCAL: &str = "local";

/// How often heads were looked at since somebody last got something.
#[derive(Default)]
struct Looks(BTreeMap<WorkloadId, usize>);

/// What one entry of a cycle came to.
enum Verdict {
    Reserve(Reserve),
    Preempt(Vec<(WorkloadId, Evict)>, Pending),
    Wait(Pending),
}

impl Looks {
    /// Takes note of a cycle's heads; whether there is any point in another cycle.
    fn go_on(&mut self, heads: &[WorkloadId], progress: bool) -> bool {
        if progress {
            self.0.clear();
            return true;
        }
        let mut new = false;
        for &head in heads {
            let looks = self.0.entry(head).or_default();
            *looks += 1;
            new |= *looks <= MOST_LOOKS;
        }
        new
    }
}

impl Control {
    /// Runs cycles until nobody gets anything more; whether anything was decided.
    pub(super) fn run_cycles(&mut self, now: Timestamp) -> bool {
        if self.due.fleet {
            self.due.fleet = false;
            self.schedule = true;
        }
        if let Some(key) = self.pods_gate.opened() {
            self.engine.apply(Event::ClusterCapacity(key));
            self.schedule = true;
        }
        for key in self.fleet.woken_keys(time(now)) {
            self.engine.apply(Event::ClusterCapacity(key));
            self.schedule = true;
        }
        if let Some(at) = self.fleet.next_wake_at() {
            self.due.at(super::timestamp(at), What::Fleet);
        }
        if !std::mem::take(&mut self.schedule) {
            return false;
        }
        let (mut looks, mut any) = (Looks::default(), false);
        for _ in 0..MOST_CYCLES {
            let (heads, progress) = self.run_cycle(now);
            any |= progress;
            if !looks.go_on(&heads, progress) {
                return any;
            }
        }
        self.schedule = true;
        any
    }

    /// One cycle: who was looked at, and whether somebody got something. Cycles in which nobody is evaluated decide nothing;
    /// each takes somebody out of line who will be refused.
    fn run_cycle(&mut self, now: Timestamp) -> (Vec<WorkloadId>, bool) {
        let mut verdicts = self.cycle(now);
        while verdicts.is_empty() && self.engine.has_pending_heads() {
            verdicts = self.cycle(now);
        }
        let heads = verdicts.iter().map(|(id, _)| *id).collect();
        let mut progress = false;
        for (id, verdict) in verdicts {
            let Some(key) = self.by_id.get(&id).cloned() else {
                continue;
            };
            progress |= !matches!(verdict, Verdict::Wait(_));
            self.take_verdict(&key, verdict, now);
        }
        (heads, progress)
    }

    fn cycle(&mut self, now: Timestamp) -> Vec<(WorkloadId, Verdict)> {
        let Self { engine, index, fleet, settings, workloads, by_id, pods_gate, .. } = self;
        let thin = settings.role == Role::Thin;
        let lookup = |entry: &CycleEntry| {
            let (config, request, given) = if thin {
                let request = index.request(entry.workload)?;
                let clone = workloads.get(by_id.get(&entry.workload)?)?.object();
                let given = request.pod_sets.iter().zip(&entry.assignment.pod_sets);
                let given = given.map(|(pods, one)| carried(clone, &pods.name, one.count));
                (LOCAL, request, given.collect())
            } else {
                index.dispatch_request(entry)?
            };
            let work = Arc::new(AssignedWorkload { request: Arc::clone(request), assigned: given });
            let turn = index.queue_order(entry.workload);
            Some(DispatchedEntry { config: config.to_owned(), work, order: turn })
        };
        let blocks = settings.patience.is_some_and(|patience| patience.blocks);
        let placing = FleetPlacer::new(fleet, &lookup, time(now));
        let mut placing = Guarded::new(placing, pods_gate, blocks);
        let entries = engine.cycle(time(now), &mut placing).to_vec();
        placing.placing.finish_cycle(&entries);
        let Guarded { placing: FleetPlacer { refusals: refused, .. }, waiting, .. } = placing;
        let not_before = after(now, settings.explain_after);
        entries
            .iter()
            .map(|entry| {
                let refused = refused.get(&entry.workload);
                let verdict = if waiting.contains(&entry.workload) {
                    Verdict::Wait(for_pods(not_before))
                } else {
                    self.verdict(entry, refused, not_before)
                };
                (entry.workload, verdict)
            })
            .collect()
    }

    fn verdict(
        &self,
        entry: &CycleEntry,
        refused: Option<&PlacementRefusal>,
        not_before: Timestamp,
    ) -> Verdict {
        let names = self.engine.names();
        if let CycleOutcome::Reserved { cluster } = entry.outcome {
            let thin = self.settings.role == Role::Thin;
            let admission = self.index.admission(&self.engine, entry);
            let flavors = admission.pod_set_assignments.iter().flat_map(|one| one.flavors.values());
            let queue = &admission.cluster_queue;
            let checks = if thin {
                Vec::new()
            } else {
                self.index.checks_for_flavors(queue, flavors.map(String::as_str))
            };
            let cluster = cluster.filter(|_| !thin).map(|id| self.fleet.name(id).into());
            return Verdict::Reserve(Reserve { admission, checks, cluster });
        }
        let message = match refused {
            Some(refused) => placement_message(refused, &self.fleet, names),
            None => explain::condition_message(&self.engine, entry),
        };
        let reason = explain::condition_reason(entry).to_owned();
        let gated = entry.outcome == CycleOutcome::PreemptionGated;
        let pending = Pending { reason, message, gated, not_before };
        let victims = self.victims(entry);
        if victims.is_empty() {
            return Verdict::Wait(pending);
        }
        Verdict::Preempt(victims, pending)
    }

    /// Who has to go for an entry and is not on its way yet.
    fn victims(&self, entry: &CycleEntry) -> Vec<(WorkloadId, Evict)> {
        let mut victims = Vec::new();
        if let CycleOutcome::Migrating { from } = entry.outcome
            && !self.leaves(from)
        {
            victims.push((from, self.migration(entry)));
        }
        let preempts = entry.outcome == CycleOutcome::Preempting;
        let targets = entry.targets.iter().filter(|one| preempts && !self.leaves(one.workload));
        for target in targets {
            let message = self.preemption_message(entry, target);
            let (reason, preempted) = (reasons::PREEMPTED, Some(target.reason));
            let evict = Evict { reason, cause: String::new(), message, preempted };
            victims.push((target.workload, evict));
        }
        victims
    }

    fn leaves(&self, id: WorkloadId) -> bool {
        self.record_of(id).is_some_and(|one| one.wants.evict.is_some() || is(one.object(), EVICTED))
    }

    /// The eviction of a variant in favour of a sibling with a better flavor.
    fn migration(&self, entry: &CycleEntry) -> Evict {
        let (uid, _) = self.record_of(entry.workload).map(Record::uids).unwrap_or_default();
        let message = ::index::status::migration_message(uid);
        let reason = reasons::FLAVOR_MIGRATION;
        Evict { reason, cause: String::new(), message, preempted: None }
    }

    fn preemption_message(&self, entry: &CycleEntry, target: &engine::PreemptionTarget) -> String {
        let uids = self.record_of(entry.workload).map(Record::uids).unwrap_or_default();
        let queue = |id: WorkloadId| {
            let record = self.record_of(id);
            let admission = record.and_then(|record| record.object().status.admission.as_ref());
            admission.map_or(String::new(), |one| format!("/{}", one.cluster_queue))
        };
        let preemptor = format!("/{}", self.engine.names().queues.name(entry.queue));
        let paths = (preemptor.as_str(), &*queue(target.workload));
        ::index::status::preemption_message(uids, target.reason, paths)
    }

    fn take_verdict(&mut self, key: &Key, verdict: Verdict, now: Timestamp) {
        match verdict {
            Verdict::Reserve(reserve) => {
                if let Some(record) = self.workloads.get_mut(key) {
                    record.trip = super::record::Trip::fresh(now);
                    record.wants.pending = None;
                    record.wants.reserve = Some(reserve);
                }
                self.note_at_gate(key);
            }
            Verdict::Preempt(victims, pending) => {
                self.wait(key, pending);
                for (victim, evict) in victims {
                    self.evict(victim, evict);
                }
            }
            Verdict::Wait(pending) => self.wait(key, pending),
        }
        self.due.now(What::Workload(key.clone()));
    }

    /// The same news again does not put off that it is told.
    fn wait(&mut self, key: &Key, pending: Pending) {
        let Some(record) = self.workloads.get_mut(key) else {
            return;
        };
        let not_before = match &record.wants.pending {
            Some(known) => known.not_before,
            None => pending.not_before,
        };
        record.wants.pending = Some(Pending { not_before, ..pending });
    }

    fn evict(&mut self, id: WorkloadId, evict: Evict) {
        if let Some(key) = self.by_id.get(&id).cloned()
            && let Some(record) = self.workloads.get_mut(&key)
        {
            record.wants.evict.get_or_insert(evict);
            self.due.now(What::Workload(key));
        }
    }
}
