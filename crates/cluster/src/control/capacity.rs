//! What a thin worker can take: its nodes, less what is bound to them, less what is still to come.
//!
//! The same numbers decide here and are reported to the manager: of pods that are bound, the node is known; pods of
//! clones that are not bound yet are packed where they fit. What is reported never overstates (docs/reference/dispatch.md §2).

mod machines;
mod node;
mod report;
mod stranded;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use ::dispatch::{AssignedPodSet, AssignedWorkload, CapacityReport, DispatchConfig, Fleet, JobGvk};
use ::index::FlavorInfo;
use crds::{
    names::{annotations::WORKLOAD, labels::MULTI_KUEUE_WORKER_POD},
    v1alpha1::ClusterCapacity,
    v1beta2::Workload,
};
use engine::ids::{ClusterId, WorkloadId};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use runtime::{
    watch::{Change, Key},
    writer::WriteOutcome,
};

pub(super) use self::stranded::Stranded;

use self::{
    machines::Machines,
    node::{BoundPod, NodeFacts},
    stranded::Waiting,
};
use super::{Control, Role, due::What, held::Held, record::has_quota, schedule::LOCAL};

/// The least time between two reports, after the first.
const REPORT_PERIOD: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Capacity {
    machines: Machines,
    waiting: Waiting,
    /// Clones whose pods to come may be others now.
    touched: BTreeSet<Key>,
    /// What remains to be bound of clones that are not over.
    to_come: BTreeMap<Key, ToCome>,
    /// Clones whose pods to come the fleet counts.
    told: BTreeMap<Key, (WorkloadId, Arc<AssignedWorkload>)>,
    report: Option<Held<ClusterCapacity>>,
    creating: bool,
    not_before: Option<Timestamp>,
    report_due: bool,
}

/// Pods of a clone that are not bound yet.
#[derive(Debug, Clone, PartialEq)]
struct ToCome {
    work: Arc<AssignedWorkload>,
    /// The clone holds quota.
    holds: bool,
}

/// The workers that a cluster of this role knows from the start: a thin worker knows itself.
pub(super) fn known_from_the_start(role: Role) -> Fleet {
    let mut fleet = Fleet::new();
    if role == Role::Thin {
        let id = fleet.cluster(LOCAL);
        fleet.set_connected(id, true);
        fleet.set_config(
            LOCAL,
            Some(DispatchConfig { clusters: vec![id], ..DispatchConfig::default() }),
        );
    }
    fleet
}

impl Control {
    pub(super) fn nodes(&mut self, change: Change<Node>) {
        self.take(change, |this, key, object| {
            if this.capacity.machines.set_node(&key.name, object.as_ref().map(NodeFacts::of)) {
                this.due.now(What::Capacity);
            }
        });
    }

    pub(super) fn pods(&mut self, change: Change<Pod>) {
        self.take(change, |this, key, object| {
            for clone in this.capacity.waiting.see(&key, object.as_ref()) {
                this.due.now(What::Workload(clone));
            }
            let bound = object.as_ref().and_then(BoundPod::of);
            if let Some(clones) = this.capacity.machines.set_pod(key, bound) {
                this.capacity.touched.extend(clones);
                this.due.now(What::Capacity);
            }
        });
    }

