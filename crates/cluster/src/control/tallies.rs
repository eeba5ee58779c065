//! The status of queues.
//!
//! It is written at most once in a while, however much happens in a queue, and only queues in which something happened are
//! counted: one walk over the Workloads of a ClusterQueue serves its LocalQueues too.

use std::time::Duration;

use crds::v1beta2::{ClusterQueue, LocalQueue, Workload};
use index::{
    queue_status::{self, ClusterQueueCounts},
    status::StatusStamp,
};
use jiff::Timestamp;
use runtime::watch::Key;

use super::{
    Control, Order, Purpose, Role, Subject, Ticket,
    due::{Due, What},
    held::after,
    queues::Queue,
};

/// The least time between two writes of one queue's status.
const STATUS_PERIOD: Duration = Duration::from_secs(5);

impl Control {
    /// A Workload may count elsewhere now. To be said of how it was, and of how it is.
    pub(super) fn counts_change(&mut self, key: &Key, workload: &Workload) {
        for name in self.queues.counting(key, workload) {
            self.due.now(What::Queue(name));
        }
    }

    /// Status of queues that differs from what is written.
    pub(super) fn decide_queues(&mut self, now: Timestamp) {
        if self.settings.role == Role::Thin {
            return;
        }
        let Some(marked) = self.due.take_queues() else {
            return;
        };
        self.release_unused(now);
        let names = match marked.all {
            true => self
                .queues
                .cluster_queues
                .keys()
                .chain(self.queues.pointing.keys())
                .cloned()
                .collect(),
            false => marked.names,
        };
        for name in names {
            self.decide_queue(&name, now);
        }
    }

    fn decide_queue(&mut self, name: &str, now: Timestamp) {
        let Self { queues, index, engine, due, orders, .. } = self;
        let cluster_queue = queues.cluster_queues.get_mut(name);
        let locals = queues.pointing.get(name);
        let mut waits = cluster_queue.iter().map(|queue| queue.waits(now)).collect::<Vec<_>>();
        let all = locals.into_iter().flatten().filter_map(|key| queues.local_queues.get(key));
        waits.extend(all.map(|queue| queue.waits(now)));
        // While none may be written, nothing needs counting.
        match waits.into_iter().min() {
            None => return,
            Some(Some(at)) => return due.at(at, What::Queue(name.into())),
            Some(None) => {}
        }
        let tally = ClusterQueueCounts::count(index, engine, name);
        let names = engine.names();
        if let Some(queue) = cluster_queue {
            let before = &queue.held.object;
            let at =
                StatusStamp { now, generation: before.metadata.generation.unwrap_or_default() };
            let status =
                queue_status::cluster_queue_status(index, names, name, &tally, &before.status, at);
            let key = Key { namespace: None, name: name.into() };
            let ticket = Ticket::home(Subject::ClusterQueue, &key, Purpose::ClusterQueueStatus);
            let order = status.and_then(|status| {
                Order::status::<ClusterQueue, _>(ticket, &before.status, &status)
            });
            queue.pace(name, order, now, due, orders);
        }
        for key in locals.into_iter().flatten() {
            let Some(queue) = queues.local_queues.get_mut(key) else {
                continue;
            };
            let before = &queue.held.object;
            let at =
                StatusStamp { now, generation: before.metadata.generation.unwrap_or_default() };
            let place = (key.namespace.as_deref().unwrap_or_default(), &*key.name);
            let status =
                queue_status::local_queue_status(index, names, place, &tally, &before.status, at);
            let ticket = Ticket::home(Subject::LocalQueue, key, Purpose::LocalQueueStatus);
            let order = status
                .and_then(|status| Order::status::<LocalQueue, _>(ticket, &before.status, &status));
            queue.pace(name, order, now, due, orders);
        }
    }
}

impl<K: kube::Resource> Queue<K> {
    /// When its status may be written; none if that is now.
    fn waits(&self, now: Timestamp) -> Option<Timestamp> {
        let ready = self.not_before <= now && self.held.is_free(now);
        (!ready).then(|| self.not_before.max(after(now, STATUS_PERIOD / 10)))
    }

    /// Sends the order when it is time for it. `counted` is the ClusterQueue that it is counted with.
    fn pace(
        &mut self,
        counted: &str,
        order: Option<Order>,
        now: Timestamp,
        due: &mut Due,
        orders: &mut Vec<Order>,
    ) {
        let Some(order) = order else {
            return;
        };
        if let Some(at) = self.waits(now) {
            return due.at(at, What::Queue(counted.into()));
        }
        self.not_before = after(now, STATUS_PERIOD);
        self.held.sent();
        orders.push(order);
    }
}
