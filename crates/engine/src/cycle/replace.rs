//! Holders whose machine failed: new places for the pods that stood there, or the way out.
//!
//! They come before all heads and take no new quota. One failed machine is replaced; a Workload that has lost several at
//! once is evicted, and so is one that finds no replacement, unless the gate TASFailedNodeReplacementFailFast is off: then
//! it is looked at again when something was freed. Source: spec/kueue-core.md §3.7, §4.8 step 3, §4.11.

use smallvec::SmallVec;

use crate::cycle::nominate::{Entry, Outcome};
use crate::cycle::requeue::Requeue;
use crate::flavors::assign::{Assignment, Choice, Mode, PodSetAssignment};
use crate::ids::{HostId, QueueId, WorkloadId};
use crate::reason::Reason;
use crate::spec::PodSetAdmission;
use crate::state::State;
use crate::topology::{self, TopologyReason};

/// A holder and the machines that failed under it.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    workload: WorkloadId,
    hosts: SmallVec<[HostId; 1]>,
    /// What had been freed when it was last looked at in vain.
    tried: Option<u64>,
}

/// Everybody whose machine failed.
#[derive(Debug, Default, Clone)]
pub(crate) struct Failures {
    open: Vec<Failure>,
    /// How often something was freed or added that may serve as a replacement.
    freed: u64,
}

impl Failures {
    /// All machines that failed under a Workload.
    pub(crate) fn set(&mut self, workload: WorkloadId, hosts: SmallVec<[HostId; 1]>) {
        self.forget(workload);
        if !hosts.is_empty() {
            self.open.push(Failure { workload, hosts, tried: None });
        }
    }

    pub(crate) fn forget(&mut self, workload: WorkloadId) {
        self.open.retain(|one| one.workload != workload);
    }

    pub(crate) fn freed(&mut self) {
        self.freed += 1;
    }
}

/// Decides about everybody whose machine failed, most urgent first.
pub(super) fn replace(state: &mut State) -> Vec<Entry> {
    if state.failures.open.is_empty() {
        return Vec::new();
    }
    let mut open = std::mem::take(&mut state.failures.open);
    let freed = state.failures.freed;
    let holds = |one: &Failure| {
        let admission = state.workloads.get(one.workload).and_then(|one| one.admission.as_deref());
        admission.is_some_and(|admission| !admission.evicted)
    };
    open.retain(holds);
    open.sort_by_key(|one| {
        let workload = state.workloads.at(one.workload);
        let name = state.names.workloads.name(one.workload).to_owned();
        (std::cmp::Reverse(workload.priority), workload.queued_at, name)
    });
    let mut entries = Vec::new();
    for mut failure in open {
        if failure.tried == Some(freed) {
            state.failures.open.push(failure);
            continue;
        }
        let Some(entry) = decide(state, &mut failure) else {
            continue;
        };
        if entry.outcome == Outcome::Unreplaced {
            state.failures.open.push(Failure { tried: Some(freed), ..failure });
        }
        entries.push(entry);
    }
    entries
}

/// `None` if nobody stands on these machines any more.
fn decide(state: &mut State, failure: &mut Failure) -> Option<Entry> {
    let id = failure.workload;
    let admission = state.workloads.at(id).admission.as_deref()?;
    let (queue, held) = (admission.queue, admission.pod_sets.clone());
    failure.hosts.retain(|host| topology::stands_on(state, &held, *host));
    let &first = failure.hosts.first()?;
    let moved =
        if failure.hosts.len() > 1 { None } else { Some(topology::replace(state, id, first)) };
    Some(match moved {
        Some(Ok(moved)) => {
            move_pods(state, id, moved);
            entry(state, id, queue, Outcome::Replaced)
        }
        Some(Err(failed)) if !state.settings.evict_unreplaced => {
            let mut entry = entry(state, id, queue, Outcome::Unreplaced);
            explain(&mut entry, failed);
            entry
        }
        _ => {
            let mut entry = entry(state, id, queue, Outcome::NodesFailed);
            let hosts = failure.hosts.iter().copied().collect();
            if let Some(one) = entry.assignment.pod_sets.first_mut() {
                one.reasons.push(Reason::NodesFailed(hosts));
            }
            crate::apply::mark_evicted(state, id);
            entry
        }
    })
}

/// Enters new places into the books.
fn move_pods(state: &mut State, id: WorkloadId, moved: topology::Moved) {
    let workload = state.workloads.at_mut(id);
    let shape = workload.shape;
    let Some(mut admission) = workload.admission.take() else {
        return;
    };
    state.topologies.free(&admission.pod_sets, &shape, &state.shapes);
    for (pod_set, domains) in moved {
        admission.pod_sets[pod_set].domains = domains;
    }
    state.topologies.place(&admission.pod_sets, &shape, &state.shapes);
    state.workloads.at_mut(id).admission = Some(admission);
}

/// The decision, with what the Workload holds now.
fn entry(state: &mut State, id: WorkloadId, queue: QueueId, outcome: Outcome) -> Entry {
    let admission = state.workloads.at(id).admission.as_deref();
    let held = admission.map(|one| one.pod_sets.clone()).unwrap_or_default();
    let pod_sets = held.into_iter().map(|one| as_assigned(state, one)).collect();
    Entry {
        workload: id,
        queue,
        outcome,
        assignment: Assignment { pod_sets, ..Assignment::default() },
        targets: Vec::new(),
        requeue: Requeue::Nowhere,
        nominated_borrow: 0,
        reserved: false,
        generation: state.queue(queue).generation,
        shape: state.shape_of(id),
    }
}

fn as_assigned(state: &mut State, held: PodSetAdmission) -> PodSetAssignment {
    let choices = held.resources.iter().map(|&(resource, flavor, amount)| Choice {
        resource,
        flavor,
        slot: state.tree.slot(flavor, resource),
        amount,
        mode: Mode::Fit,
        borrow: 0,
        tried: None,
    });
    PodSetAssignment {
        count: held.count,
        choices: choices.collect(),
        domains: held.domains,
        ..PodSetAssignment::default()
    }
}

fn explain(entry: &mut Entry, (pod_set, reason): (usize, TopologyReason)) {
    let one = &mut entry.assignment.pod_sets[pod_set];
    one.reasons.push(Reason::Placement(Box::new(reason)));
    one.choices.iter_mut().for_each(|choice| choice.mode = Mode::Preempt);
}
