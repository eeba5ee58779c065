//! What sums over queues are made from: the Cohorts, LocalQueues and admitted Workloads of each ClusterQueue, and numbers that
//! control counts by LocalQueue.

use std::collections::{BTreeMap, BTreeSet};

use cluster::control::measurement::{ClusterQueueGauges, LocalQueueName, UnadmittedLabels};

/// A ClusterQueue.
#[derive(Debug, Default)]
pub(super) struct QueueTotals {
    /// From its parent to the root.
    cohorts: Vec<String>,
    /// Those that have series of their own.
    local_queues: BTreeSet<LocalQueueName>,
    admitted: usize,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Totals {
    queues: BTreeMap<String, QueueTotals>,
    finished: BTreeMap<(String, LocalQueueName), usize>,
    unadmitted: BTreeMap<UnadmittedLabels, usize>,
}

/// What no ClusterQueue has any more.
#[derive(Debug, Default, PartialEq)]
pub(super) struct LeftOver {
    pub(super) cohorts: Vec<String>,
    pub(super) local_queues: Vec<LocalQueueName>,
}

impl Totals {
    /// Sets a ClusterQueue. Returns the Cohorts and LocalQueues that it was the last one of.
    pub(super) fn set_queue(
        &mut self,
        queue: &ClusterQueueGauges,
        local_queues: BTreeSet<LocalQueueName>,
    ) -> LeftOver {
        let (cohorts, admitted) = (queue.cohorts.clone(), queue.workloads.admitted);
        let after = QueueTotals { cohorts, local_queues, admitted };
        let before = self.queues.insert(queue.name.clone(), after);
        before.map(|before| self.left_over(before)).unwrap_or_default()
    }

    /// Removes a ClusterQueue. Returns the Cohorts and LocalQueues that it was the last one of.
    pub(super) fn remove_queue(&mut self, name: &str) -> LeftOver {
        self.finished.retain(|(queue, _), _| queue != name);
        self.unadmitted.retain(|labels, _| labels.cluster_queue != name);
        self.queues.remove(name).map(|before| self.left_over(before)).unwrap_or_default()
    }

    fn left_over(&self, before: QueueTotals) -> LeftOver {
        let has_cohort = |name: &String| self.queues.values().any(|one| one.cohorts.contains(name));
        LeftOver {
            cohorts: before.cohorts.into_iter().filter(|one| !has_cohort(one)).collect(),
            local_queues: before
                .local_queues
                .into_iter()
                .filter(|one| !self.has_series(one))
                .collect(),
        }
    }

    /// Whether a LocalQueue has series of its own.
    pub(super) fn has_series(&self, name: &LocalQueueName) -> bool {
        self.queues.values().any(|one| one.local_queues.contains(name))
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
        self.finished.insert((queue.to_owned(), local_queue.clone()), count);
        let own = self.finished.iter().filter(|((name, _), _)| name == queue);
        own.map(|(_, count)| count).sum()
    }

    /// Sets the Workloads that are not admitted for these reasons. Returns those of the whole ClusterQueue.
    pub(super) fn set_unadmitted(&mut self, labels: &UnadmittedLabels, count: usize) -> usize {
        self.unadmitted.insert(labels.clone(), count);
        let same = |one: &UnadmittedLabels| {
            (&one.cluster_queue, &one.reason, &one.underlying_cause)
                == (&labels.cluster_queue, &labels.reason, &labels.underlying_cause)
        };
        self.unadmitted.iter().filter(|(one, _)| same(one)).map(|(_, count)| count).sum()
    }
}
