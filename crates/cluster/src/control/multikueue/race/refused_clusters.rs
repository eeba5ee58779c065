//! Clusters that are left out because they did not take a Workload (docs/reference/dispatch.md §3).

use std::sync::Arc;

use crds::names::{conditions::EVICTED, reasons::PODS_READY_TIMEOUT};
use dispatch::{ExclusionCause, Fleet, workload::RemoteCopy};
use engine::ids::ClusterId;
use index::status::find;
use jiff::Timestamp;

use super::RaceView;
use crate::control::{
    multikueue::{
        view::{evaluated_workload::EvaluatedWorkload, observed_workload::ObservedWorkload},
        workers::refused_writes::RefusedScope,
    },
    time::engine_time,
    timers::{Agenda, Reevaluation},
};

/// See the module.
pub(crate) struct RefusedClusters<'e> {
    pub(crate) workload: EvaluatedWorkload<'e>,
    pub(crate) fleet: &'e mut Fleet,
    pub(crate) now: Timestamp,
}

impl RefusedClusters<'_> {
    /// Leaves a cluster out that evicted or refused the Workload. `held_name` says why the name of a job is not free there.
    pub(crate) fn exclude(&mut self, cluster: ClusterId, held_name: Option<String>) {
        let worker = self.workload.worker(cluster, self.fleet);
        let (Some(worker), Some(record)) = (worker, self.workload.record()) else {
            return;
        };
        let (key, epoch) = (self.workload.key, index::epoch(record.object()));
        let evicted = || {
            let message = worker.eviction(key).map_or("", |one| one.message.as_str());
            format!("evicted there: {message}")
        };
        let refused = worker.refused.copy(key, epoch).map(|refused| refused.message.clone());
        let why = refused.or(held_name).unwrap_or_else(evicted);
        self.exclude_for_epoch(cluster, epoch, why.into());
    }

    /// Leaves a cluster out for what it did not take of this epoch.
    pub(crate) fn exclude_for_epoch(&mut self, cluster: ClusterId, epoch: u64, why: Box<str>) {
        let worker = self.workload.worker(cluster, self.fleet);
        let scope =
            worker.map_or(RefusedScope::Shape, |one| one.refused_scope(self.workload.key, epoch));
        self.exclude_for(cluster, scope, why);
    }

    /// Leaves a cluster out for what it did not take.
    pub(crate) fn exclude_for(&mut self, cluster: ClusterId, scope: RefusedScope, why: Box<str>) {
        let Some(request) = self.workload.request() else {
            return;
        };
        let cause = match scope {
            RefusedScope::Namespace => ExclusionCause::Namespace(request.namespace.clone()),
            RefusedScope::Kind => ExclusionCause::Kind(request.kind.clone()),
            RefusedScope::Shape => ExclusionCause::Requests(Arc::clone(request)),
        };
        self.fleet.exclude_cluster(cluster, cause, engine_time(self.now), why);
    }

    /// The nomination of a cluster ends: it is left out, and the others of the race as well.
    pub(crate) fn end_nomination(&mut self, cluster: ClusterId, why: Box<str>) {
        let Some(record) = self.workload.record() else {
            return;
        };
        // A nomination is cancelled only after no job is left (`CancelNomination`), and its epoch was raised.
        let epoch = index::epoch(record.object()).saturating_sub(1);
        if let Some(id) = record.id() {
            self.fleet.unplace(id);
        }
        self.exclude_others(cluster, epoch, &why);
        self.exclude_for_epoch(cluster, epoch, why);
    }

    /// A race goes on without an end, so a cluster that refused a copy is asked again after a pause.
    pub(crate) fn end_refusals(
        &self,
        hub: &ObservedWorkload,
        race: &RaceView,
        copies: &mut [RemoteCopy],
        agenda: &mut Agenda,
    ) {
        if race.clusters.is_none() || hub.recorded_cluster.is_some() {
            return;
        }
        let key = self.workload.key;
        for copy in copies.iter_mut().filter(|copy| copy.refused.is_some()) {
            let worker = self.workload.worker(copy.cluster, self.fleet);
            match worker.and_then(|one| one.refused.copy_until(key, hub.epoch)) {
                Some(until) if until <= self.now => copy.refused = None,
                Some(until) => agenda.at(until, Reevaluation::Workload(key.clone())),
                None => {}
            }
        }
    }

    /// In a race no other nominated cluster took the Workload either, with a refusal or without.
    fn exclude_others(&mut self, cluster: ClusterId, epoch: u64, why: &str) {
        let key = self.workload.key;
        let record = self.workload.record();
        let nominated = record.iter().flat_map(|one| &one.object().status.nominated_cluster_names);
        let nominated: Vec<&str> = nominated.map(String::as_str).collect();
        let workers = self.workload.workers;
        for (_, worker) in workers.iter().filter(|(_, worker)| worker.id != cluster) {
            let refusal = worker.refused.copy(key, epoch).map(|one| one.message.as_str());
            let silent = || nominated.contains(&worker.name()).then_some(why);
            if let Some(why) = refusal.or_else(silent) {
                self.exclude_for_epoch(worker.id, epoch, why.into());
            }
        }
    }

    /// A cluster on which the pods did not become ready in time is not the next choice.
    pub(crate) fn exclude_after_timeout(&mut self) {
        let Some(record) = self.workload.record() else {
            return;
        };
        let evicted = find(&record.object().status.conditions, EVICTED);
        let evicted = evicted.filter(|one| one.reason == PODS_READY_TIMEOUT);
        let placed = record.id().and_then(|id| self.fleet.placed_on(id));
        if let (Some(evicted), Some(cluster)) = (evicted, placed) {
            let why = evicted.message.as_str().into();
            self.exclude_for(cluster, RefusedScope::Shape, why);
        }
    }
}
