//! Bound pods that no reservation accounts for: they take their room of their nodes until they have ended.
//!
//! The topology assignment of a Workload accounts for its pods while the Workload holds a reservation. Pods run longer: those of a
//! Workload that was evicted, finished or deleted may take a long time to end. So a pod is charged to its node exactly
//! while the engine holds no reservation that accounts for it. A reservation accounts for a pod by the name that the pod has of the
//! Workload, unless owners show that the pod is of another job ([`ReservationOwners`]).
//!
//! Inputs: changes of pods and Workloads, which mark pods. Before each run of cycles the marked pods are looked at again, so that no
//! pod is counted twice, or not at all. Cost: a change of a bound pod costs one look at the owners of its Workload, the begin or
//! end of a reservation costs its pods.

use std::collections::{BTreeMap, BTreeSet};

use ::jobs::reservation_owners::ReservationOwners;
use crds::v1beta2::Workload;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use runtime::watch::Key;

use super::{
    foreign_usage::{ChargedPod, ForeignUsage},
    topology_pods::TopologyPods,
    watched_pod::AssignedPod,
};
use crate::control::{
    concurrent_admission::parent_key,
    elastic_chains::{ElasticChains, names_in_pods},
    key_map::KeyMap,
    key_set::KeySet,
    scheduling::Scheduler,
    workloads::{TrackedWorkload, WorkloadChange, Workloads},
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct UnreservedPods {
    /// Variants by their parent: pods name the parent.
    variants: KeyMap<Key, KeySet<Key>>,
    /// By the name that pods have of their Workload: the Workloads with a reservation, when the pods were last looked at.
    reserving: KeyMap<Key, KeySet<Key>>,
    /// Charged pods by the name that they have of their Workload.
    charged: KeyMap<Key, KeySet<Key>>,
    /// Pods to look at.
    pods: BTreeSet<Key>,
    /// Names of which all pods are to be looked at.
    names: BTreeSet<Key>,
}

/// The Workloads that may account for pods of a name.
struct NamedWorkloads<'a> {
    reserving: Vec<(&'a Key, ReservationOwners<'a>)>,
    evicted: bool,
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
            }
        }
        if bound.is_some() && before != after {
            self.pods.insert(key.clone());
        }
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
        if change.phase_before != change.phase || owners(before) != owners(after) {
            let all = [before, after].into_iter().flatten();
            let names = all.flat_map(|workload| names_in_pods(&change.key, workload));
            self.names.extend(names.filter(|name| pods.has_pods_of(name)));
        }
    }

    /// Looks whether a Workload holds a reservation that its pods were not looked at with, or the reverse.
    pub(super) fn reservation_may_differ(
        &mut self,
        (key, workload): (&Key, &Workload),
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
    ) {
        let due = self.take_due(pods);
        let Self { variants, reserving, charged, .. } = self;
        let mut named: BTreeMap<&Key, NamedWorkloads<'_>> = BTreeMap::new();
        for (key, pod) in due.iter().filter_map(|key| Some((key, pods.get(key)?.content()))) {
            let name = &pod.workload;
            let of_name = named.entry(name).or_insert_with(|| {
                let of_parent = variants.get(name).into_iter().flatten();
                let keys = chains.slices(name).chain(of_parent).chain([name]);
                NamedWorkloads::of(keys, workloads, scheduler)
            });
            let charge = of_name.charge(pod);
            if charge.is_some() && pod.pod_set.is_some() {
                charged.entry(name.clone()).or_default().insert(key.clone());
            } else {
                charged.remove_member(name, key);
            }
            usage.set_pod(key, charge);
        }
        for (name, of_name) in named {
            let mut keys = KeySet::default();
            of_name.reserving.iter().for_each(|(key, _)| {
                keys.insert((*key).clone());
            });
            reserving.insert(name.clone(), keys);
        }
    }

    fn take_due(&mut self, pods: &TopologyPods) -> BTreeSet<Key> {
        let names = std::mem::take(&mut self.names);
        let of_names = names.iter().flat_map(|name| pods.of(name).map(|(key, _)| key.clone()));
        let mut due = std::mem::take(&mut self.pods);
        due.extend(of_names);
        due
    }
}

impl<'a> NamedWorkloads<'a> {
    fn of<'k>(
        keys: impl Iterator<Item = &'k Key>,
        workloads: &'a Workloads,
        scheduler: &Scheduler,
    ) -> Self {
        let mut named = Self { reserving: Vec::new(), evicted: false };
        for (key, record) in keys.filter_map(|key| workloads.get_key_value(key)) {
            named.evicted |= record.phase().is_evicted();
            if holds_reservation(record, scheduler) {
                named.reserving.push((key, ReservationOwners::of(record.object())));
            }
        }
        named
    }

    /// What a pod is charged with. One without a pod set is accounted for by no Workload.
    fn charge(&self, pod: &AssignedPod) -> Option<ChargedPod> {
        let usage = pod.usage.clone()?;
        let (uid, controller) = (pod.uid.as_deref(), pod.controller.as_ref());
        let accounts = |owners: &ReservationOwners<'_>| owners.account_for(uid, controller);
        let reserved =
            pod.pod_set.is_some() && self.reserving.iter().any(|(_, owners)| accounts(owners));
        (!reserved).then_some(ChargedPod { usage, leaves: pod.deleting || self.evicted })
    }
}

fn owners(workload: Option<&Workload>) -> &[OwnerReference] {
    let owners = workload.and_then(|one| one.metadata.owner_references.as_deref());
    owners.unwrap_or_default()
}

/// Whether the engine holds a reservation of a Workload.
pub(super) fn holds_reservation(record: &TrackedWorkload, scheduler: &Scheduler) -> bool {
    record.id().is_some_and(|id| scheduler.holds_reservation(id))
}
