//! The fleet as the engine's [`Placer`]: quota is reserved only together with a cluster (docs/reference/dispatch.md §1).

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{
    CycleEntry, CycleOutcome, Placer, RequeueKey, Time,
    ids::{ClusterId, WorkloadId},
};

use crate::{
    AssignedWorkload, Fleet, PlacementRefusal, PlacementRequest, QueueOrder, RunTimeGroup,
    SliceExtension,
};

/// The request of a cycle entry that is dispatched.
#[derive(Debug, Clone)]
pub struct DispatchedEntry {
    /// Its MultiKueueConfig.
    pub config: String,
    /// Its requests and flavors.
    pub work: Arc<AssignedWorkload>,
    /// Its queue order among Workloads that wait for capacity.
    pub order: QueueOrder,
    /// What its run time has in common with that of finished work.
    pub group: Option<RunTimeGroup>,
    /// The slice on a worker that it extends; `work` is what it has beyond that one.
    pub extends: Option<SliceExtension>,
}

impl DispatchedEntry {
    fn request(&self, workload: WorkloadId, fleet: &mut Fleet) -> PlacementRequest<'_> {
        let only = self.extends.as_ref().map(|one| fleet.cluster(&one.cluster));
        let (config, work, order) = (&self.config, &self.work, self.order);
        PlacementRequest { workload, config, work, order, only }
    }
}

/// Returns the request of a cycle entry; `None` if the entry is not dispatched by capacity.
pub type DispatchLookup<'a> = dyn Fn(&CycleEntry) -> Option<DispatchedEntry> + 'a;

/// Places the entries of one cycle. Implements [`Placer`] with a [`Fleet`].
pub struct FleetPlacer<'a> {
    fleet: &'a mut Fleet,
    lookup: &'a DispatchLookup<'a>,
    now: Time,
    /// Reasons per entry without a cluster.
    pub refusals: BTreeMap<WorkloadId, PlacementRefusal>,
}

impl<'a> FleetPlacer<'a> {
    /// Creates the placer of one cycle.
    pub fn new(fleet: &'a mut Fleet, lookup: &'a DispatchLookup<'a>, now: Time) -> Self {
        Self { fleet, lookup, now, refusals: BTreeMap::new() }
    }

    /// The request of an entry, with its run time as far as that is learned.
    fn dispatched(&self, entry: &CycleEntry) -> Option<DispatchedEntry> {
        let mut dispatched = (self.lookup)(entry)?;
        dispatched.work = self.fleet.with_run_time(dispatched.work, dispatched.group.as_ref());
        Some(dispatched)
    }

    fn refused(&mut self, workload: WorkloadId, refusal: PlacementRefusal) -> RequeueKey {
        let key = refusal.key;
        self.refusals.insert(workload, refusal);
        key
    }

    fn races_blind(&self, dispatched: &DispatchedEntry) -> bool {
        let request = &dispatched.work.request;
        self.fleet.races_blind((&dispatched.config, request), self.now)
    }

    /// The clusters without reports. Their queues decide about an entry that has no room elsewhere.
    fn unreported_candidates(&self, dispatched: &DispatchedEntry) -> Vec<ClusterId> {
        let request = &dispatched.work.request;
        let mut all = self.fleet.unreported_candidates((&dispatched.config, request), self.now);
        if let Some(extends) = &dispatched.extends {
            all.retain(|id| *self.fleet.name(*id) == *extends.cluster);
        }
        all
    }

    /// No cluster is known to have room: those of which nothing is known race after the reservation.
    fn race_or_refuse(
        &mut self,
        workload: WorkloadId,
        dispatched: &DispatchedEntry,
        refusal: PlacementRefusal,
    ) -> Result<Option<ClusterId>, RequeueKey> {
        let candidates = self.unreported_candidates(dispatched);
        if candidates.is_empty() {
            return Err(self.refused(workload, refusal));
        }
        self.fleet.pause_waiting(workload);
        self.fleet.begin_race(workload, candidates);
        Ok(None)
    }

    /// Takes the outcome of the cycle. A head that lacks something other than capacity does not wait for capacity
    /// meanwhile, and gets no reservation.
    pub fn finish_cycle(&mut self, entries: &[CycleEntry]) {
        let room = |one: &&CycleEntry| matches!(one.outcome, CycleOutcome::NoClusterCapacity(_));
        for entry in entries.iter().filter(|one| !room(one)) {
            self.fleet.pause_waiting(entry.workload);
        }
    }
}

impl Placer for FleetPlacer<'_> {
    /// A placement counts at once, so that later entries of the cycle see it.
    fn place(&mut self, entry: &CycleEntry) -> Result<Option<ClusterId>, RequeueKey> {
        let Some(dispatched) = self.dispatched(entry) else {
            return Ok(None);
        };
        // Nothing is known of any cluster: they race after the reservation.
        if self.races_blind(&dispatched) {
            return Ok(None);
        }
        let request = dispatched.request(entry.workload, self.fleet);
        match self.fleet.choose_cluster(&request, self.now) {
            Ok(cluster) => {
                let priority = dispatched.order.priority;
                let work = self.fleet.assign_nodes(cluster, dispatched.work);
                let placed = (work, dispatched.extends.as_ref());
                self.fleet.place_extending(entry.workload, cluster, placed, self.now);
                self.fleet.set_priority(entry.workload, priority);
                Ok(Some(cluster))
            }
            Err(refusal) => self.race_or_refuse(entry.workload, &dispatched, refusal),
        }
    }

    fn fits_after(&mut self, entry: &CycleEntry, gone: &[WorkloadId]) -> bool {
        let dispatched = self.dispatched(entry);
        let fits = |one: DispatchedEntry| {
            self.races_blind(&one) || !self.unreported_candidates(&one).is_empty() || {
                let request = one.request(entry.workload, self.fleet);
                self.fleet.fits_after(&request, gone, self.now)
            }
        };
        dispatched.is_none_or(fits)
    }

    fn refuse_after(&mut self, entry: &CycleEntry, gone: &[WorkloadId]) -> RequeueKey {
        let Some(dispatched) = self.dispatched(entry) else {
            return RequeueKey::default();
        };
        let request = dispatched.request(entry.workload, self.fleet);
        let refusal = self.fleet.refuse_after(&request, gone, self.now);
        self.refused(entry.workload, refusal)
    }

    fn preemptible(&mut self, entry: &CycleEntry) -> Vec<Vec<WorkloadId>> {
        let dispatched = self.dispatched(entry);
        let preemptible = |one: DispatchedEntry| {
            let request = one.request(entry.workload, self.fleet);
            self.fleet.preemptible(&request, self.now)
        };
        dispatched.map(preemptible).unwrap_or_default()
    }
}
