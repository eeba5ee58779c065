//! Where a head goes that got nothing: back in line, aside, or parked together with its equals.
//!
//! Source: docs/reference/kueue.md §3.4.

use crate::cycle::nominate::{Entry, Outcome};
use crate::ids::WorkloadId;
use crate::queues::line::Line;
use crate::shape::Shapes;
use crate::spec::Strategy;
use crate::state::State;
use crate::workload::{ScanMemory, Workloads};

/// Where a head went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Requeue {
    /// It got what it wanted.
    #[default]
    Nowhere,
    /// Back in line: it is evaluated again in the next cycle.
    InLine,
    /// Inadmissible until something changes.
    Aside,
    /// Inadmissible, and with it everybody of its shape.
    WithShape,
}

/// Puts a head back and notes how far its scan of flavors got.
pub(super) fn requeue(state: &mut State, entry: &mut Entry) {
    let id = entry.workload;
    if entry.outcome == Outcome::Preempting {
        for target in &entry.targets {
            crate::apply::mark_evicted(state, target.workload);
        }
    }
    if let Outcome::Migrating { from } = entry.outcome {
        crate::apply::mark_evicted(state, from);
    }
    remember(state, entry);
    entry.requeue = destination(state, entry);
    let waits = matches!(
        entry.outcome,
        Outcome::Preempting | Outcome::Deferred | Outcome::Migrating { .. }
    );
    if let Outcome::NoRoom(key) = entry.outcome {
        state.workloads.wait(id, key);
    }
    let State { queues, workloads, shapes, .. } = state;
    let queue = queues[entry.queue.index()].as_mut().expect("invariant: heads have a queue");
    match entry.requeue {
        Requeue::Nowhere => {}
        Requeue::Aside => queue.line.set_aside(id, workloads),
        Requeue::InLine => queue.line.push_awake(id, workloads),
        Requeue::WithShape => {
            queue.line.push(id, workloads);
            park_with_shape(&mut queue.line, id, workloads, shapes);
        }
    }
    if waits {
        // It keeps the mark until it is admitted, even if its next attempts fail.
        queue.line.set_preemptor(id, queue.strategy == Strategy::BestEffortFifo);
    }
    state.list_if_head(entry.queue);
}

/// Parks everybody in a line who asks for the same as a Workload. A shape is kept as long as it is parked.
pub(super) fn park_with_shape(
    line: &mut Line,
    id: WorkloadId,
    workloads: &Workloads,
    shapes: &mut Shapes,
) {
    let one = workloads.at(id);
    for _ in 0..line.park_shape(one.shape, one.priority, workloads) {
        shapes.retain(one.shape);
    }
}

/// Puts a head back about which nothing was decided.
pub(super) fn give_back(state: &mut State, entry: &mut Entry) {
    entry.requeue = Requeue::InLine;
    let State { queues, workloads, .. } = state;
    let queue = queues[entry.queue.index()].as_mut().expect("invariant: heads have a queue");
    queue.line.push_awake(entry.workload, workloads);
    state.list_if_head(entry.queue);
}

fn destination(state: &State, entry: &Entry) -> Requeue {
    let queue = state.queue(entry.queue);
    match entry.outcome {
        Outcome::WrongNamespace | Outcome::NoRoom(_) => Requeue::Aside,
        _ if queue.strategy == Strategy::StrictFifo => Requeue::InLine,
        Outcome::Preempting
        | Outcome::Deferred
        | Outcome::Skipped
        | Outcome::Outranked
        | Outcome::Migrating { .. } => Requeue::InLine,
        _ if state.workloads.at(entry.workload).scan.is_some() => Requeue::InLine,
        Outcome::NoFit | Outcome::NoCandidates
            if state.settings.park_by_shape && entry.shape.replaces.is_none() =>
        {
            Requeue::WithShape
        }
        _ => Requeue::Aside,
    }
}

/// Only a head that has flavors left to try, and did not get or nearly get anything, goes on where it stopped.
fn remember(state: &mut State, entry: &Entry) {
    let goes_on = match entry.outcome {
        Outcome::NoFit | Outcome::NoCandidates | Outcome::Unmoved => true,
        // Without the gate whoever lost to another begins anew.
        Outcome::Skipped | Outcome::Outranked => state.settings.preserve_scan_progress,
        _ => false,
    };
    let memory =
        (goes_on && entry.assignment.has_untried()).then(|| Box::new(memory(state, entry)));
    state.workloads.at_mut(entry.workload).scan = memory;
}

fn memory(state: &State, entry: &Entry) -> ScanMemory {
    let mut tried = smallvec::SmallVec::new();
    for (index, one) in entry.assignment.pod_sets.iter().enumerate() {
        let pod_set = u16::try_from(index).unwrap_or(u16::MAX);
        for choice in &one.choices {
            tried.extend(choice.tried.map(|flavor| (pod_set, choice.resource, flavor)));
        }
    }
    ScanMemory { cycle: state.cycle, generation: entry.generation, tried }
}
