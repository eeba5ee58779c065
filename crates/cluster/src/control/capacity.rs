//! What a thin worker can take: its nodes, less what is bound to them, less what is still to come.
//!
//! The same numbers decide here and are reported to the manager: of pods that are bound, the node is known; pods of
//! clones that are not bound yet are packed where they fit. What is reported never overstates (spec/dispatch.md §2).

mod node;
mod report;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ::dispatch::{Given, Kind, Report, Work};
use ::index::Added;
use crds::{
    names::{annotations::WORKLOAD, labels::MULTI_KUEUE_WORKER_POD},
    v1alpha1::ClusterCapacity,
    v1beta2::Workload,
};
use engine::Amount;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use runtime::{
    watch::{Change, Key},
    writer::Answer,
};

use self::node::{BoundPod, FreeNode, NodeFacts};
use super::{Control, Role, due::What, held::Held, record::has_quota, schedule::LOCAL};

/// The least time between two reports, after the first.
const REPORT_PERIOD: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Capacity {
    nodes: BTreeMap<Box<str>, NodeFacts>,
    /// Pods that are bound and not over.
    pods: BTreeMap<Key, BoundPod>,
    report: Option<Held<ClusterCapacity>>,
    creating: bool,
    not_before: Option<Timestamp>,
    /// What remains to be bound, by Workload, as the fleet was told.
    told: BTreeMap<Key, Arc<Work>>,
    report_due: bool,
}

impl Control {
    pub(super) fn nodes(&mut self, change: Change<Node>) {
        self.take(change, |this, key, object| {
            match object {
                Some(node) => this.capacity.nodes.insert(key.name, NodeFacts::of(&node)),
                None => this.capacity.nodes.remove(&key.name),
            };
            this.due.now(What::Capacity);
        });
    }

    pub(super) fn pods(&mut self, change: Change<Pod>) {
        self.take(change, |this, key, object| {
            let bound = object.as_ref().and_then(BoundPod::of);
            let before = match bound.clone() {
                Some(pod) => this.capacity.pods.insert(key, pod),
                None => this.capacity.pods.remove(&key),
            };
            if before != bound {
                this.due.now(What::Capacity);
            }
        });
    }

    pub(super) fn capacities(&mut self, change: Change<ClusterCapacity>) {
        self.take(change, |this, key, object| {
            if &*key.name != crds::v1alpha1::LOCAL {
                return;
            }
            match (&mut this.capacity.report, object) {
                (Some(held), Some(object)) => {
                    held.see(object);
                }
                (report, object) => *report = object.map(Held::new),
            }
            this.capacity.creating = false;
            this.capacity.report_due = true;
        });
    }

    pub(super) fn capacity_answer(&mut self, answer: Answer, now: Timestamp) {
        self.capacity.creating = false;
        match (&mut self.capacity.report, answer) {
            (Some(held), answer) => held.answered(answer, now),
            (report, Answer::Done(value)) => {
                *report = serde_json::from_value(value).ok().map(Held::new);
            }
            _ => {}
        }
        self.due.now(What::Capacity);
    }

    /// Tells engine and fleet what there is now.
    pub(super) fn refresh_capacity(&mut self, now: Timestamp) {
        if self.settings.role != Role::Thin || !std::mem::take(&mut self.due.capacity) {
            return;
        }
        let foreign = |pod: &&BoundPod| pod.workload.is_none();
        let totals =
            node::totals(&self.capacity.nodes, self.capacity.pods.values().filter(foreign));
        let totals: Vec<(&str, Amount)> =
            totals.iter().map(|(name, amount)| (name.as_str(), *amount)).collect();
        let events = self.index.thin_quota(self.engine.names_mut(), &totals);
        self.tell(events);
        let id = self.fleet.cluster(LOCAL);
        self.fleet.set_connected(id, true);
        let config = ::dispatch::Config { clusters: vec![id], ..Default::default() };
        self.fleet.set_config(LOCAL, Some(config));
        let report = self.local_report();
        self.fleet.set_report(id, Some(report));
        self.tell_remaining(id, now);
        self.capacity.report_due = true;
    }

    /// The nodes as they are, every label counted. A clone does not say of which kind its job is.
    fn local_report(&mut self) -> Report {
        let names = self.engine.names_mut();
        let keys = node::all_label_keys(&self.capacity.nodes);
        let (nodes, empty) = self.capacity.free();
        report::classes(names, (&nodes, &empty), &keys, vec![Kind::default()])
    }

    /// Pods of clones that hold quota and are not bound yet take room, too.
    fn tell_remaining(&mut self, id: engine::ids::ClusterId, now: Timestamp) {
        let remaining = self.remaining(has_quota);
        let Self { capacity, fleet, workloads, .. } = self;
        for key in capacity.told.keys().filter(|key| !remaining.contains_key(*key)) {
            if let Some(record) = workloads.get(key).filter(|one| one.wants.reserve.is_none()) {
                fleet.forget(record.id);
            }
        }
        for (key, work) in &remaining {
            if capacity.told.get(key) != Some(work)
                && let Some(record) = workloads.get(key)
            {
                fleet.place(record.id, id, Arc::clone(work), super::time(now));
            }
        }
        capacity.told = remaining;
    }

