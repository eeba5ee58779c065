//! Pods with a topology request that name their Workload or the chain of its slices, and the domains that were given to them.
//!
//! A domain that was given counts as taken until the pod shows it, is gone, or the write is known to have had no effect. So no
//! domain is given twice, however late the watch is.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crds::names::gates::TOPOLOGY;
use engine::topology::HOSTNAME_LABEL;
use jobs::topology_ungater::{NodeLabels, UngaterPod};
use runtime::watch::Key;

use super::watched_pod::{AssignedPod, WatchedPod};
use crate::control::{
    key_map::KeyMap,
    key_set::KeySet,
    observed::Observed,
    outbox::{Stamp, version},
};

/// The pods with a topology request, by Workload.
#[derive(Debug, Default)]
pub(super) struct TopologyPods {
    pods: KeyMap<Key, TrackedPod>,
    /// By the name that they have of their Workload ([`name_in_pods`](crate::control::elastic_chains::name_in_pods)).
    by_workload: KeyMap<Key, KeySet<Key>>,
}

/// A pod as it was last observed.
#[derive(Debug, Clone)]
pub(super) struct TrackedPod {
    content: Arc<AssignedPod>,
    version: u64,
    /// The node labels of its domain, while the pod does not show them.
    given: Option<NodeLabels>,
    /// Its Workload has an Event about its offset.
    reported: bool,
}

impl TrackedPod {
    /// `None` for a pod without a topology request that names a Workload.
    pub(super) fn of(object: &Arc<Observed<WatchedPod>>) -> Option<Self> {
        let content = Arc::clone(object.content().of_workload()?);
        Some(Self { content, version: version(&**object), given: None, reported: false })
    }

    pub(super) fn content(&self) -> &Arc<AssignedPod> {
        &self.content
    }

    /// What a write of the pod is based on.
    pub(super) fn stamp(&self) -> Stamp {
        Stamp { version: self.version, uid: self.content().uid.clone() }
    }

    /// The version for the precondition of a write.
    pub(super) fn resource_version(&self) -> String {
        self.version.to_string()
    }

    pub(super) fn given(&self) -> Option<&NodeLabels> {
        self.given.as_ref()
    }

    /// Whether it waits for its domain. A pod that its Workload does not account for gets none.
    pub(super) fn is_gated(&self) -> bool {
        self.content().pod_set.is_some() && self.has_gate()
    }

    fn has_gate(&self) -> bool {
        self.content().gates.iter().any(|gate| **gate == *TOPOLOGY)
    }

    /// Whether it is on a node and stays there.
    pub(super) fn runs(&self) -> bool {
        self.content().usage.is_some() && self.content().deletion.is_none()
    }

    /// The node that it waits for, if that alone may take it.
    pub(super) fn awaited_node(&self) -> Option<&str> {
        let pod = self.content();
        let waits = pod.usage.is_none() && pod.deletion.is_none() && !self.has_gate();
        pod.node_selector.get(HOSTNAME_LABEL).map(String::as_str).filter(|_| waits)
    }

    /// As the ungater reads it: a domain that was given counts.
    pub(super) fn for_ungater(&self) -> UngaterPod<'_> {
        let pod = self.content();
        UngaterPod {
            labels: &pod.labels,
            annotations: &pod.annotations,
            node_selector: self.given.as_ref().unwrap_or(&pod.node_selector),
            gated: self.given.is_none() && self.is_gated(),
            deleting: pod.deletion.is_some(),
        }
    }
}

/// A pod with its key.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyedPod<'a> {
    pub(super) key: &'a Key,
    pub(super) pod: &'a TrackedPod,
}

impl TopologyPods {
    /// Records a pod; `None` if it is gone or does not matter any more. Returns the names of the Workloads that
    /// are concerned.
    pub(super) fn set(&mut self, key: &Key, pod: Option<TrackedPod>) -> Vec<Key> {
        let known = self.pods.get(key);
        let same = |known: &TrackedPod, pod: &TrackedPod| known.content().uid == pod.content().uid;
        if let (Some(known), Some(pod)) = (known, &pod)
            && same(known, pod)
            && pod.version <= known.version
        {
            return Vec::new();
        }
        let given = match (known, &pod) {
            (Some(known), Some(pod)) if same(known, pod) && pod.is_gated() => known.given.clone(),
            _ => None,
        };
        let reported = match (known, &pod) {
            (Some(known), Some(pod)) => same(known, pod) && known.reported,
            _ => false,
        };
        let pod = pod.map(|pod| TrackedPod { given, reported, ..pod });
        let after = pod.as_ref().map(|pod| pod.content().workload.clone());
        let before = match pod {
            Some(pod) => self.pods.insert(key.clone(), pod),
            None => self.pods.remove(key),
        };
        let before = before.map(|pod| pod.content().workload.clone());
        if let Some(workload) = before.as_ref().filter(|before| Some(*before) != after.as_ref()) {
            self.by_workload.remove_member(workload, key);
        }
        if let Some(workload) = &after {
            self.by_workload.entry(workload.clone()).or_default().insert(key.clone());
        }
        let concerned: BTreeSet<Key> = before.into_iter().chain(after).collect();
        concerned.into_iter().collect()
    }

    pub(super) fn get(&self, key: &Key) -> Option<&TrackedPod> {
        self.pods.get(key)
    }

    /// Pods that a Workload accounts for by pod set, in the order of their names.
    pub(super) fn by_pod_set(&self, workload: &Key) -> BTreeMap<&str, Vec<KeyedPod<'_>>> {
        let mut sets: BTreeMap<&str, Vec<KeyedPod<'_>>> = BTreeMap::new();
        for one in self.of(workload) {
            if let Some(name) = &one.pod.content().pod_set {
                sets.entry(name).or_default().push(one);
            }
        }
        sets
    }

    /// Whether pods have this name of their Workload.
    pub(super) fn has_pods_of(&self, workload: &Key) -> bool {
        self.by_workload.contains_key(workload)
    }

    /// Pods of a Workload, in the order of their names.
    pub(super) fn of(&self, workload: &Key) -> impl Iterator<Item = KeyedPod<'_>> {
        let keys = self.by_workload.get(workload).into_iter().flatten();
        let known = keys.filter_map(|key| self.pods.get_key_value(key));
        known.map(|(key, pod)| KeyedPod { key, pod })
    }

    /// Whether pods of a Workload have no domain, or do not show it.
    pub(super) fn await_domains(&self, workload: &Key) -> bool {
        self.of(workload).any(|one| one.pod.is_gated())
    }

    /// A pod gets a domain, which it does not show yet.
    pub(super) fn give(&mut self, key: &Key, labels: NodeLabels) {
        if let Some(pod) = self.pods.get_mut(key) {
            pod.given = Some(labels);
        }
    }

    /// Whether the offset of a pod was not reported before.
    pub(super) fn report(&mut self, key: &Key) -> bool {
        self.pods.get_mut(key).is_some_and(|pod| !std::mem::replace(&mut pod.reported, true))
    }

    /// The domain of a pod is free again.
    pub(super) fn take_back(&mut self, key: &Key) {
        if let Some(pod) = self.pods.get_mut(key) {
            pod.given = None;
        }
    }
}
