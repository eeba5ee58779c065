//! What sums over queues are made from: the Cohorts, LocalQueues and admitted Workloads of each ClusterQueue, and numbers that
//! control counts by LocalQueue.

use std::collections::{BTreeMap, BTreeSet};

use cluster::control::measurement::{ClusterQueueGauges, LocalQueueName, UnadmittedLabels};

/// A ClusterQueue.
#[derive(Debug, Default)]
struct QueueTotals {
    /// From its parent to the root.
    cohorts: Vec<String>,
    /// Those that have series of their own.
    local_queues: BTreeSet<LocalQueueName>,
    admitted: usize,
}

/// A Cohort.
#[derive(Debug, Default)]
struct CohortTotals {
    /// It exists as an object.
    declared: bool,
    /// ClusterQueues below it.
    queues: usize,
}

impl CohortTotals {
    fn exists(&self) -> bool {
        self.declared || self.queues > 0
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Totals {
    queues: BTreeMap<String, QueueTotals>,
    /// Cohorts that exist or have ClusterQueues.
    cohorts: BTreeMap<String, CohortTotals>,
    /// The ClusterQueue of each LocalQueue that has series of its own.
    local_queues: BTreeMap<LocalQueueName, String>,
    finished: BTreeMap<String, BTreeMap<LocalQueueName, usize>>,
    unadmitted: BTreeMap<UnadmittedReason, BTreeMap<LocalQueueName, usize>>,
}

/// ClusterQueue, reason and underlying cause.
type UnadmittedReason = (String, String, String);

/// What no ClusterQueue has any more.
#[derive(Debug, Default, PartialEq)]
pub(super) struct RemovedSeries {
    pub(super) cohorts: Vec<String>,
    pub(super) local_queues: Vec<LocalQueueName>,
}

impl Totals {
    /// Sets a ClusterQueue. Returns the Cohorts and LocalQueues that it was the last one of.
    pub(super) fn set_queue(
        &mut self,
        queue: &ClusterQueueGauges,
        local_queues: BTreeSet<LocalQueueName>,
    ) -> RemovedSeries {
        for cohort in &queue.cohorts {
            self.cohorts.entry(cohort.clone()).or_default().queues += 1;
        }
        for local_queue in &local_queues {
            self.local_queues.insert(local_queue.clone(), queue.name.clone());
        }
        let (cohorts, admitted) = (queue.cohorts.clone(), queue.workloads.admitted);
        let after = QueueTotals { cohorts, local_queues, admitted };
        let before = self.queues.insert(queue.name.clone(), after);
        before.map(|before| self.take_from_parents(&queue.name, before)).unwrap_or_default()
    }

    /// Removes a ClusterQueue. Returns the Cohorts and LocalQueues that it was the last one of.
    pub(super) fn remove_queue(&mut self, name: &str) -> RemovedSeries {
        self.finished.remove(name);
        self.unadmitted.retain(|(queue, ..), _| queue != name);
        self.queues
            .remove(name)
            .map(|before| self.take_from_parents(name, before))
            .unwrap_or_default()
    }

    /// Takes a ClusterQueue as it was before from its Cohorts and LocalQueues.
    fn take_from_parents(&mut self, name: &str, before: QueueTotals) -> RemovedSeries {
        let QueueTotals { mut cohorts, mut local_queues, .. } = before;
        cohorts.retain(|cohort| {
            if let Some(totals) = self.cohorts.get_mut(cohort) {
                totals.queues = totals.queues.saturating_sub(1);
            }
            self.forget_if_gone(cohort)
        });
        let now = self.queues.get(name).map(|queue| &queue.local_queues);
        local_queues.retain(|one| {
            // The LocalQueue may have been counted in another ClusterQueue since.
            let is_last = self.local_queues.get(one).is_some_and(|queue| queue == name);
            is_last && now.is_none_or(|now| !now.contains(one))
        });
        local_queues.iter().for_each(|one| drop(self.local_queues.remove(one)));
        RemovedSeries { cohorts, local_queues: local_queues.into_iter().collect() }
    }

    /// A Cohort exists as an object.
    pub(super) fn declare_cohort(&mut self, name: &str) {
        self.cohorts.entry(name.to_owned()).or_default().declared = true;
    }

    /// The object of a Cohort is gone. Returns whether no ClusterQueue has the Cohort either.
    pub(super) fn remove_cohort(&mut self, name: &str) -> bool {
        if let Some(totals) = self.cohorts.get_mut(name) {
            totals.declared = false;
        }
        self.forget_if_gone(name)
    }

    fn forget_if_gone(&mut self, cohort: &str) -> bool {
        let gone = self.cohorts.get(cohort).is_none_or(|totals| !totals.exists());
        if gone {
            self.cohorts.remove(cohort);
        }
        gone
    }

    /// Whether a LocalQueue has series of its own.
    pub(super) fn has_series(&self, name: &LocalQueueName) -> bool {
        self.local_queues.contains_key(name)
    }

    /// The Cohorts above a ClusterQueue.
    pub(super) fn cohorts_of(&self, queue: &str) -> &[String] {
        self.queues.get(queue).map_or(&[], |one| &one.cohorts)
    }

    /// Admitted Workloads by Cohort.
    pub(super) fn admitted_by_cohort(&self) -> BTreeMap<&str, usize> {
        let mut sums = BTreeMap::new();
        for queue in self.queues.values() {
            for cohort in &queue.cohorts {
                *sums.entry(cohort.as_str()).or_default() += queue.admitted;
            }
        }
        sums
    }

    /// Sets the finished Workloads of a LocalQueue. Returns those of its ClusterQueue.
    pub(super) fn set_finished(
        &mut self,
        queue: &str,
        local_queue: &LocalQueueName,
        count: usize,
    ) -> usize {
        let of_queue = self.finished.entry(queue.to_owned()).or_default();
        of_queue.insert(local_queue.clone(), count);
        of_queue.values().sum()
    }

    /// Sets the Workloads that are not admitted for these reasons. Returns those of the whole ClusterQueue.
    pub(super) fn set_unadmitted(&mut self, labels: &UnadmittedLabels, count: usize) -> usize {
        let UnadmittedLabels { cluster_queue, local_queue, reason, underlying_cause } = labels;
        let reason = (cluster_queue.clone(), reason.clone(), underlying_cause.clone());
        let of_queue = self.unadmitted.entry(reason).or_default();
        of_queue.insert(local_queue.clone(), count);
        of_queue.values().sum()
    }
}
