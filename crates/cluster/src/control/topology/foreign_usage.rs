//! What pods take of each node for which no topology assignment accounts: a change costs as much as it changes.
//!
//! The engine gets a node at most once per decision, however many of its pods have changed. Sums are 128 bits wide, so that
//! what was added is subtracted again exactly.
//!
//! Pods name the node that they are bound to by its name, topology assignments by its hostname: nodes are found by both.

use std::collections::{BTreeMap, BTreeSet};

use engine::Amount;
use index::NodeWithUsage;
use runtime::watch::Key;

use super::{watched_node::WatchedNode, watched_pod::PodUsage};
use crate::control::{key_map::KeyMap, key_set::KeySet};

/// The usage of each node that no topology assignment accounts for.
#[derive(Debug, Default)]
pub(super) struct ForeignUsage {
    nodes: KeyMap<Box<str>, UsedNode>,
    pods: KeyMap<Key, ChargedPod>,
    /// Pods by the Workload that they run for.
    by_workload: KeyMap<Key, KeySet<Key>>,
    /// Names of nodes by hostname.
    by_hostname: KeyMap<Box<str>, KeySet<Box<str>>>,
    /// Nodes that the engine knows otherwise.
    changed: BTreeSet<Box<str>>,
}

/// A pod, and what it takes of its node.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ChargedPod {
    pub(super) usage: PodUsage,
    /// It is about to leave its node.
    pub(super) leaves: bool,
    /// The Workload that it runs for without a topology request.
    pub(super) runs_for: Option<Key>,
}

/// A node and what is taken of it. Either may be observed first.
#[derive(Debug, Default)]
struct UsedNode {
    node: Option<WatchedNode>,
    taken: TakenResources,
    /// The part of it that pods take that are about to leave.
    leaving: TakenResources,
}

type TakenResources = BTreeMap<String, i128>;

impl ForeignUsage {
    /// A node, as it was last observed.
    pub(super) fn node(&self, name: &str) -> Option<&WatchedNode> {
        self.nodes.get(name)?.node.as_ref()
    }

    /// Nodes of a hostname, and their names. A label may be that of several nodes.
    pub(super) fn on_host(&self, hostname: &str) -> impl Iterator<Item = (&str, &WatchedNode)> {
        let names = self.by_hostname.get(hostname).into_iter().flatten();
        names.filter_map(|name| Some((&**name, self.node(name)?)))
    }

    /// Records a node; `None` if it is gone. Returns the hostnames of nodes that may have failed, or recovered.
    pub(super) fn set_node(&mut self, name: &str, node: Option<&WatchedNode>) -> Vec<Box<str>> {
        // Most changes of a Node are heartbeats of its kubelet.
        if self.node(name) == node {
            return Vec::new();
        }
        let known = &mut self.nodes.entry(name.into()).or_default().node;
        let before = std::mem::replace(known, node.cloned());
        self.changed(name);
        let health =
            |one: &WatchedNode| (Box::from(one.hostname()), one.readiness, one.taints.clone());
        let (before, after) = (before.as_ref().map(health), node.map(health));
        if before == after {
            return Vec::new();
        }
        let [before, after] = [before, after].map(|one| one.map(|(hostname, ..)| hostname));
        self.set_hostname(name, before.as_deref(), after.as_deref());
        before.into_iter().chain(after).collect()
    }

    fn set_hostname(&mut self, name: &str, before: Option<&str>, after: Option<&str>) {
        if let Some(hostname) = before {
            self.by_hostname.remove_member(hostname, &name.into());
        }
        if let Some(hostname) = after {
            self.by_hostname.entry(hostname.into()).or_default().insert(name.into());
        }
    }

    /// Records a pod; `None` if it is gone, or takes nothing any more.
    pub(super) fn set_pod(&mut self, key: &Key, pod: Option<ChargedPod>) {
        if self.pods.get(key) == pod.as_ref() {
            return;
        }
        // A list may show a successor of the name on another node, without the deletion in between.
        if let Some(before) = self.pods.remove(key) {
            self.charge(&before, -1);
            if let Some(workload) = &before.runs_for {
                self.by_workload.remove_member(workload, key);
            }
        }
        if let Some(pod) = pod {
            self.charge(&pod, 1);
            if let Some(workload) = pod.runs_for.clone() {
                self.by_workload.entry(workload).or_default().insert(key.clone());
            }
            self.pods.insert(key.clone(), pod);
        }
    }

    /// The Workload that a pod runs for without a topology request.
    pub(super) fn workload_of(&self, key: &Key) -> Option<&Key> {
        self.pods.get(key)?.runs_for.as_ref()
    }

    /// Names of nodes where pods without a topology request run for a Workload.
    pub(super) fn nodes_of(&self, workload: &Key) -> impl Iterator<Item = &str> {
        let pods = self.by_workload.get(workload).into_iter().flatten();
        pods.filter_map(|key| Some(&*self.pods.get(key)?.usage.node))
    }

    fn charge(&mut self, pod: &ChargedPod, sign: i128) {
        let ChargedPod { usage, leaves, .. } = pod;
        let known = self.nodes.entry(usage.node.clone()).or_default();
        add(&mut known.taken, usage, sign);
        if *leaves {
            add(&mut known.leaving, usage, sign);
        }
        self.changed(&usage.node);
    }

    /// Calls `apply` with each node that changed since the last call, and with `None` for one that is gone.
    pub(super) fn for_each_changed(
        &mut self,
        mut apply: impl FnMut(&str, Option<&NodeWithUsage<'_>>),
    ) {
        for name in std::mem::take(&mut self.changed) {
            let known = self.nodes.get(&*name);
            let Some(UsedNode { node: Some(WatchedNode { info, .. }), taken, leaving }) = known
            else {
                apply(&name, None);
                continue;
            };
            let node = NodeWithUsage {
                labels: &info.labels,
                taints: &info.taints,
                usable: info.usable,
                allocatable: &info.allocatable,
                foreign: &amounts(taken),
                leaving: &amounts(leaving),
            };
            apply(&name, Some(&node));
        }
    }

    fn changed(&mut self, name: &str) {
        // The watch of pods may be ahead of that of nodes: sums outlive the node.
        let unused = |one: &UsedNode| one.node.is_none() && one.taken.is_empty();
        if self.nodes.get(name).is_some_and(unused) {
            self.nodes.remove(name);
        }
        if !self.changed.contains(name) {
            self.changed.insert(name.into());
        }
    }
}

fn add(sums: &mut TakenResources, usage: &PodUsage, sign: i128) {
    for (resource, amount) in &usage.requests {
        *sums.entry(resource.clone()).or_default() += i128::from(amount.0) * sign;
    }
    sums.retain(|_, sum| *sum != 0);
}

fn amounts(sums: &TakenResources) -> BTreeMap<String, Amount> {
    sums.iter().map(|(name, sum)| (name.clone(), narrow(*sum))).collect()
}

fn narrow(sum: i128) -> Amount {
    Amount(i64::try_from(sum).unwrap_or(if sum < 0 { i64::MIN } else { i64::MAX }))
}
