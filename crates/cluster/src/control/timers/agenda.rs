//! What the machines evaluate next, and what they evaluate at a later time.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use runtime::watch::Key;

use crate::control::{job_key::JobKey, time::moved};

/// A message to a machine: evaluate this again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reevaluation {
    /// A Workload and its copies on workers.
    Workload(Key),
    /// A job.
    Job(JobKey),
    /// A group of pods.
    PodGroup(Key),
    /// Pods of a Workload, or of a chain of workload slices by the name of the first one, that wait for their topology domain.
    Ungating(Key),
    /// Pods of a chain of workload slices that wait for their gate to be taken off, by the name of the first slice.
    ElasticPods(Key),
    /// A pod that is being deleted and may be deleted by force.
    TerminatingPod(Key),
    /// A deleted pod that begins or ceases to count as one that is about to leave its node.
    LeavingPod(Key),
    /// Which clusters may be chosen: an exclusion has ended.
    Fleet,
    /// The status of all queues.
    Queues,
    /// The status of a ClusterQueue, and of the LocalQueues that point to it.
    Queue(Box<str>),
    /// The status of all Cohorts.
    Cohorts,
    /// Conditions of MultiKueueClusters and AdmissionChecks, and whether reports count.
    Clusters,
    /// Conditions of one MultiKueueCluster, and of AdmissionChecks.
    Cluster(Box<str>),
    /// Conditions of AdmissionChecks of the provisioning controller.
    ProvisioningChecks,
    /// The node labels that workers report by.
    LabelKeys,
    /// The node labels that a worker reports by.
    LabelKeysOf(Box<str>),
    /// The nodes of an agent's cluster.
    Capacity,
    /// Capacity reports, an agent's own or the copies on the hub, and kinds that stay unavailable. They are looked at in each
    /// decision; this only wakes.
    Report,
    /// The quota of ClusterQueues that follows their workers. It keeps its own time; this only wakes.
    ManagerQuota,
    /// Leases between managers and agents. They are compared at each decision; this only wakes.
    Grants,
    /// The comparison of workers with the hub. It keeps its own time; this only wakes.
    GarbageCollection,
}

impl Reevaluation {
    /// Whether nothing is evaluated: what is due is looked at in each decision.
    fn only_wakes(&self) -> bool {
        matches!(self, Self::Report | Self::ManagerQuota | Self::Grants | Self::GarbageCollection)
    }
}

/// Objects of a kind that are evaluated: queues, workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamesToEvaluate {
    pub(crate) all: bool,
    pub(crate) names: BTreeSet<Box<str>>,
}

impl NamesToEvaluate {
    /// Whether an object is evaluated.
    pub(crate) fn includes(&self, name: &str) -> bool {
        self.all || self.names.contains(name)
    }

    /// Whether no object is.
    pub(crate) fn is_empty(&self) -> bool {
        !self.all && self.names.is_empty()
    }

    fn take(&mut self) -> Option<Self> {
        let taken = std::mem::take(self);
        (!taken.is_empty()).then_some(taken)
    }
}

/// Reevaluations that were asked for and not done yet.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    workloads: BTreeSet<Key>,
    jobs: BTreeSet<JobKey>,
    pod_groups: BTreeSet<Key>,
    ungating: BTreeSet<Key>,
    elastic_pods: BTreeSet<Key>,
    terminating_pods: BTreeSet<Key>,
    leaving_pods: BTreeSet<Key>,
    queues: NamesToEvaluate,
    fleet: bool,
    cohorts: bool,
    clusters: NamesToEvaluate,
    provisioning_checks: bool,
    label_keys: NamesToEvaluate,
    capacity: bool,
    later: BTreeMap<Timestamp, BTreeSet<Reevaluation>>,
}

impl Agenda {
    /// Evaluate at the next decision.
    pub(crate) fn now(&mut self, what: Reevaluation) {
        match what {
            Reevaluation::Workload(key) => {
                self.workloads.insert(key);
            }
            Reevaluation::Job(key) => {
                self.jobs.insert(key);
            }
            Reevaluation::PodGroup(key) => {
                self.pod_groups.insert(key);
            }
            Reevaluation::Ungating(key) => {
                self.ungating.insert(key);
            }
            Reevaluation::ElasticPods(key) => {
                self.elastic_pods.insert(key);
            }
            Reevaluation::TerminatingPod(key) => {
                self.terminating_pods.insert(key);
            }
            Reevaluation::LeavingPod(key) => {
                self.leaving_pods.insert(key);
            }
            Reevaluation::Fleet => self.fleet = true,
            Reevaluation::Queues => self.queues.all = true,
            Reevaluation::Queue(name) => {
                self.queues.names.insert(name);
            }
            Reevaluation::Cohorts => self.cohorts = true,
            Reevaluation::Clusters => self.clusters.all = true,
            Reevaluation::Cluster(name) => {
                self.clusters.names.insert(name);
            }
            Reevaluation::ProvisioningChecks => self.provisioning_checks = true,
            Reevaluation::LabelKeys => self.label_keys.all = true,
            Reevaluation::LabelKeysOf(name) => {
                self.label_keys.names.insert(name);
            }
            Reevaluation::Capacity => self.capacity = true,
            Reevaluation::Report
            | Reevaluation::ManagerQuota
            | Reevaluation::Grants
            | Reevaluation::GarbageCollection => {}
        }
    }

