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

use crate::turn::{Rank, Turn};
use crate::{Request, Work};

/// A cluster that is left out for a while.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Exclusion {
    pub(crate) cluster: ClusterId,
    pub(crate) until: Time,
    pub(crate) why: Box<str>,
}

/// What is asked.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    pub(crate) config: Box<str>,
    pub(crate) work: Arc<Work>,
    pub(crate) exclusions: Vec<Exclusion>,
}

/// A question that was answered with no.
#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) question: Arc<Question>,
    /// The change of the fleet that the answer takes into account.
    pub(crate) checked: u64,
    /// When it was given.
    pub(crate) at: Time,
    /// Everybody who waits, first one first.
    waiting: BTreeSet<Rank>,
}

impl Wait {
    /// The ends of exclusions that the answer does not take into account yet.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (ClusterId, Time)> {
        let later = self.question.exclusions.iter().filter(|one| one.until > self.at);
        later.map(|one| (one.cluster, one.until))
    }

    /// Whoever comes first of those who wait.
    pub(crate) fn first(&self) -> Option<Rank> {
        self.waiting.first().copied()
    }

    /// Everybody who waits, first one first.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Rank> {
        self.waiting.iter().copied()
    }
}

/// One of those who wait.
#[derive(Debug, Clone, Copy)]
struct Waiter {
    key: u64,
    turn: Turn,
}

/// When one was first refused who wants this.
#[derive(Debug)]
struct Age {
    request: Arc<Request>,
    since: Time,
}

/// Everybody who waits.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    last: u64,
    table: BTreeMap<u64, Wait>,
    keys: HashMap<Arc<Question>, u64>,
    of: BTreeMap<WorkloadId, Waiter>,
    ages: BTreeMap<WorkloadId, Age>,
    /// Counts those who began or ceased to wait.
    pub(crate) changes: u64,
}

impl Waits {
    /// `workload` waits from now on, and only for this.
    pub(crate) fn join(
        &mut self,
        (turn, workload): Rank,
        question: Question,
        checked: u64,
        at: Time,
    ) -> RequeueKey {
        let request = &question.work.request;
        if self.ages.get(&workload).is_none_or(|age| age.request != *request) {
            self.ages.insert(workload, Age { request: Arc::clone(request), since: at });
        }
        let known = self.keys.get(&question).copied();
        let key = known.unwrap_or_else(|| self.open(question, checked, at));
        if let Some(wait) = self.table.get_mut(&key) {
            (wait.checked, wait.at) = (checked, at);
            wait.waiting.insert((turn, workload));
        }
        let before = self.of.get(&workload).copied();
        if before.is_none_or(|before| (before.key, before.turn) != (key, turn)) {
            self.leave(workload);
            self.changes += 1;
        }
        self.of.insert(workload, Waiter { key, turn });
        RequeueKey(key)
    }

    fn open(&mut self, question: Question, checked: u64, at: Time) -> u64 {
        self.last += 1;
        let question = Arc::new(question);
        self.keys.insert(Arc::clone(&question), self.last);
        self.table.insert(self.last, Wait { question, checked, at, waiting: BTreeSet::new() });
        self.last
    }

    /// `workload` has not waited for anything.
    pub(crate) fn forget(&mut self, workload: WorkloadId) {
        self.leave(workload);
        self.ages.remove(&workload);
    }

    /// `workload` waits no longer, for the time being. A key without anybody is dropped.
    pub(crate) fn leave(&mut self, workload: WorkloadId) {
        let Some(waiter) = self.of.remove(&workload) else {
            return;
        };
        self.changes += 1;
        let Some(wait) = self.table.get_mut(&waiter.key) else {
            return;
        };
        wait.waiting.remove(&(waiter.turn, workload));
        if wait.waiting.is_empty() {
            self.keys.remove(&wait.question);
            self.table.remove(&waiter.key);
        }
    }

    /// Since when a Workload has been refused what it wants.
    pub(crate) fn since(&self, workload: WorkloadId) -> Option<Time> {
        self.ages.get(&workload).map(|age| age.since)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Wait)> {
        self.table.iter().map(|(key, wait)| (*key, wait))
    }

    /// The answer to a key was looked at again.
    pub(crate) fn check(&mut self, key: u64, checked: u64, at: Time) {
        if let Some(wait) = self.table.get_mut(&key) {
            (wait.checked, wait.at) = (checked, at);
        }
    }
}