    /// Whether no node takes a pod of a clone.
    pub(super) fn stranded(&self, key: &Key) -> Option<Stranded> {
        self.capacity.waiting.of(key)
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

    pub(super) fn capacity_answer(&mut self, answer: WriteOutcome, now: Timestamp) {
        self.capacity.creating = false;
        match (&mut self.capacity.report, answer) {
            (Some(held), answer) => held.answered(answer, now),
            (report, WriteOutcome::Done(value)) => {
                *report = serde_json::from_value(value).ok().map(Held::new);
            }
            _ => {}
        }
        self.capacity.report_due = true;
    }

    /// Tells engine and fleet what there is now.
    pub(super) fn refresh_capacity(&mut self) {
        if self.settings.role != Role::Thin {
            return;
        }
        self.capacity.touched.extend(self.due.workloads.iter().cloned());
        let id = self.fleet.cluster(LOCAL);
        if std::mem::take(&mut self.due.capacity) {
            self.tell_machines(id);
        }
        for key in std::mem::take(&mut self.capacity.touched) {
            self.tell_to_come(&key, id);
            self.capacity.report_due = true;
        }
    }

    fn tell_machines(&mut self, id: ClusterId) {
        let totals = self.capacity.machines.totals();
        let events = self.index.agent_mode_quota(self.engine.names_mut(), &totals);
        self.tell(events);
        let report = self.local_report();
        self.fleet.set_report(id, Some(report));
        self.capacity.report_due = true;
    }

    /// The nodes as they are, every label counted. A clone does not say of which kind its job is.
    fn local_report(&mut self) -> CapacityReport {
        let machines = &self.capacity.machines;
        let keys = machines.label_keys();
        report::classes(self.engine.names_mut(), &machines.free(), &keys, vec![JobGvk::default()])
    }

    /// Pods of a clone that are not bound yet take room, too.
    fn tell_to_come(&mut self, key: &Key, id: ClusterId) {
        let to_come = self.to_come(key);
        let counted = to_come.as_ref().filter(|one| one.holds).map(|one| Arc::clone(&one.work));
        let Self { capacity, fleet, workloads, .. } = self;
        match (workloads.get(key), counted) {
            (Some(record), Some(work)) => {
                let told = (record.id, work);
                if capacity.told.get(key) != Some(&told) {
                    let since = super::record::started(record.object());
                    fleet.place(told.0, id, Arc::clone(&told.1), since);
                    capacity.told.insert(key.clone(), told);
                }
            }
            (record, _) => {
                let told = capacity.told.remove(key).is_some();
                if let Some(record) = record.filter(|one| told && one.wants.reserve.is_none()) {
                    fleet.unplace(record.id);
                }
            }
        }
        match to_come {
            Some(to_come) => capacity.to_come.insert(key.clone(), to_come),
            None => capacity.to_come.remove(key),
        };
    }

    /// What is still to be bound of a clone; none if there is nothing.
    fn to_come(&self, key: &Key) -> Option<ToCome> {
        let record = self.workloads.get(key)?;
        let workload = record.object();
        if super::record::is(workload, crds::names::conditions::FINISHED) {
            return None;
        }
        let request = self.index.request(record.id)?;
        let reclaimable = self.jobs.of(key, workload).map(|(_, job)| {
            use ::jobs::GenericJob;
            job.reclaimable_pods()
        });
        let given = request.pod_sets.iter().map(|pods| {
            let bound = self.capacity.machines.bound(key, &pods.name);
            let over = reclaimable.iter().flatten().filter(|one| *one.name == *pods.name);
            let over: i64 = over.map(|one| i64::from(one.count)).sum();
            carried(workload, &pods.name, (pods.count - over - bound).max(0))
        });
        let given: Vec<AssignedPodSet> = given.collect();
        given.iter().any(|one| one.count > 0).then(|| {
            let work = Arc::new(AssignedWorkload { request: Arc::clone(request), assigned: given });
            ToCome { work, holds: has_quota(workload) }
        })
    }

    /// Writes the report, if it says something else than the last one.
    pub(super) fn report_capacity(&mut self, now: Timestamp) {
        if self.settings.role != Role::Thin || !self.capacity.report_due {
            return;
        }
        if let Some(at) = self.capacity.not_before.filter(|at| *at > now) {
            return self.due.at(at, What::Report);
        }
        let Some(held) = &self.capacity.report else {
            return self.create_report();
        };
        if !held.is_free(now) {
            held.later().into_iter().for_each(|at| self.due.at(at, What::Report));
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
        let known = self.local_report();
        let to_come = self.capacity.to_come.values().map(|one| one.work.as_ref());
        let left = ::dispatch::free_capacity(&known, to_come);
        let workloads = self.workloads.values();
        let newest = workloads.clone().map(|record| record.held.version()).max().unwrap_or(0);
        let counts = report::counts(workloads.map(super::Record::object), &self.settings.origin);
        let kinds = self.settings.allowed.kinds();
        report::status(self.engine.names(), &left, &keys, newest, kinds, counts)
    }
}

/// So many pods of a pod set, with the node labels and tolerations that a clone carries for it: its flavors are not here.
pub(super) fn carried(clone: &Workload, pod_set: &str, count: i64) -> AssignedPodSet {
    let info = ::jobs::clone_assignment::read(clone, pod_set).unwrap_or_default();
    let (name, labels) = (pod_set.to_owned(), info.node_selector);
    ::index::assigned_pod_set(&FlavorInfo { name, count, labels, tolerations: info.tolerations })
}

/// The Workload that a pod belongs to, if it is one of ours.
fn workload_of(pod: &Pod) -> Option<Key> {
    let labels = pod.metadata.labels.as_ref()?;
    labels.get(MULTI_KUEUE_WORKER_POD)?;
    let name = pod.metadata.annotations.as_ref()?.get(WORKLOAD)?;
    let namespace = pod.metadata.namespace.as_deref().map(Into::into);
    Some(Key { namespace, name: name.as_str().into() })
}
