//! Workloads that wait for cluster capacity, grouped by placement class.
//!
//! Workloads with equal requests and configuration form one placement class with one requeue key: a
//! cluster that takes one of them takes any. A Workload leaves its class when it gets a cluster, changes its request
//! or is removed; a class without Workloads is dropped. A Workload with alternative flavors waits in one class per flavor
//! assignment that was refused; the first one counts for its place in the queue order and for reservations. Source:
//! docs/reference/dispatch.md §1.
//!
//! The waiting time continues while the Workload is pending with the same request, also while it lacks something
//! other than capacity. Quota availability changes often; a waiting time that restarted each time would never let a
//! gang become the oldest.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use engine::{
    RequeueKey, Time,
    ids::{ClusterId, WorkloadId},
};

use crate::queue_order::{QueueOrder, WaitingPosition};
use crate::{AssignedWorkload, PlacementConfig, WorkloadRequest};

/// The inputs of a placement verdict.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct PlacementClass {
    pub(crate) config: Box<str>,
    pub(crate) work: Arc<AssignedWorkload>,
    /// The only cluster that may take it.
    pub(crate) only: Option<ClusterId>,
}

impl PlacementClass {
    /// The clusters that may take it, in the order of the configuration.
    pub(crate) fn clusters<'a>(
        &'a self,
        config: &'a PlacementConfig,
    ) -> impl Iterator<Item = ClusterId> + 'a {
        let may = |id: &ClusterId| self.only.is_none_or(|only| only == *id);
        config.clusters.iter().copied().filter(may)
    }
}

/// A placement class that no cluster takes, with its Workloads.
#[derive(Debug)]
pub(crate) struct PendingClass {
    pub(crate) class: Arc<PlacementClass>,
    /// Fleet change counter at the last evaluation.
    pub(crate) checked: u64,
    /// Time of the last evaluation.
    pub(crate) at: Time,
    /// One of them gets a cluster by preemption once it would then have room.
    pub(crate) preempts: bool,
    /// Waiting Workloads, in queue order.
    waiting: BTreeSet<WaitingPosition>,
    /// Workloads for which this is an alternative.
    alternatives: BTreeSet<WaitingPosition>,
}

impl PendingClass {
    /// First Workload in queue order, also of those for which this is an alternative.
    pub(crate) fn first_position(&self) -> Option<WaitingPosition> {
        self.waiting.first().into_iter().chain(self.alternatives.first()).min().copied()
    }

    /// The Workloads that wait for it in the first place, in queue order.
    pub(crate) fn positions(&self) -> impl Iterator<Item = WaitingPosition> {
        self.waiting.iter().copied()
    }
}

/// The classes and order of one waiting Workload.
#[derive(Debug, Clone)]
struct PendingPlacement {
    key: u64,
    turn: QueueOrder,
    alternatives: Vec<u64>,
}

/// The request of a Workload and the time of its first refusal.
#[derive(Debug)]
struct FirstRefusal {
    request: Arc<WorkloadRequest>,
    since: Time,
}

/// All placement classes.
#[derive(Debug, Default)]
pub(crate) struct PendingPlacements {
    last_key: u64,
    classes: BTreeMap<u64, PendingClass>,
    keys: HashMap<Arc<PlacementClass>, u64>,
    placements: BTreeMap<WorkloadId, PendingPlacement>,
    first_refusals: BTreeMap<WorkloadId, FirstRefusal>,
    /// Number of changes of the set of waiting Workloads.
    pub(crate) changes: u64,
}

impl PendingPlacements {
    /// Adds `workload` to the class of its request and removes it from any other.
    pub(crate) fn add(
        &mut self,
        (turn, workload): WaitingPosition,
        class: PlacementClass,
        checked: u64,
        at: Time,
    ) -> RequeueKey {
        let request = &class.work.request;
        // Another request is another gang, so its waiting time starts again.
        if self
            .first_refusals
            .get(&workload)
            .is_none_or(|first_refusal| first_refusal.request != *request)
        {
            self.first_refusals
                .insert(workload, FirstRefusal { request: Arc::clone(request), since: at });
        }
        let (key, pending) = self.class_at(class, checked, at);
        if let Some(pending) = pending {
            pending.waiting.insert((turn, workload));
        }
        // The new position is entered before the old one is left: otherwise a class with this one
        // Workload would be dropped, and its key with it.
        let before = self.placements.get(&workload);
        if before.is_none_or(|before| (before.key, before.turn) != (key, turn)) {
            self.pause(workload);
            self.changes += 1;
            let placement = PendingPlacement { key, turn, alternatives: Vec::new() };
            self.placements.insert(workload, placement);
        }
        RequeueKey(key)
    }

