//! Queues, flavors, cohorts and checks: into the engine. Their status goes back in `tallies`.

use std::collections::{BTreeMap, BTreeSet};

use crds::v1beta2::{AdmissionCheck, ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload};
use jiff::Timestamp;
use jobs::pod_sets_info::FlavorsByName;
use runtime::watch::{Change, Key};

use super::{
    Control,
    due::What,
    held::{Held, keep},
};

/// Queues as they were last seen.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    pub(crate) flavors: FlavorsByName,
    pub(crate) resource_flavors: BTreeMap<Box<str>, Held<ResourceFlavor>>,
    pub(crate) checks: BTreeMap<Box<str>, Held<AdmissionCheck>>,
    pub(crate) cluster_queues: BTreeMap<Box<str>, Queue<ClusterQueue>>,
    pub(crate) local_queues: BTreeMap<Key, Queue<LocalQueue>>,
    /// LocalQueues by the ClusterQueue that they name.
    pub(super) pointing: BTreeMap<Box<str>, BTreeSet<Key>>,
}

/// A queue, and when its status may be written again.
#[derive(Debug)]
pub(crate) struct Queue<K> {
    pub(crate) held: Held<K>,
    pub(super) not_before: Timestamp,
}

impl<K: kube::Resource> From<K> for Queue<K> {
    fn from(object: K) -> Self {
        Self { held: Held::new(object), not_before: Timestamp::MIN }
    }
}

impl<K> AsMut<Held<K>> for Queue<K> {
    fn as_mut(&mut self) -> &mut Held<K> {
        &mut self.held
    }
}

impl Queues {
    /// The LocalQueue of a Workload.
    pub(crate) fn local_queue_of(&self, key: &Key, workload: &Workload) -> Option<&LocalQueue> {
        let name = workload.spec.queue_name.as_str().into();
        let local = Key { namespace: key.namespace.clone(), name };
        self.local_queues.get(&local).map(|queue| &*queue.held.object)
    }

    /// ClusterQueues that count a Workload: where it waits, and where it holds quota.
    pub(super) fn counting(&self, key: &Key, workload: &Workload) -> Vec<Box<str>> {
        let waits = self.local_queue_of(key, workload).map(|queue| &queue.spec.cluster_queue);
        let holds = workload.status.admission.as_ref().map(|one| &one.cluster_queue);
        let both = waits.into_iter().chain(holds.filter(|held| Some(*held) != waits));
        both.map(|name| name.as_str().into()).collect()
    }

    fn see_local_queue(&mut self, key: Key, object: Option<LocalQueue>) {
        if let Some(queue) = self.local_queues.get(&key)
            && let Some(all) = self.pointing.get_mut(queue.held.object.spec.cluster_queue.as_str())
        {
            all.remove(&key);
        }
        if let Some(object) = &object {
            let target = object.spec.cluster_queue.as_str().into();
            self.pointing.entry(target).or_default().insert(key.clone());
        }
        keep(&mut self.local_queues, key, object);
    }
}

impl Control {
    pub(super) fn resource_flavors(&mut self, change: Change<ResourceFlavor>) {
        self.take(change, |this, key, object| {
            let names = this.engine.names_mut();
            let events = this.index.resource_flavor(names, &key.name, object.as_ref());
            this.tell(events);
            let queues = &mut this.queues;
            match &object {
                Some(object) => queues.flavors.insert(key.name.to_string(), object.spec.clone()),
                None => queues.flavors.remove(&*key.name),
            };
            keep(&mut queues.resource_flavors, key.name, object);
            this.due.now(What::Queues);
            this.all_jobs_due();
            this.due.now(What::LabelKeys);
        });
    }

    pub(super) fn cohorts(&mut self, change: Change<Cohort>) {
        self.take(change, |this, key, object| {
            let events = this.index.cohort(this.engine.names_mut(), &key.name, object.as_ref());
            this.tell(events);
        });
    }

    pub(super) fn admission_checks(&mut self, change: Change<AdmissionCheck>) {
        self.take(change, |this, key, object| {
            let names = this.engine.names_mut();
            let events = this.index.admission_check(names, &key.name, object.as_ref());
            this.tell(events);
            keep(&mut this.queues.checks, key.name, object);
            this.due.now(What::Clusters);
            this.all_workloads_due();
        });
    }

    pub(super) fn cluster_queues(&mut self, change: Change<ClusterQueue>) {
        self.take(change, |this, key, object| {
            let names = this.engine.names_mut();
            let events = this.index.cluster_queue(names, &key.name, object.as_ref());
            this.tell(events);
            let known = this.queues.cluster_queues.get(&key.name);
            let generation = |queue: &ClusterQueue| queue.metadata.generation;
            let same = known.map(|queue| generation(&queue.held.object))
                == object.as_ref().map(generation);
            keep(&mut this.queues.cluster_queues, key.name.clone(), object);
            if !same {
                this.all_workloads_due();
            }
            this.due.now(What::Queue(key.name));
        });
    }

    pub(super) fn local_queues(&mut self, change: Change<LocalQueue>) {
        self.take(change, |this, key, object| {
            let namespace = key.namespace.clone().unwrap_or_default();
            let names = this.engine.names_mut();
            let events = this.index.local_queue(names, &namespace, &key.name, object.as_ref());
            this.tell(events);
            let known = this.queues.local_queues.get(&key);
            let before = known.map(|queue| queue.held.object.metadata.generation);
            let same = before == object.as_ref().map(|queue| queue.metadata.generation);
            let target = object.as_ref().map(|queue| queue.spec.cluster_queue.as_str().into());
            this.queues.see_local_queue(key, object);
            match target {
                // Only its status changed.
                Some(target) if same => this.due.now(What::Queue(target)),
                _ => {
                    this.all_workloads_due();
                    this.due.now(What::Queues);
                }
            }
        });
    }
}
