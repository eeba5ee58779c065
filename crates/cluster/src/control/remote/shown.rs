//! The fleet as the hub's API shows it: a `ClusterCapacity` with the name of each worker, a copy of its last report.
//!
//! For people, and for programs that see the hub only; nothing is decided by it. It belongs to its MultiKueueCluster and
//! goes with that. Cost: at most one write per worker in ten seconds, none while nothing changes (docs/reference/dispatch.md §2).

use std::time::Duration;

use crds::v1alpha1::{ClusterCapacity, LOCAL};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use runtime::{
    watch::Key,
    write::{FIELD_MANAGER, Write},
    writer::WriteOutcome,
};
use serde_json::json;

use super::{Control, Remote};
use crate::control::{
    Order, Purpose, Subject, Ticket,
    due::What,
    held::{Held, after},
};

/// The least time between two copies of a report.
const PERIOD: Duration = Duration::from_secs(10);

/// Where the copy of one worker's report stands.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// As it was last written; nothing is known of it after a restart.
    copy: Option<Held<ClusterCapacity>>,
    /// The uid of the MultiKueueCluster that it was made for; it goes with that.
    owner: Option<String>,
    /// It is being made.
    making: bool,
    /// Something else may be to be shown.
    due: bool,
    not_before: Option<Timestamp>,
}

impl Shown {
    /// The worker reported, or is known by another MultiKueueCluster.
    pub(super) fn look(&mut self) {
        self.due = true;
    }
}

impl Control {
    /// Shows reports that differ from what is shown.
    pub(crate) fn show_fleet(&mut self, now: Timestamp) {
        let Self { remotes, clusters, orders, due, .. } = self;
        for (name, remote) in remotes {
            // What the hub reports of itself, if it is a worker of others, has that name.
            if !remote.shown.due || **name == *LOCAL {
                continue;
            }
            if let Some(later) = remote.shown.not_before.filter(|at| *at > now) {
                due.at(later, What::Report);
                continue;
            }
            remote.shown.due = false;
            let key = Key { namespace: None, name: name.clone() };
            let Some(owner) = clusters.as_owner(name) else { continue };
            if let Some(order) = remote.show(&key, &owner) {
                remote.shown.not_before = Some(after(now, PERIOD));
                orders.push(order);
            }
        }
    }

    /// What came of writing a copy.
    pub(crate) fn shown_answer(&mut self, ticket: &Ticket, answer: WriteOutcome, now: Timestamp) {
        let Some(remote) = self.remotes.get_mut(&ticket.key.name) else {
            return;
        };
        let shown = &mut remote.shown;
        shown.making = false;
        shown.due = true;
        match (&mut shown.copy, answer) {
            // It was deleted, or is being made with the report.
            (copy, WriteOutcome::Gone) => *copy = None,
            (Some(held), answer) => held.answered(answer, now),
            (copy, WriteOutcome::Done(value)) => {
                *copy = serde_json::from_value(value).ok().map(Held::new);
                // What it shows is empty.
                shown.not_before = None;
            }
            (None, _) => {}
        }
        self.due.at(shown.not_before.unwrap_or(now), What::Report);
    }
}

impl Remote {
    /// The next write of the copy; none if it shows the report.
    fn show(&mut self, key: &Key, owner: &OwnerReference) -> Option<Order> {
        let report = &self.capacity.as_ref()?.object;
        let shown = &mut self.shown;
        if shown.owner.as_deref() != Some(&*owner.uid) {
            shown.owner = Some(owner.uid.clone());
            shown.copy = None;
        }
        match &mut shown.copy {
            _ if shown.making => None,
            None => {
                let ticket = Ticket::home(Subject::Capacity, key, Purpose::CapacityCopyCreate);
                let fields = json!({
                    "apiVersion": "sluice.dev/v1alpha1",
                    "kind": "ClusterCapacity",
                    "metadata": { "name": key.name, "ownerReferences": [owner] },
                    "spec": report.spec,
                });
                shown.making = true;
                Order::of(ticket, |purpose, key| {
                    Write::apply::<ClusterCapacity>(purpose, key, None, FIELD_MANAGER, &fields)
                })
            }
            Some(held) => {
                let ticket = Ticket::home(Subject::Capacity, key, Purpose::CapacityCopy);
                let (before, after) = (&held.object.status, &report.status);
                let order = Order::status::<ClusterCapacity, _>(ticket, before, after)?;
                held.sent();
                Some(order)
            }
        }
    }
}