    /// Adds `workload` to one more class: that of another flavor assignment, which was refused after the first one.
    pub(crate) fn add_alternative(
        &mut self,
        (turn, workload): WaitingPosition,
        class: PlacementClass,
        checked: u64,
        at: Time,
    ) -> RequeueKey {
        if !self.placements.contains_key(&workload) {
            return self.add((turn, workload), class, checked, at);
        }
        let (key, pending) = self.class_at(class, checked, at);
        if let Some(pending) = pending {
            pending.alternatives.insert((turn, workload));
        }
        let placement = self.placements.get_mut(&workload);
        if let Some(placement) = placement.filter(|one| !one.alternatives.contains(&key)) {
            placement.alternatives.push(key);
        }
        RequeueKey(key)
    }

    /// Removes `workload` from the classes of its alternatives.
    pub(crate) fn leave_alternatives(&mut self, workload: WorkloadId) {
        let Some(placement) = self.placements.get_mut(&workload) else {
            return;
        };
        let position = (placement.turn, workload);
        for key in std::mem::take(&mut placement.alternatives) {
            self.remove_from(key, |pending| pending.alternatives.remove(&position));
        }
    }

    /// The key and the class of a request, evaluated just now.
    fn class_at(
        &mut self,
        class: PlacementClass,
        checked: u64,
        at: Time,
    ) -> (u64, Option<&mut PendingClass>) {
        let known_key = self.keys.get(&class).copied();
        let key = known_key.unwrap_or_else(|| self.open_class(class, checked, at));
        let mut pending = self.classes.get_mut(&key);
        if let Some(pending) = &mut pending {
            (pending.checked, pending.at) = (checked, at);
        }
        (key, pending)
    }

    /// The key under which a Workload waits.
    pub(crate) fn key_of(&self, workload: WorkloadId) -> Option<RequeueKey> {
        self.placements.get(&workload).map(|one| RequeueKey(one.key))
    }

    fn open_class(&mut self, class: PlacementClass, checked: u64, at: Time) -> u64 {
        self.last_key += 1;
        let class = Arc::new(class);
        self.keys.insert(Arc::clone(&class), self.last_key);
        let waiting = BTreeSet::new();
        let alternatives = BTreeSet::new();
        let pending = PendingClass { class, checked, at, preempts: false, waiting, alternatives };
        self.classes.insert(self.last_key, pending);
        self.last_key
    }

    /// The clock that times come from was set by so many nanoseconds.
    pub(crate) fn clock_jumped(&mut self, by: i64) {
        let Self { last_key: _, classes, keys: _, placements: _, first_refusals, changes: _ } =
            self;
        let evaluated = classes.values_mut().map(|class| &mut class.at);
        let refused = first_refusals.values_mut().map(|refusal| &mut refusal.since);
        evaluated.chain(refused).for_each(|at| *at = Time(at.0.saturating_add(by)));
    }

    /// Removes `workload` and its waiting time.
    pub(crate) fn remove(&mut self, workload: WorkloadId) {
        self.pause(workload);
        self.first_refusals.remove(&workload);
    }

    /// Removes `workload` and keeps its waiting time. Drops a class without Workloads.
    pub(crate) fn pause(&mut self, workload: WorkloadId) {
        self.leave_alternatives(workload);
        let Some(placement) = self.placements.remove(&workload) else {
            return;
        };
        self.changes += 1;
        let position = (placement.turn, workload);
        self.remove_from(placement.key, |pending| pending.waiting.remove(&position));
    }

    /// Removes something from a class, and the class if no Workload is left in it.
    fn remove_from(&mut self, key: u64, remove: impl FnOnce(&mut PendingClass) -> bool) {
        let Some(pending) = self.classes.get_mut(&key) else {
            return;
        };
        remove(pending);
        if pending.waiting.is_empty() && pending.alternatives.is_empty() {
            self.keys.remove(&pending.class);
            self.classes.remove(&key);
        }
    }

    /// Time of the first refusal of the current request.
    pub(crate) fn refused_since(&self, workload: WorkloadId) -> Option<Time> {
        self.first_refusals.get(&workload).map(|first_refusal| first_refusal.since)
    }

    /// Records that a Workload of a class may preempt.
    pub(crate) fn set_preempts(&mut self, key: RequeueKey) {
        if let Some(pending) = self.classes.get_mut(&key.0) {
            pending.preempts = true;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &PendingClass)> {
        self.classes.iter().map(|(key, pending)| (*key, pending))
    }

    /// Records an evaluation of a class.
    pub(crate) fn verdict_checked(&mut self, key: u64, checked: u64, at: Time) {
        if let Some(pending) = self.classes.get_mut(&key) {
            (pending.checked, pending.at) = (checked, at);
        }
    }
}
