//! The fleet as the engine's [`Placer`]: quota is reserved only together with a cluster (docs/reference/dispatch.md §1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::{
    CycleEntry, CycleOutcome, Placer, RequeueKey, Time,
    ids::{ClusterId, FlavorId, WorkloadId},
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
    fn request(
        &self,
        workload: WorkloadId,
        alternative: bool,
        fleet: &mut Fleet,
    ) -> PlacementRequest<'_> {
        let only = self.extends.as_ref().map(|one| fleet.intern_cluster(&one.cluster));
        let (config, work, order) = (&self.config, &self.work, self.order);
        PlacementRequest { workload, config, work, order, only, alternative }
    }
}

/// The flavors of an entry that no cluster takes, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedFlavors {
    /// The flavors, sorted by id.
    pub flavors: Vec<FlavorId>,
    /// Why.
    pub refusal: PlacementRefusal,
}

/// Returns the request of a cycle entry; `None` if the entry is not dispatched by capacity.
pub type DispatchLookup<'a> = dyn Fn(&CycleEntry) -> Option<DispatchedEntry> + 'a;

/// Places the entries of one cycle. Implements [`Placer`] with a [`Fleet`].
pub struct FleetPlacer<'a> {
    fleet: &'a mut Fleet,
    lookup: &'a DispatchLookup<'a>,
    now: Time,
    /// Reasons per entry without a cluster, in the order in which its flavors were tried.
    pub refusals: BTreeMap<WorkloadId, Vec<RefusedFlavors>>,
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

    /// Whether other flavors of an entry were refused before.
    fn is_alternative(&self, entry: &CycleEntry) -> bool {
        let refused = self.refusals.get(&entry.workload).and_then(|all| all.first());
        refused.is_some_and(|one| one.flavors != flavors_of(entry))
    }

    fn refused(&mut self, entry: &CycleEntry, refusal: PlacementRefusal) -> RequeueKey {
        let (key, flavors) = (refusal.key, flavors_of(entry));
        let all = self.refusals.entry(entry.workload).or_default();
        match all.iter_mut().find(|one| one.flavors == flavors) {
            Some(known) => known.refusal = refusal,
            None => all.push(RefusedFlavors { flavors, refusal }),
        }
        key
    }

    fn races_without_current_reports(&self, dispatched: &DispatchedEntry) -> bool {
        self.fleet.races_without_current_reports(&dispatched.config, &dispatched.work, self.now)
    }

    /// The clusters without reports. Their queues decide about an entry that has no room elsewhere.
    fn unreported_candidates(&self, dispatched: &DispatchedEntry) -> Vec<ClusterId> {
        let DispatchedEntry { config, work, .. } = dispatched;
        let mut all = self.fleet.unreported_candidates(config, work, self.now);
        if let Some(extends) = &dispatched.extends {
            all.retain(|id| *self.fleet.name(*id) == *extends.cluster);
        }
        all
    }

    /// No cluster is known to have room: those of which nothing is known race after the reservation.
    fn race_or_refuse(
        &mut self,
        entry: &CycleEntry,
        dispatched: &DispatchedEntry,
        refusal: PlacementRefusal,
    ) -> Result<Option<ClusterId>, RequeueKey> {
        let candidates = self.unreported_candidates(dispatched);
        if candidates.is_empty() {
            return Err(self.refused(entry, refusal));
        }
        self.fleet.pause_waiting(entry.workload);
        self.fleet.begin_race(entry.workload, candidates);
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
        if self.races_without_current_reports(&dispatched) {
            return Ok(None);
        }
        let alternative = self.is_alternative(entry);
        let request = dispatched.request(entry.workload, alternative, self.fleet);
        match self.fleet.choose_cluster(&request, self.now) {
            Ok(cluster) => {
                let priority = dispatched.order.priority;
                let work = self.fleet.assign_nodes(cluster, dispatched.work);
                let placed = (work, dispatched.extends.as_ref());
                self.fleet.place_extending(entry.workload, cluster, placed, self.now);
                self.fleet.set_priority(entry.workload, priority);
                Ok(Some(cluster))
            }
            Err(refusal) => self.race_or_refuse(entry, &dispatched, refusal),
        }
    }

    fn fits_after(&mut self, entry: &CycleEntry, gone: &[WorkloadId]) -> bool {
        let dispatched = self.dispatched(entry);
        let fits = |one: DispatchedEntry| {
            self.races_without_current_reports(&one)
                || !self.unreported_candidates(&one).is_empty()
                || {
                    let request = one.request(entry.workload, false, self.fleet);
                    self.fleet.fits_after(&request, gone, self.now)
                }
        };
        dispatched.is_none_or(fits)
    }

    fn refuse_after(&mut self, entry: &CycleEntry, gone: &[WorkloadId]) -> RequeueKey {
        let Some(dispatched) = self.dispatched(entry) else {
            return RequeueKey::default();
        };
        if !self.refusals.contains_key(&entry.workload) {
            // Those of an earlier cycle.
            self.fleet.leave_alternatives(entry.workload);
        }
        let alternative = self.is_alternative(entry);
        let request = dispatched.request(entry.workload, alternative, self.fleet);
        let refusal = self.fleet.refuse_after(&request, gone, self.now);
        self.refused(entry, refusal)
    }

    fn preemptible(&mut self, entry: &CycleEntry) -> Vec<Vec<WorkloadId>> {
        let dispatched = self.dispatched(entry);
        let preemptible = |one: DispatchedEntry| {
            let request = one.request(entry.workload, false, self.fleet);
            self.fleet.preemptible(&request, self.now)
        };
        dispatched.map(preemptible).unwrap_or_default()
    }
}

fn flavors_of(entry: &CycleEntry) -> Vec<FlavorId> {
    let chosen = entry.assignment.pod_sets.iter().flat_map(|one| &one.flavor_assignments);
    let flavors: BTreeSet<FlavorId> = chosen.map(|choice| choice.flavor).collect();
    flavors.into_iter().collect()
}
