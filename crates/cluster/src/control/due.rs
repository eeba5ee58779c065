//! What must be looked at now, and what at a later time.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use runtime::watch::Key;

/// Something to be looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// A Workload, or its copies.
    Workload(Key),
    /// A Job.
    Job(Key),
    /// Exclusions of clusters that end.
    Fleet,
    /// The status of all queues.
    Queues,
    /// The status of a ClusterQueue, and of the LocalQueues that point to it.
    Queue(Box<str>),
    /// Conditions of workers and checks.
    Clusters,
    /// The node labels that workers report by.
    LabelKeys,
    /// The machines of a thin worker.
    Capacity,
    /// The report of a thin worker, or copies of those of others. They are compared each time; this only wakes.
    Report,
    /// What workers have, compared with the hub. Whoever does it knows when; this only wakes.
    Garbage,
}

/// ClusterQueues in which something happened.
#[derive(Debug, Default)]
pub(crate) struct Marked {
    /// In any of them.
    pub(crate) all: bool,
    pub(crate) names: BTreeSet<Box<str>>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Due {
    pub(crate) workloads: BTreeSet<Key>,
    pub(crate) jobs: BTreeSet<Key>,
    pub(crate) fleet: bool,
    queues: Marked,
    pub(crate) clusters: bool,
    pub(crate) label_keys: bool,
    pub(crate) capacity: bool,
    later: BTreeMap<Timestamp, BTreeSet<What>>,
}

impl Due {
    /// It must be looked at now.
    pub(crate) fn now(&mut self, what: What) {
        match what {
            What::Workload(key) => {
                self.workloads.insert(key);
            }
            What::Job(key) => {
                self.jobs.insert(key);
            }
            What::Fleet => self.fleet = true,
            What::Queues => self.queues.all = true,
            What::Queue(name) => {
                self.queues.names.insert(name);
            }
            What::Clusters => self.clusters = true,
            What::LabelKeys => self.label_keys = true,
            What::Capacity => self.capacity = true,
            What::Report | What::Garbage => {}
        }
    }

    /// It must be looked at then.
    pub(crate) fn at(&mut self, time: Timestamp, what: What) {
        self.later.entry(time).or_default().insert(what);
    }

    /// ClusterQueues that are due; none if there is nothing to look at.
    pub(crate) fn take_queues(&mut self) -> Option<Marked> {
        let marked = std::mem::take(&mut self.queues);
        (marked.all || !marked.names.is_empty()).then_some(marked)
    }

    /// What has become due.
    pub(crate) fn ring(&mut self, now: Timestamp) {
        while let Some(entry) = self.later.first_entry() {
            if *entry.key() > now {
                return;
            }
            for what in entry.remove() {
                self.now(what);
            }
        }
    }

    /// When the next becomes due.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.later.keys().next().copied()
    }
}
