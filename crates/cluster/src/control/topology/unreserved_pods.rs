//! Bound pods that no reservation accounts for: they take their room of their nodes until they have ended.
//!
//! The topology assignment of a Workload accounts for its pods while the Workload holds a reservation. Pods run longer: those of a
//! Workload that was evicted, finished or deleted may take a long time to end. So a pod is charged to its node exactly
//! while the engine holds no reservation that accounts for it. A reservation accounts for a pod by the name that the pod has of the
//! Workload, unless owners show that the pod is of another job ([`ReservationOwners`]), or the pod is being deleted on a node outside of
//! the domains of the reservation: then it is of an earlier reservation of the same job, or on a node that was replaced.
//!
//! Inputs: changes of pods and Workloads, which mark pods. Before each run of cycles the marked pods are looked at again, so that no
//! pod is counted twice, or not at all. Cost: a change of a bound pod costs one look at the owners of its Workload, the begin or
//! end of a reservation costs its pods.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ::jobs::reservation_owners::ReservationOwners;
use crds::{
    meta::{Condition, find},
    names::conditions::{EVICTED, QUOTA_RESERVED},
    v1beta2::{Admission, Workload},
};
use engine::ids::WorkloadId;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use runtime::watch::Key;

use super::{
    foreign_usage::{ChargedPod, ForeignUsage},
    keyed_workload::KeyedWorkload,
    leaving_period::LeavingPeriod,
    topology_pods::TopologyPods,
    watched_node::WatchedNode,
    watched_pod::AssignedPod,
};
use crate::control::{
    concurrent_admission::parent_key,
    context::Context,
    elastic_chains::{ElasticChains, names_in_pods},
    key_map::KeyMap,
    key_set::KeySet,
    scheduling::Scheduler,
    timers::Reevaluation,
    workloads::{TrackedWorkload, WorkloadChange, WorkloadPhase, Workloads},
};

/// The bound pods that no reservation accounts for.
#[derive(Debug, Default)]
pub(super) struct UnreservedPods {
    /// Variants by their parent: pods name the parent.
    variants: KeyMap<Key, KeySet<Key>>,
    /// By the name that pods have of their Workload: the Workloads with a reservation, when the pods were last looked at.
    reserving: KeyMap<Key, KeySet<Key>>,
    /// By the name that pods have of their Workload: the Workload that was evicted last and is gone, while pods have the name.
    former: KeyMap<Key, Arc<Workload>>,
    /// Charged pods by the name that they have of their Workload.
    charged: KeyMap<Key, KeySet<Key>>,
    /// Bound pods that are being deleted.
    deleting: BTreeSet<Key>,
    /// Pods to look at.
    pods: BTreeSet<Key>,
    /// Names of which all pods are to be looked at.
    names: BTreeSet<Key>,
}

/// The Workloads that may account for pods of a name.
struct NamedWorkloads<'a> {
    reserving: Vec<ReservingWorkload<'a>>,
    evicted: Vec<EvictedWorkload<'a>>,
    scheduler: &'a Scheduler,
}

/// A Workload with a reservation.
struct ReservingWorkload<'a> {
    key: &'a Key,
    id: WorkloadId,
    owners: ReservationOwners<'a>,
}

/// An evicted Workload.
struct EvictedWorkload<'a> {
    /// Since when it is evicted and has no quota.
    released: Timestamp,
    owners: ReservationOwners<'a>,
}

impl UnreservedPods {
    /// Takes a change of a pod.
    pub(super) fn pod_changed(
        &mut self,
        key: &Key,
        (before, after): (Option<&AssignedPod>, Option<&AssignedPod>),
        pods: &TopologyPods,
    ) {
        let bound = after.filter(|after| after.usage.is_some());
        if let Some(AssignedPod { workload: name, .. }) = before
            && bound.is_none_or(|after| after.workload != *name)
        {
            self.charged.remove_member(name, key);
            if !pods.has_pods_of(name) {
                self.reserving.remove(name);
                self.former.remove(name);
            }
        }
        if bound.is_some() && before != after {
            self.pods.insert(key.clone());
        }
        if bound.is_some_and(|pod| pod.deletion.is_some()) {
            self.deleting.insert(key.clone());
        } else {
            self.deleting.remove(key);
        }
    }

    /// Nodes may be in other domains than before.
    pub(super) fn domains_changed(&mut self) {
        self.pods.extend(self.deleting.iter().cloned());
    }

