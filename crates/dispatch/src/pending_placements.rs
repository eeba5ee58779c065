//! Who waits for room, kept once per distinct ask.
//!
//! A key stands for everybody who asks for the same work under the same configuration with the same exclusions: whatever
//! lets one of them in would let in any. A key lives as long as somebody waits under it; a Workload stops waiting when a
//! cluster is chosen for it, when it asks for something else, and when it is forgotten. So there are never more keys
//! than waiting Workloads. Source: docs/reference/dispatch.md §1.
//!
//! How long one has waited is kept while it is pending and wants the same, also while it lacks something else than room:
//! quota comes and goes with every neighbour, and a gang that began anew each time would never be the oldest.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use engine::{
    RequeueKey, Time,
    ids::{ClusterId, WorkloadId},
};

use crate::queue_order::{QueueOrder, QueuePosition};
use crate::{AssignedWorkload, WorkloadRequest};

/// A cluster that is left out for a while.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ClusterExclusion {
    pub(crate) cluster: ClusterId,
    pub(crate) until: Time,
    pub(crate) why: Box<str>,
}

/// What is asked.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct PlacementClass {
    pub(crate) config: Box<str>,
    pub(crate) work: Arc<AssignedWorkload>,
    pub(crate) exclusions: Vec<ClusterExclusion>,
}

/// A question that was answered with no.
#[derive(Debug)]
pub(crate) struct PendingClass {
    pub(crate) class: Arc<PlacementClass>,
    /// The change of the fleet that the answer takes into account.
    pub(crate) checked: u64,
    /// When it was given.
    pub(crate) at: Time,
    /// Everybody who waits, first one first.
    waiting: BTreeSet<QueuePosition>,
}

impl PendingClass {
    /// The ends of exclusions that the answer does not take into account yet.
    pub(crate) fn exclusion_ends(&self) -> impl Iterator<Item = (ClusterId, Time)> {
        let later = self.class.exclusions.iter().filter(|one| one.until > self.at);
        later.map(|one| (one.cluster, one.until))
    }

    /// Whoever comes first of those who wait.
    pub(crate) fn first_position(&self) -> Option<QueuePosition> {
        self.waiting.first().copied()
    }

    /// Everybody who waits, first one first.
    pub(crate) fn positions(&self) -> impl Iterator<Item = QueuePosition> {
        self.waiting.iter().copied()
    }
}

/// One of those who wait.
#[derive(Debug, Clone, Copy)]
struct PendingPlacement {
    key: u64,
    turn: QueueOrder,
}

/// When one was first refused who wants this.
#[derive(Debug)]
struct FirstRefusal {
    request: Arc<WorkloadRequest>,
    since: Time,
}

/// Everybody who waits.
#[derive(Debug, Default)]
pub(crate) struct PendingPlacements {
    last: u64,
    table: BTreeMap<u64, PendingClass>,
    keys: HashMap<Arc<PlacementClass>, u64>,
    of: BTreeMap<WorkloadId, PendingPlacement>,
    ages: BTreeMap<WorkloadId, FirstRefusal>,
    /// Counts those who began or ceased to wait.
    pub(crate) changes: u64,
}

impl PendingPlacements {
    /// `workload` waits from now on, and only for this.
    pub(crate) fn add(
        &mut self,
        (turn, workload): QueuePosition,
        question: PlacementClass,
        checked: u64,
        at: Time,
    ) -> RequeueKey {
        let request = &question.work.request;
        if self.ages.get(&workload).is_none_or(|age| age.request != *request) {
            self.ages.insert(workload, FirstRefusal { request: Arc::clone(request), since: at });
        }
        let known = self.keys.get(&question).copied();
        let key = known.unwrap_or_else(|| self.open_class(question, checked, at));
        if let Some(wait) = self.table.get_mut(&key) {
            (wait.checked, wait.at) = (checked, at);
            wait.waiting.insert((turn, workload));
        }
        let before = self.of.get(&workload).copied();
        if before.is_none_or(|before| (before.key, before.turn) != (key, turn)) {
            self.pause(workload);
            self.changes += 1;
        }
        self.of.insert(workload, PendingPlacement { key, turn });
        RequeueKey(key)
    }

    fn open_class(&mut self, question: PlacementClass, checked: u64, at: Time) -> u64 {
        self.last += 1;
        let question = Arc::new(question);
        self.keys.insert(Arc::clone(&question), self.last);
        self.table.insert(
            self.last,
            PendingClass { class: question, checked, at, waiting: BTreeSet::new() },
        );
        self.last
    }

    /// `workload` has not waited for anything.
    pub(crate) fn remove(&mut self, workload: WorkloadId) {
        self.pause(workload);
        self.ages.remove(&workload);
    }

    /// `workload` waits no longer, for the time being. A key without anybody is dropped.
    pub(crate) fn pause(&mut self, workload: WorkloadId) {
        let Some(waiter) = self.of.remove(&workload) else {
            return;
        };
        self.changes += 1;
        let Some(wait) = self.table.get_mut(&waiter.key) else {
            return;
        };
        wait.waiting.remove(&(waiter.turn, workload));
        if wait.waiting.is_empty() {
            self.keys.remove(&wait.class);
            self.table.remove(&waiter.key);
        }
    }

    /// Since when a Workload has been refused what it wants.
    pub(crate) fn refused_since(&self, workload: WorkloadId) -> Option<Time> {
        self.ages.get(&workload).map(|age| age.since)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &PendingClass)> {
        self.table.iter().map(|(key, wait)| (*key, wait))
    }

    /// The answer to a key was looked at again.
    pub(crate) fn verdict_checked(&mut self, key: u64, checked: u64, at: Time) {
        if let Some(wait) = self.table.get_mut(&key) {
            (wait.checked, wait.at) = (checked, at);
        }
    }
}
