//! Clusters that are left out because they did not take a Workload (docs/reference/dispatch.md §3).

use std::sync::Arc;

use crds::names::{conditions::EVICTED, reasons::PODS_READY_TIMEOUT};
use dispatch::{
    ExclusionCause,
    workload::{LocalWorkload, RemoteCopy},
};
use engine::ids::ClusterId;
use index::status::find;

use super::{DispatchEffect, evaluation::DispatchEvaluation, refused_writes::RefusedScope};
use crate::control::{time::engine_time, timers::Reevaluation};

impl DispatchEvaluation<'_> {
    pub(super) fn exclude(&mut self, cluster: ClusterId) {
        let worker = self.worker(cluster);
        let (Some(worker), Some(record)) = (worker, self.inputs.workloads.get(self.key)) else {
            return;
        };
        let epoch = index::epoch(record.object());
        let evicted = || {
            let message = worker.eviction(self.key).map_or("", |one| one.message.as_str());
            format!("evicted there: {message}")
        };
        let refused = worker.refused.copy(self.key, epoch).map(|refused| refused.message.clone());
        let refused = refused.or_else(|| self.name_refusal(worker));
        let scope = worker.refused_scope(self.key, epoch);
        self.exclude_for(cluster, scope, refused.unwrap_or_else(evicted).into());
    }

    /// Leaves a cluster out for what it did not take.
    pub(super) fn exclude_for(&mut self, cluster: ClusterId, scope: RefusedScope, why: Box<str>) {
        let id = self.inputs.workloads.id_of(self.key);
        let Some(request) = id.and_then(|id| self.inputs.scheduler.request(id)) else {
            return;
        };
        let cause = match scope {
            RefusedScope::Namespace => ExclusionCause::Namespace(request.namespace.clone()),
            RefusedScope::Kind => ExclusionCause::Kind(request.kind.clone()),
            RefusedScope::Shape => ExclusionCause::Shape(Arc::clone(request)),
        };
        let now = engine_time(self.ctx.now);
        self.inputs.registry.fleet_mut().exclude_cluster(cluster, cause, now, why);
    }

    /// The reservation ends, and the cluster is excluded for a while.
    pub(super) fn unreserve(&mut self, cluster: ClusterId, why: Box<str>) -> DispatchEffect {
        // The clone that holds the reason may be gone before the end of the reservation is written. The first reason counts.
        let pending =
            self.inputs.workloads.get(self.key).and_then(|one| one.transitions().unreserve());
        if let Some(message) = pending {
            return DispatchEffect::Unreserve(message.to_owned());
        }
        let name = self.inputs.registry.fleet().name(cluster);
        let message = format!("worker cluster \"{name}\" did not take it: {why}");
        if let Some(record) = self.inputs.workloads.get(self.key) {
            // A nomination is cancelled only after no job is left (`CancelNomination`), and its epoch was raised.
            let epoch = index::epoch(record.object()).saturating_sub(1);
            let worker = self.worker(cluster);
            let scope =
                worker.map_or(RefusedScope::Shape, |one| one.refused_scope(self.key, epoch));
            if let Some(id) = record.id() {
                self.inputs.registry.fleet_mut().unplace(id);
            }
            self.exclude_others(cluster, epoch, &why);
            self.exclude_for(cluster, scope, why);
            self.state.withdrawn = true;
        }
        DispatchEffect::Unreserve(message)
    }

    /// A race goes on without an end, so a cluster that refused a copy is asked again after a pause.
    pub(super) fn end_refusals(&mut self, hub: &LocalWorkload, copies: &mut [RemoteCopy]) {
        if hub.race.is_none() || hub.recorded_cluster.is_some() {
            return;
        }
        for copy in copies.iter_mut().filter(|copy| copy.refused.is_some()) {
            let worker = self.worker(copy.cluster);
            let until = worker.and_then(|one| one.refused.copy_until(self.key, hub.epoch));
            match until {
                Some(until) if until <= self.ctx.now => copy.refused = None,
                Some(until) => {
                    self.ctx.agenda.at(until, Reevaluation::Workload(self.key.clone()));
                }
                None => {}
            }
        }
    }

    /// In a race no other nominated cluster took the Workload either, with a refusal or without.
    fn exclude_others(&mut self, cluster: ClusterId, epoch: u64, why: &str) {
        let record = self.inputs.workloads.get(self.key);
        let nominated = record.iter().flat_map(|one| &one.object().status.nominated_cluster_names);
        let nominated: Vec<&str> = nominated.map(String::as_str).collect();
        let others = self.workers.iter().map(|(_, worker)| worker);
        let refused: Vec<_> = others
            .filter(|worker| worker.id != cluster)
            .filter_map(|worker| {
                let refusal = worker.refused.copy(self.key, epoch).map(|one| one.message.as_str());
                let silent = || nominated.contains(&worker.name()).then_some(why);
                let why = refusal.or_else(silent)?.into();
                Some((worker.id, worker.refused_scope(self.key, epoch), why))
            })
            .collect();
        for (cluster, scope, why) in refused {
            self.exclude_for(cluster, scope, why);
        }
    }

    /// A cluster on which the pods did not become ready in time is not the next choice.
    pub(super) fn exclude_after_timeout(&mut self) {
        let Some(record) = self.inputs.workloads.get(self.key) else {
            return;
        };
        let evicted = find(&record.object().status.conditions, EVICTED);
        let evicted = evicted.filter(|one| one.reason == PODS_READY_TIMEOUT);
        let placed = record.id().and_then(|id| self.inputs.registry.fleet().placed_on(id));
        if let (Some(evicted), Some(cluster)) = (evicted, placed) {
            let why = evicted.message.as_str().into();
            self.exclude_for(cluster, RefusedScope::Shape, why);
        }
    }
}
