//! The node labels that workers report by: they must tell apart what flavors name (docs/reference/dispatch.md §2).

use crds::v1alpha1::{ClusterCapacity, LOCAL};
use jiff::Timestamp;
use runtime::{watch::Key, write::Write};
use serde_json::json;

use super::{Control, Destination, Order, Purpose, Subject, Ticket, due::What};

impl Control {
    /// Asks workers whose reports go by other labels than flavors name.
    pub(super) fn decide_label_keys(&mut self, now: Timestamp) {
        if !std::mem::take(&mut self.due.label_keys) {
            return;
        }
        let flavors = self.queues.flavors.values();
        let mut keys: Vec<&str> =
            flavors.flat_map(|flavor| flavor.node_labels.keys().map(String::as_str)).collect();
        keys.sort_unstable();
        keys.dedup();
        for (name, remote) in &mut self.remotes {
            let Some(held) = remote.capacity.as_mut().filter(|_| remote.link.active) else {
                continue;
            };
            if held.object.spec.label_keys == keys {
                continue;
            }
            if !held.is_free(now) {
                held.later().into_iter().for_each(|at| self.due.at(at, What::LabelKeys));
                continue;
            }
            if let Some(order) = ask(name, &keys) {
                held.sent();
                self.orders.push(order);
            }
        }
    }
}

fn ask(worker: &str, keys: &[&str]) -> Option<Order> {
    let ticket = Ticket {
        to: Destination::Worker(worker.into()),
        subject: Subject::Capacity,
        key: Key { namespace: None, name: LOCAL.into() },
        purpose: Purpose::LabelKeys,
        workload: None,
    };
    let fields = json!({ "spec": { "labelKeys": keys } });
    Order::of(ticket, |purpose, key| Write::merge::<ClusterCapacity>(purpose, key, None, &fields))
}
