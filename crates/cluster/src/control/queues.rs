//! Queues, flavors, cohorts and checks: into the engine, and the status of queues back.
//!
//! The status of a queue is written at most once in a while, however much happens in it.

use std::{collections::BTreeMap, time::Duration};

use crds::v1beta2::{AdmissionCheck, ClusterQueue, Cohort, LocalQueue, ResourceFlavor};
use index::{
    status::At,
    tally::{self, Tally},
};
use jiff::Timestamp;
use jobs::start::Flavors;
use runtime::watch::{Change, Key};

use super::{
    Control, Order, Subject, Ticket,
    due::{Due, What},
    held::{Held, after},
};

/// The least time between two writes of one queue's status.
const STATUS_PERIOD: Duration = Duration::from_secs(5);

/// Queues as they were last seen.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    pub(crate) flavors: Flavors,
    pub(crate) resource_flavors: BTreeMap<Box<str>, Held<ResourceFlavor>>,
    pub(crate) checks: BTreeMap<Box<str>, Held<AdmissionCheck>>,
    pub(crate) cluster_queues: BTreeMap<Box<str>, Queue<ClusterQueue>>,
    pub(crate) local_queues: BTreeMap<Key, Queue<LocalQueue>>,
}

/// A queue, and when its status may be written again.
#[derive(Debug)]
pub(crate) struct Queue<K> {
    pub(crate) held: Held<K>,
    not_before: Timestamp,
}

impl<K: kube::Resource> Queue<K> {
    /// Sends the order when it is time for it.
    fn pace(
        &mut self,
        order: Option<Order>,
        now: Timestamp,
        due: &mut Due,
        orders: &mut Vec<Order>,
    ) {
        let Some(order) = order else {
            return;
        };
        if self.not_before > now || !self.held.is_free(now) {
            return due.at(self.not_before.max(after(now, STATUS_PERIOD / 10)), What::Queues);
        }
        self.not_before = after(now, STATUS_PERIOD);
        self.held.sent();
        orders.push(order);
    }

    fn see(queues: &mut BTreeMap<Key, Self>, key: Key, object: Option<K>) {
        match (queues.get_mut(&key), object) {
            (Some(queue), Some(object)) => {
                queue.held.see(object);
            }
            (None, Some(object)) => {
                queues.insert(key, Self { held: Held::new(object), not_before: Timestamp::MIN });
            }
            (_, None) => {
                queues.remove(&key);
            }
        }
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
            match (queues.resource_flavors.get_mut(&key.name), object) {
                (Some(held), Some(object)) => {
                    held.see(object);
                }
                (None, Some(object)) => {
                    queues.resource_flavors.insert(key.name, Held::new(object));
                }
                (_, None) => {
                    queues.resource_flavors.remove(&key.name);
                }
            }
            this.due.now(What::Queues);
            this.all_jobs_due();
            this.label_keys_due();
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
            match (this.queues.checks.get_mut(&key.name), object) {
                (Some(held), Some(object)) => {
                    held.see(object);
                }
                (None, Some(object)) => {
                    this.queues.checks.insert(key.name, Held::new(object));
                }
                (_, None) => {
                    this.queues.checks.remove(&key.name);
                }
            }
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
            match (this.queues.cluster_queues.get_mut(&key.name), object) {
                (Some(queue), Some(object)) => {
                    queue.held.see(object);
                }
                (None, Some(object)) => {
                    let queue = Queue { held: Held::new(object), not_before: Timestamp::MIN };
                    this.queues.cluster_queues.insert(key.name, queue);
                }
                (_, None) => {
                    this.queues.cluster_queues.remove(&key.name);
                }
            }
            if !same {
                this.all_workloads_due();
            }
            this.due.now(What::Queues);
        });
    }

    pub(super) fn local_queues(&mut self, change: Change<LocalQueue>) {
        self.take(change, |this, key, object| {
            let namespace = key.namespace.clone().unwrap_or_default();
            let names = this.engine.names_mut();
            let events = this.index.local_queue(names, &namespace, &key.name, object.as_ref());
            this.tell(events);
            Queue::see(&mut this.queues.local_queues, key, object);
            this.all_workloads_due();
        });
    }

    /// Status of queues that differs from what is written.
    pub(super) fn decide_queues(&mut self, now: Timestamp) {
        if !std::mem::take(&mut self.due.queues) || self.settings.role == super::Role::Thin {
            return;
        }
        self.release_unused(now);
        self.decide_cluster_queues(now);
        self.decide_local_queues(now);
    }

    fn decide_cluster_queues(&mut self, now: Timestamp) {
        let Self { queues, index, engine, due, orders, .. } = self;
        for (name, queue) in &mut queues.cluster_queues {
            let tally = Tally::of(index, engine, name);
            let before = &queue.held.object;
            let at = At { now, generation: before.metadata.generation.unwrap_or_default() };
            let names = engine.names();
            let status =
                tally::cluster_queue_status(index, names, name, &tally, &before.status, at);
            let key = Key { namespace: None, name: name.clone() };
            let ticket = Ticket::home(Subject::ClusterQueue, &key, "cluster-queue-status");
            let order = status.and_then(|status| {
                Order::status::<ClusterQueue, _>(ticket, &before.status, &status)
            });
            queue.pace(order, now, due, orders);
        }
    }

    fn decide_local_queues(&mut self, now: Timestamp) {
        let Self { queues, index, engine, due, orders, .. } = self;
        for (key, queue) in &mut queues.local_queues {
            let before = &queue.held.object;
            let tally = Tally::of(index, engine, &before.spec.cluster_queue);
            let at = At { now, generation: before.metadata.generation.unwrap_or_default() };
            let place = (key.namespace.as_deref().unwrap_or_default(), &*key.name);
            let names = engine.names();
            let status = tally::local_queue_status(index, names, place, &tally, &before.status, at);
            let ticket = Ticket::home(Subject::LocalQueue, key, "local-queue-status");
            let order = status
                .and_then(|status| Order::status::<LocalQueue, _>(ticket, &before.status, &status));
            queue.pace(order, now, due, orders);
        }
    }
}
