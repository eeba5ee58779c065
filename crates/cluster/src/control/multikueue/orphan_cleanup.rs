//! Orphan cleanup: copies on workers whose Workload the hub does not have (docs/reference/dispatch.md §9).
//!
//! Workers are compared with the hub after every list of either, and every `gcInterval`. What is found is evaluated like any
//! Workload; the breaker of a worker stops it if too much is found at once.

use std::time::Duration;

use dispatch::{OrphanScan, find_orphans};
use jiff::Timestamp;
use runtime::watch::Key;

use super::{worker::Worker, worker_clusters::WorkerClusters};
use crate::control::{
    context::Context, fleet::FleetRegistry, outbox::after, timers::Reevaluation,
    workloads::Workloads,
};

/// See the module.
#[derive(Debug)]
pub(super) struct OrphanCleanup {
    /// How often workers are compared with the hub; never if unset.
    interval: Option<Duration>,
    next_at: Option<Timestamp>,
}

impl OrphanCleanup {
    pub(super) fn new(interval: Option<Duration>) -> Self {
        Self { interval, next_at: None }
    }

    /// Every `gcInterval`: evaluates everything that a worker has and the hub does not know.
    pub(super) fn collect_garbage(
        &mut self,
        workers: &mut WorkerClusters,
        workloads: &Workloads,
        ctx: &mut Context,
    ) {
        let Some(interval) = self.interval else {
            return;
        };
        if self.next_at.is_some_and(|at| at > ctx.now) {
            return;
        }
        let next = after(ctx.now, interval);
        ctx.agenda.at(next, Reevaluation::GarbageCollection);
        // The first call only starts the interval: after each list, `compare` looks at the worker.
        if self.next_at.replace(next).is_none() {
            return;
        }
        for (_, worker) in workers.iter_mut().filter(|(_, worker)| worker.is_listed()) {
            let orphans = sweep(worker, workloads, None, ctx).orphans;
            if worker.breaker.recount(orphans.len()) {
                ctx.agenda.now(Reevaluation::Clusters);
            }
            ctx.agenda.workloads(orphans.iter().filter_map(|(name, _)| parse_key(name)));
        }
    }
}

/// Compares a worker with the hub, after a list of either. `complete` says whether the hub was listed.
pub(super) fn compare(
    workers: &mut WorkerClusters,
    name: &str,
    (workloads, complete): (&Workloads, bool),
    ctx: &mut Context,
) -> bool {
    // With an incomplete list of the hub, copies of Workloads that exist would be orphans.
    let Some(worker) = workers.by_name_mut(name).filter(|one| one.is_listed() && complete) else {
        return false;
    };
    let n_on_hub = worker.breaker.is_first().then_some(workloads.len());
    let sweep = sweep(worker, workloads, n_on_hub, ctx);
    worker.breaker.compare(name, &sweep);
    ctx.agenda.now(Reevaluation::Clusters);
    true
}

/// Compares every worker with the hub. Returns whether any was compared.
pub(super) fn compare_all(
    workers: &mut WorkerClusters,
    workloads: &Workloads,
    complete: bool,
    ctx: &mut Context,
) -> bool {
    let names = workers.names();
    let compared = names.iter().filter(|name| compare(workers, name, (workloads, complete), ctx));
    compared.count() > 0
}

/// Whether copies of a deleted Workload must stay: the breaker of their worker has tripped and no user has confirmed.
pub(super) fn breaker_holds(
    workers: &WorkerClusters,
    key: &Key,
    registry: &FleetRegistry,
    ctx: &Context,
) -> bool {
    let mut concerned = workers.concerned(key, ctx.outbox.writes());
    concerned
        .any(|(name, worker)| worker.breaker.is_tripped() && !registry.is_cleanup_confirmed(name))
}

/// Compares what a worker has with the hub. `n_on_hub` is given for the first comparison.
fn sweep(
    worker: &Worker,
    workloads: &Workloads,
    n_on_hub: Option<usize>,
    ctx: &Context,
) -> OrphanScan {
    let on_hub =
        |name: &str| workloads.get(&parse_key(name)?).map(|record| index::epoch(record.object()));
    find_orphans(&worker.listed(ctx.outbox.writes()), on_hub, n_on_hub)
}

/// The key of `namespace/name`.
fn parse_key(name: &str) -> Option<Key> {
    let (namespace, name) = name.split_once('/')?;
    Some(Key { namespace: Some(namespace.into()), name: name.into() })
}
