//! What sums over queues are made from: the Cohorts, LocalQueues and admitted Workloads of each ClusterQueue, and numbers that
//! control counts by LocalQueue.

use std::collections::{BTreeMap, BTreeSet};

use cluster::control::measurement::{ClusterQueueGauges, LocalQueueName, UnadmittedLabels};

/// A ClusterQueue.
#[derive(Debug, Default)]
struct QueueTotals {
    /// Without it only LocalQueues are left that name it.
    exists: bool,
    /// From its parent to the root.
    cohorts: Vec<String>,
    /// Those that have series of their own.
    local_queues: BTreeSet<LocalQueueName>,
    admitted: usize,
}

/// A Cohort.
#[derive(Debug, Default)]
struct CohortTotals {
    /// It exists as an object, or is the parent of one that does.
    declared: bool,
    /// ClusterQueues below it.
    queues: usize,
}

impl CohortTotals {
    fn exists(&self) -> bool {
        self.declared || self.queues > 0
    }
}

/// The numbers that sums over queues are made from.
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
pub(super) type UnadmittedReason = (String, String, String);

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
        let (cohorts, admitted) = (queue.cohorts.clone(), queue.workloads.admitted);
        let after = QueueTotals { exists: true, cohorts, local_queues, admitted };
        self.replace_queue(&queue.name, Some(after))
    }

    /// Removes a ClusterQueue, but for the LocalQueues that still name it. Returns the Cohorts and LocalQueues that it was the last
    /// one of.
    pub(super) fn remove_queue(
        &mut self,
        name: &str,
        local_queues: BTreeSet<LocalQueueName>,
    ) -> RemovedSeries {
        // The numbers of Workloads stay: they are not measured again if the queue comes back.
        let left = QueueTotals { local_queues, ..QueueTotals::default() };
        self.replace_queue(name, Some(left).filter(|left| !left.local_queues.is_empty()))
    }

    fn replace_queue(&mut self, name: &str, after: Option<QueueTotals>) -> RemovedSeries {
        for local_queue in after.iter().flat_map(|after| &after.local_queues) {
            self.local_queues.insert(local_queue.clone(), name.to_owned());
        }
        let before = match after {
            Some(after) => self.queues.insert(name.to_owned(), after),
            None => self.queues.remove(name),
        };
        before.map(|before| self.take_from_parents(name, before)).unwrap_or_default()
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

    /// A Cohort exists as an object, or is the parent of one that does.
    pub(super) fn declare_cohort(&mut self, name: &str) {
        self.cohorts.entry(name.to_owned()).or_default().declared = true;
    }

    /// A Cohort is not declared any more. Returns whether no ClusterQueue has the Cohort either.
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
        set_number(&mut self.finished, queue.to_owned(), local_queue, count)
    }

    /// Whether a ClusterQueue has series.
    pub(super) fn has_queue(&self, name: &str) -> bool {
        self.queues.get(name).is_some_and(|queue| queue.exists)
    }

    /// The finished Workloads of a ClusterQueue.
    pub(super) fn finished(&self, queue: &str) -> usize {
        self.finished.get(queue).into_iter().flat_map(BTreeMap::values).sum()
    }

    /// The finished Workloads of a LocalQueue; `None` if it has none.
    pub(super) fn finished_of(&self, queue: &str, local_queue: &LocalQueueName) -> Option<usize> {
        self.finished.get(queue)?.get(local_queue).copied()
    }

    /// Numbers of Workloads of a ClusterQueue that are not admitted, by reason.
    pub(super) fn unadmitted(&self, queue: &str) -> Vec<(UnadmittedReason, usize)> {
        let of_queue = self.of_queue(queue);
        of_queue.map(|(reason, all)| (reason.clone(), all.values().sum())).collect()
    }

    /// Numbers of Workloads of a LocalQueue that are not admitted, by reason.
    pub(super) fn unadmitted_of(
        &self,
        queue: &str,
        local_queue: &LocalQueueName,
    ) -> Vec<(UnadmittedReason, usize)> {
        let of_queue = self.of_queue(queue);
        of_queue
            .filter_map(|(reason, all)| Some((reason.clone(), *all.get(local_queue)?)))
            .collect()
    }

    fn of_queue(
        &self,
        queue: &str,
    ) -> impl Iterator<Item = (&UnadmittedReason, &BTreeMap<LocalQueueName, usize>)> {
        let first = (queue.to_owned(), String::new(), String::new());
        self.unadmitted.range(first..).take_while(move |((name, ..), _)| name == queue)
    }

    /// Sets the Workloads that are not admitted for these reasons. Returns those of the whole ClusterQueue.
    pub(super) fn set_unadmitted(&mut self, labels: &UnadmittedLabels, count: usize) -> usize {
        let UnadmittedLabels { cluster_queue, local_queue, reason, underlying_cause } = labels;
        let reason = (cluster_queue.clone(), reason.clone(), underlying_cause.clone());
        set_number(&mut self.unadmitted, reason, local_queue, count)
    }
}

/// Sets the number of a LocalQueue. Returns the sum of its group; a group without any is forgotten.
fn set_number<K: Ord>(
    numbers: &mut BTreeMap<K, BTreeMap<LocalQueueName, usize>>,
    group: K,
    local_queue: &LocalQueueName,
    count: usize,
) -> usize {
    let mut of_group = numbers.remove(&group).unwrap_or_default();
    match count {
        0 => drop(of_group.remove(local_queue)),
        count => drop(of_group.insert(local_queue.clone(), count)),
    }
    let sum = of_group.values().sum();
    if sum > 0 {
        numbers.insert(group, of_group);
    }
    sum
}