    /// Takes a change of a Workload.
    pub(super) fn workload_changed(&mut self, change: &WorkloadChange, pods: &TopologyPods) {
        let (before, after) = (change.before.as_deref(), change.after.as_deref());
        let [former, parent] = [before, after].map(|one| one.and_then(parent_key));
        if let Some(former) = former.filter(|former| Some(former) != parent.as_ref()) {
            self.variants.remove_member(&former, &change.key);
        }
        if let Some(parent) = parent {
            self.variants.entry(parent).or_default().insert(change.key.clone());
        }
        let moved = !self.deleting.is_empty() && admission(before) != admission(after);
        if change.phase_before != change.phase || owners(before) != owners(after) || moved {
            let all = [before, after].into_iter().flatten();
            let names = all.flat_map(|workload| names_in_pods(&change.key, workload));
            self.names.extend(names.filter(|name| pods.has_pods_of(name)));
        }
        let evicted = change.phase_before.is_some_and(WorkloadPhase::is_evicted);
        if let Some(gone) = change.before.as_ref().filter(|_| after.is_none() && evicted) {
            self.note_former(&change.key, gone, pods);
        }
    }

    /// An evicted Workload is gone: its pods are to end as before.
    fn note_former(&mut self, key: &Key, gone: &Arc<Workload>, pods: &TopologyPods) {
        for name in names_in_pods(key, gone).filter(|name| pods.has_pods_of(name)) {
            let known = self.former.get(&name).map(|known| released_at(known));
            if known.is_none_or(|known| known <= released_at(gone)) {
                self.former.insert(name, Arc::clone(gone));
            }
        }
    }

    /// Looks whether a Workload holds a reservation that its pods were not looked at with, or the reverse.
    pub(super) fn reservation_may_differ(
        &mut self,
        KeyedWorkload { key, workload }: KeyedWorkload<'_>,
        reserves: bool,
        pods: &TopologyPods,
    ) {
        for name in names_in_pods(key, workload).filter(|name| pods.has_pods_of(name)) {
            let known = self.reserving.get(&name).into_iter().flatten().any(|one| one == key);
            if known != reserves {
                self.names.insert(name);
            }
        }
    }

    /// The variants of a parent.
    pub(super) fn variants_of(&self, parent: &Key) -> impl Iterator<Item = &Key> {
        self.variants.get(parent).into_iter().flatten()
    }

    /// Whether pods are charged that a reservation of a Workload would account for.
    pub(super) fn charges_pods_of(&self, key: &Key, workload: &Workload) -> bool {
        !self.charged.is_empty()
            && names_in_pods(key, workload).any(|name| self.charged.contains_key(&name))
    }

    /// Charges the pods that no reservation accounts for, and no others.
    pub(super) fn charge(
        &mut self,
        pods: &TopologyPods,
        usage: &mut ForeignUsage,
        chains: &ElasticChains,
        (workloads, scheduler): (&Workloads, &Scheduler),
        ctx: &mut Context,
    ) {
        self.pods.extend(ctx.agenda.take_leaving_pods());
        let due = self.take_due(pods);
        let Self { variants, reserving, former, charged, .. } = self;
        let mut named: BTreeMap<&Key, NamedWorkloads<'_>> = BTreeMap::new();
        for (key, pod) in due.iter().filter_map(|key| Some((key, pods.get(key)?.content()))) {
            let name = &pod.workload;
            let of_name = named.entry(name).or_insert_with(|| {
                let of_parent = variants.get(name).into_iter().flatten();
                let keys = chains.slices(name).chain(of_parent).chain([name]);
                NamedWorkloads::of(keys, former.get(name), workloads, scheduler)
            });
            let node = pod.node().and_then(|name| usage.node(name));
            let charge = of_name.charge(pod, node, ctx.now);
            let period = of_name.leaving_period(pod).filter(|_| charge.is_some());
            if let Some(at) = period.and_then(|period| period.next_change(ctx.now)) {
                ctx.agenda.at(at, Reevaluation::LeavingPod(key.clone()));
            }
            if charge.is_some() && pod.pod_set.is_some() {
                charged.entry(name.clone()).or_default().insert(key.clone());
            } else {
                charged.remove_member(name, key);
            }
            usage.set_pod(key, charge);
        }
        for (name, of_name) in named {
            let mut keys = KeySet::default();
            of_name.reserving.iter().for_each(|one| {
                keys.insert(one.key.clone());
            });
            reserving.insert(name.clone(), keys);
        }
    }

