//! Orphan cleanup: copies on workers whose Workload the hub does not have (docs/reference/dispatch.md §9).
//!
//! Workers are compared with the hub after every list of either, and every `gcInterval`. What is found is evaluated like any
//! Workload; the breaker of a worker stops it if too much is found at once.

use std::time::Duration;

use dispatch::{HubIncarnation, HubWorkload, OrphanScan, PresentWorkload, find_orphans};
use jiff::{SignedDuration, Timestamp};
use runtime::watch::Key;

use super::incarnation::IncarnationRecord;
use crate::control::{
    context::Context,
    fleet::FleetRegistry,
    key_map::KeyMap,
    measurement::{Measurement, WorkerMeasurement},
    multikueue::{
        dispatch_inputs::HubObjects,
        workers::{worker::Worker, worker_clusters::WorkerClusters},
    },
    outbox::after,
    time::moved,
    timers::Reevaluation,
    workloads::TrackedWorkload,
};

/// Uids of Workloads whose deletion this process has observed, while a worker may have copies.
pub(crate) type DepartedWorkloads = KeyMap<Key, Box<str>>;

/// What a worker is compared with.
pub(crate) struct HubHistory<'a> {
    pub(crate) objects: HubObjects<'a>,
    pub(crate) departed: &'a DepartedWorkloads,
    pub(crate) incarnation: &'a mut IncarnationRecord,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct OrphanCleanup {
    /// How often workers are compared with the hub; never if unset.
    interval: Option<Duration>,
    next_at: Option<Timestamp>,
}

impl OrphanCleanup {
    pub(crate) fn new(interval: Option<Duration>) -> Self {
        Self { interval, next_at: None }
    }

    /// The clock jumped.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self { interval: _, next_at } = self;
        *next_at = next_at.map(|at| moved(at, by));
    }

    /// Every `gcInterval`: evaluates everything that a worker has and the hub does not know.
    pub(crate) fn collect_garbage(
        &mut self,
        workers: &mut WorkerClusters,
        hub: &HubHistory<'_>,
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
        let Some(incarnation) = hub.incarnation.present() else {
            return;
        };
        for (name, worker) in workers.iter_mut().filter(|(_, worker)| worker.is_listed()) {
            let scan = hub.sweep(worker, incarnation, None, ctx);
            let annotated = hub.objects.registry.is_cleanup_confirmed(name);
            if worker.breaker.recount(name, annotated, &scan) {
                ctx.agenda.now(Reevaluation::Cluster(name.clone()));
            }
            measure(name, worker, hub.objects.registry, ctx);
            ctx.agenda.workloads(scan.orphans.iter().filter_map(|(name, _)| parse_key(name)));
        }
    }
}

/// Compares a worker with the hub, after a list of either. Returns whether it was compared.
pub(crate) fn compare(
    workers: &mut WorkerClusters,
    name: &str,
    hub: &mut HubHistory<'_>,
    ctx: &mut Context,
) -> bool {
    // With an incomplete list of the hub, copies of Workloads that exist would be orphans.
    let worker = workers.by_name_mut(name).filter(|one| one.is_listed() && hub.objects.complete);
    let (Some(worker), Some(incarnation)) = (worker, hub.incarnation.present()) else {
        return false;
    };
    // Fewer Workloads than copies mean a restored backup only after a restart
    // (docs/reference/dispatch.md §9).
    let n_on_hub = worker.breaker.is_first().then_some(hub.objects.workloads.len());
    let sweep = hub.sweep(worker, incarnation, n_on_hub, ctx);
    let annotated = hub.objects.registry.is_cleanup_confirmed(name);
    worker.breaker.compare(name, annotated, &sweep);
    measure(name, worker, hub.objects.registry, ctx);
    if sweep.hub_went_back {
        hub.incarnation.hub_went_back();
    }
    ctx.agenda.now(Reevaluation::Cluster(name.into()));
    true
}

/// Measures what a person is asked about. A worker that was removed may be connected for a while; its series are gone.
fn measure(name: &str, worker: &Worker, registry: &FleetRegistry, ctx: &mut Context) {
    if registry.is_registered(name) {
        let workloads = worker.breaker.n_asked();
        let cluster = name.to_owned();
        let disputes = WorkerMeasurement::Disputes { cluster, workloads };
        ctx.measurements.push(Measurement::Worker(disputes));
    }
}

/// Compares every worker with the hub. Returns whether any was compared.
pub(crate) fn compare_all(
    workers: &mut WorkerClusters,
    hub: &mut HubHistory<'_>,
    ctx: &mut Context,
) -> bool {
    let names = workers.names();
    let compared = names.iter().filter(|name| compare(workers, name, hub, ctx));
    compared.count() > 0
}

/// The hub's Workload, as the stamp of a copy is compared with it.
pub(crate) fn present_workload(record: &TrackedWorkload) -> Option<PresentWorkload<'_>> {
    let uid = record.object().metadata.uid.as_deref()?;
    Some(PresentWorkload { uid, version: record.version() })
}

impl HubHistory<'_> {
    /// Compares what a worker has with the hub. `n_on_hub` is given for the first comparison.
    fn sweep(
        &self,
        worker: &Worker,
        incarnation: &HubIncarnation,
        n_on_hub: Option<usize>,
        ctx: &Context,
    ) -> OrphanScan {
        let on_hub = |name: &str| {
            let key = parse_key(name);
            let record = key.as_ref().and_then(|key| self.objects.workloads.get(key));
            HubWorkload {
                epoch: record.map(|record| index::epoch(record.object())),
                present: record.and_then(present_workload),
                deleted_uid: key.and_then(|key| self.departed.get(&key)).map(|uid| &**uid),
            }
        };
        find_orphans(&worker.listed(ctx.outbox.writes()), on_hub, incarnation, n_on_hub)
    }
}

/// The key of `namespace/name`.
fn parse_key(name: &str) -> Option<Key> {
    let (namespace, name) = name.split_once('/')?;
    Some(Key { namespace: Some(namespace.into()), name: name.into() })
}