    /// Evaluate at this time.
    pub(crate) fn at(&mut self, time: Timestamp, what: Reevaluation) {
        self.later.entry(time).or_default().insert(what);
    }

    /// Evaluate these Workloads at the next decision.
    pub(crate) fn workloads(&mut self, keys: impl IntoIterator<Item = Key>) {
        self.workloads.extend(keys);
    }

    /// Evaluate these jobs at the next decision.
    pub(crate) fn jobs(&mut self, keys: impl IntoIterator<Item = JobKey>) {
        self.jobs.extend(keys);
    }

    /// Moves what has become due by `now` to the next decision.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        while let Some(entry) = self.later.first_entry() {
            if *entry.key() > now {
                return;
            }
            for what in entry.remove() {
                self.now(what);
            }
        }
    }

    /// The clock jumped: nothing becomes due later than it would have. What becomes due too early is set again; what only wakes is not,
    /// and waits for its time.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        for (at, all) in std::mem::take(&mut self.later) {
            for what in all {
                let moves = by.is_negative() || what.only_wakes();
                self.at(if moves { moved(at, by) } else { at }, what);
            }
        }
    }

    /// The earliest time at which something becomes due.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.later.keys().next().copied()
    }

    /// Whether a Workload, a job, a group of pods or the fleet is to be evaluated.
    pub(crate) fn is_due(&self) -> bool {
        // The status of queues and the conditions of clusters are written once, after the rounds, and need no further
        // one.
        let none = self.workloads.is_empty() && self.jobs.is_empty() && self.pod_groups.is_empty();
        self.fleet || !none
    }

    /// Workloads to be evaluated, without taking them.
    pub(crate) fn pending_workloads(&self) -> &BTreeSet<Key> {
        &self.workloads
    }

    pub(crate) fn take_workloads(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.workloads)
    }

    /// Withdraws the evaluation of a Workload that is being evaluated already.
    pub(crate) fn withdraw_workload(&mut self, key: &Key) {
        self.workloads.remove(key);
    }

    pub(crate) fn take_jobs(&mut self) -> BTreeSet<JobKey> {
        std::mem::take(&mut self.jobs)
    }

    pub(crate) fn take_pod_groups(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.pod_groups)
    }

    pub(crate) fn take_ungating(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.ungating)
    }

    pub(crate) fn take_elastic_pods(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.elastic_pods)
    }

    pub(crate) fn take_terminating_pods(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.terminating_pods)
    }

    pub(crate) fn take_leaving_pods(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.leaving_pods)
    }

    /// `None` if there is no queue to evaluate.
    pub(crate) fn take_queues(&mut self) -> Option<NamesToEvaluate> {
        self.queues.take()
    }

    pub(crate) fn take_cohorts(&mut self) -> bool {
        std::mem::take(&mut self.cohorts)
    }

    pub(crate) fn take_fleet(&mut self) -> bool {
        std::mem::take(&mut self.fleet)
    }

    /// Clusters to be evaluated, without taking them.
    pub(crate) fn pending_clusters(&self) -> &NamesToEvaluate {
        &self.clusters
    }

    /// `None` if there is no cluster to evaluate.
    pub(crate) fn take_clusters(&mut self) -> Option<NamesToEvaluate> {
        self.clusters.take()
    }

    pub(crate) fn take_provisioning_checks(&mut self) -> bool {
        std::mem::take(&mut self.provisioning_checks)
    }

    /// `None` if no worker is to be asked for other labels.
    pub(crate) fn take_label_keys(&mut self) -> Option<NamesToEvaluate> {
        self.label_keys.take()
    }

    pub(crate) fn take_capacity(&mut self) -> bool {
        std::mem::take(&mut self.capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_wakes_is_due_at_its_time_when_the_clock_is_set() {
        let at = |second| Timestamp::from_second(second).expect("a time");
        for (by, due) in [(-100, vec![at(-90)]), (100, vec![at(110)])] {
            let mut agenda = Agenda::default();
            agenda.at(at(10), Reevaluation::Report);
            agenda.clock_jumped(SignedDuration::from_secs(by));
            let times = std::iter::from_fn(|| {
                let next = agenda.next()?;
                agenda.advance(next);
                Some(next)
            });
            assert_eq!(times.collect::<Vec<_>>(), due, "{by}");
        }
    }

    #[test]
    fn what_is_due_is_taken_once_and_the_rest_stays() {
        let at = |second| Timestamp::from_second(second).expect("a time");
        let key = |name: &str| Key { namespace: None, name: name.into() };
        let mut agenda = Agenda::default();
        agenda.at(at(10), Reevaluation::Workload(key("a")));
        agenda.at(at(20), Reevaluation::Workload(key("b")));
        agenda.now(Reevaluation::Queue("cq".into()));
        agenda.advance(at(10));
        assert_eq!(agenda.take_workloads(), [key("a")].into());
        assert_eq!(agenda.next(), Some(at(20)));
        assert!(agenda.take_queues().is_some_and(|queues| !queues.all));
        assert!(agenda.take_queues().is_none() && agenda.take_workloads().is_empty());
    }
}