    fn take_due(&mut self, pods: &TopologyPods) -> BTreeSet<Key> {
        let names = std::mem::take(&mut self.names);
        let of_names = names.iter().flat_map(|name| pods.of(name).map(|one| one.key.clone()));
        let mut due = std::mem::take(&mut self.pods);
        due.extend(of_names);
        due
    }
}

impl<'a> NamedWorkloads<'a> {
    fn of<'k>(
        keys: impl Iterator<Item = &'k Key>,
        former: Option<&'a Arc<Workload>>,
        workloads: &'a Workloads,
        scheduler: &'a Scheduler,
    ) -> Self {
        let evicted = former.into_iter().map(|gone| EvictedWorkload::of(gone)).collect();
        let mut named = Self { reserving: Vec::new(), evicted, scheduler };
        for (key, record) in keys.filter_map(|key| workloads.get_key_value(key)) {
            if record.phase().is_evicted() {
                named.evicted.push(EvictedWorkload::of(record.object()));
            }
            if let Some(id) = record.id().filter(|id| scheduler.holds_reservation(*id)) {
                let owners = ReservationOwners::of(record.object());
                named.reserving.push(ReservingWorkload { key, id, owners });
            }
        }
        named
    }

    /// What a pod is charged with.
    fn charge(
        &self,
        pod: &AssignedPod,
        node: Option<&WatchedNode>,
        now: Timestamp,
    ) -> Option<ChargedPod> {
        let usage = pod.usage.clone().filter(|_| !self.account_for(pod, node))?;
        let leaves = self.leaving_period(pod).is_some_and(|period| period.contains(now));
        Some(ChargedPod { usage, leaves, runs_for: None })
    }

    /// When a pod leaves, if a deletion or an eviction is to end it.
    fn leaving_period(&self, pod: &AssignedPod) -> Option<LeavingPeriod> {
        if let Some(deletion) = pod.deletion {
            return Some(LeavingPeriod::of_deleted(deletion));
        }
        let of_pod = self.evicted.iter().filter(|one| may_be_of(pod, &one.owners));
        of_pod.map(|one| one.released).max().map(LeavingPeriod::of_evicted)
    }

    /// Whether a reservation accounts for a pod. None accounts for one without a pod set. A deleted pod on a node outside of the domains
    /// ends there, and its successor gets a domain.
    fn account_for(&self, pod: &AssignedPod, node: Option<&WatchedNode>) -> bool {
        let on_its_nodes = |id| {
            // Of a node that is not observed nothing is given to a Workload.
            pod.deletion.is_none()
                || node.is_none_or(|node| {
                    self.scheduler.assigns_node(id, node.hostname(), &node.info.labels)
                })
        };
        let accounts =
            |one: &ReservingWorkload<'_>| may_be_of(pod, &one.owners) && on_its_nodes(one.id);
        pod.pod_set.is_some() && self.reserving.iter().any(accounts)
    }
}

impl<'a> EvictedWorkload<'a> {
    fn of(workload: &'a Workload) -> Self {
        Self { released: released_at(workload), owners: ReservationOwners::of(workload) }
    }
}

fn may_be_of(pod: &AssignedPod, owners: &ReservationOwners<'_>) -> bool {
    owners.account_for(pod.uid.as_deref(), pod.controller.as_ref())
}

fn admission(workload: Option<&Workload>) -> Option<&Admission> {
    workload.and_then(|one| one.status.admission.as_ref())
}

fn owners(workload: Option<&Workload>) -> &[OwnerReference] {
    let owners = workload.and_then(|one| one.metadata.owner_references.as_deref());
    owners.unwrap_or_default()
}

/// Since when an evicted Workload has no quota, as far as its conditions say when.
fn released_at(workload: &Workload) -> Timestamp {
    let of = |kind| find(&workload.status.conditions, kind).and_then(Condition::transitioned_at);
    of(EVICTED).max(of(QUOTA_RESERVED)).unwrap_or(Timestamp::MIN)
}

/// Whether the engine holds a reservation of a Workload.
pub(super) fn holds_reservation(record: &TrackedWorkload, scheduler: &Scheduler) -> bool {
    record.id().is_some_and(|id| scheduler.holds_reservation(id))
}