    /// What is still to be bound of the Workloads that count.
    fn remaining(&self, counts: impl Fn(&Workload) -> bool) -> BTreeMap<Key, Arc<Work>> {
        let mut all = BTreeMap::new();
        for (key, record) in &self.workloads {
            let workload = record.object();
            let over = super::record::is(workload, crds::names::conditions::FINISHED);
            if over || !counts(workload) {
                continue;
            }
            let Some(request) = self.index.request(record.id) else {
                continue;
            };
            let reclaimable = self.jobs.of(key, workload).map(|(_, job)| {
                use ::jobs::JobKind;
                job.reclaimable()
            });
            let given = request.pod_sets.iter().map(|pods| {
                let bound = self.capacity.bound(key, &pods.name);
                let over = reclaimable.iter().flatten().filter(|one| *one.name == *pods.name);
                let over: i64 = over.map(|one| i64::from(one.count)).sum();
                carried(workload, &pods.name, (pods.count - over - bound).max(0))
            });
            let given: Vec<Given> = given.collect();
            if given.iter().any(|one| one.count > 0) {
                let request = Arc::clone(request);
                all.insert(key.clone(), Arc::new(Work { request, given }));
            }
        }
        all
    }

    /// Writes the report, if it says something else than the last one.
    pub(super) fn report_capacity(&mut self, now: Timestamp) {
        if self.settings.role != Role::Thin || !self.capacity.report_due {
            return;
        }
        if let Some(at) = self.capacity.not_before.filter(|at| *at > now) {
            return self.due.at(at, What::Capacity);
        }
        let Some(held) = &self.capacity.report else {
            return self.create_report();
        };
        if !held.is_free(now) {
            held.later().into_iter().for_each(|at| self.due.at(at, What::Capacity));
            return;
        }
        self.capacity.report_due = false;
        let status = self.report_status();
        let Some(held) = &mut self.capacity.report else {
            return;
        };
        if report::same(&held.object.status, &status) {
            return;
        }
        if let Some(order) = report::order(&held.object.status, &status) {
            held.sent();
            self.capacity.not_before = Some(super::held::after(now, REPORT_PERIOD));
            self.orders.push(order);
        }
    }

    fn create_report(&mut self) {
        if !std::mem::replace(&mut self.capacity.creating, true) {
            self.orders.extend(report::creation());
        }
    }

    fn report_status(&mut self) -> crds::v1alpha1::ClusterCapacityStatus {
        let keys = self.capacity.report.as_ref().map(|held| held.object.spec.label_keys.clone());
        let keys = keys.unwrap_or_default();
        let (nodes, empty) = self.capacity.free();
        let remaining = self.remaining(|_| true);
        let names = self.engine.names_mut();
        let known =
            report::classes(
            names,
            (&nodes, &empty),
            &node::all_label_keys(&self.capacity.nodes),
            Vec::new(),
        );
        let left = ::dispatch::left_over(&known, remaining.values().map(Arc::as_ref));
        let workloads = self.workloads.values();
        let newest = workloads.clone().map(|record| record.held.version()).max().unwrap_or(0);
        let counts = report::counts(workloads.map(super::Record::object), &self.settings.origin);
        report::status(self.engine.names(), &left, &keys, newest, counts)
    }
}

impl Capacity {
    /// The nodes, and the same nodes without what was dispatched.
    fn free(&self) -> (Vec<FreeNode<'_>>, Vec<FreeNode<'_>>) {
        let foreign = self.pods.values().filter(|pod| pod.workload.is_none());
        (node::free(&self.nodes, self.pods.values()), node::free(&self.nodes, foreign))
    }

    fn bound(&self, workload: &Key, pod_set: &str) -> i64 {
        let of = |pod: &&BoundPod| {
            pod.workload.as_ref() == Some(workload) && pod.pod_set.as_deref() == Some(pod_set)
        };
        i64::try_from(self.pods.values().filter(of).count()).unwrap_or(i64::MAX)
    }
}

/// So many pods of a pod set, with the node labels and tolerations that a clone carries for it: its flavors are not here.
pub(super) fn carried(clone: &Workload, pod_set: &str, count: i64) -> Given {
    let info = ::jobs::assignment::read(clone, pod_set).unwrap_or_default();
    let (name, labels) = (pod_set.to_owned(), info.node_selector);
    ::index::given(&Added { name, count, labels, tolerations: info.tolerations })
}

/// The Workload that a pod belongs to, if it is one of ours.
fn workload_of(pod: &Pod) -> Option<Key> {
    let labels = pod.metadata.labels.as_ref()?;
    labels.get(MULTI_KUEUE_WORKER_POD)?;
    let name = pod.metadata.annotations.as_ref()?.get(WORKLOAD)?;
    let namespace = pod.metadata.namespace.as_deref().map(Into::into);
    Some(Key { namespace, name: name.as_str().into() })
}
