//! What pods without a topology assignment take of each node: a change costs as much as it changes.
//!
//! The engine gets a node at most once per decision, however many of its pods have changed. Sums are 128 bits wide, so that
//! what was added is subtracted again exactly.
//!
//! Pods name the node that they are bound to by its name, topology assignments by its hostname: nodes are found by both.

use std::collections::{BTreeMap, BTreeSet};

use engine::Amount;
use index::NodeWithUsage;
use runtime::watch::Key;

use super::{watched_node::WatchedNode, watched_pod::ForeignPod};
use crate::control::{key_map::KeyMap, key_set::KeySet};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct ForeignUsage {
    nodes: KeyMap<Box<str>, UsedNode>,
    pods: KeyMap<Key, ForeignPod>,
    /// Names of nodes by hostname.
    by_hostname: KeyMap<Box<str>, KeySet<Box<str>>>,
    /// Nodes that the engine knows otherwise.
    changed: BTreeSet<Box<str>>,
}

/// A node and what is taken of it. Either may be observed first.
#[derive(Debug, Default)]
struct UsedNode {
    node: Option<WatchedNode>,
    taken: BTreeMap<String, i128>,
}

impl ForeignUsage {
    /// A node, as it was last observed.
    fn node(&self, name: &str) -> Option<&WatchedNode> {
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
        let health = |one: &WatchedNode| {
            (Box::from(one.hostname()), one.readiness, one.info.taints.clone())
        };
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
    pub(super) fn set_pod(&mut self, key: &Key, pod: Option<&ForeignPod>) {
        let before = match pod {
            Some(pod) if self.pods.get(key) == Some(pod) => return,
            Some(pod) => self.pods.insert(key.clone(), pod.clone()),
            None => self.pods.remove(key),
        };
        // A list may show a successor of the name on another node, without the deletion in between.
        for (pod, sign) in before.iter().map(|pod| (pod, -1)).chain(pod.map(|pod| (pod, 1))) {
            let known = self.nodes.entry(pod.node.clone()).or_default();
            for (resource, amount) in &pod.requests {
                let sum = known.taken.entry(resource.clone()).or_default();
                *sum += i128::from(amount.0) * sign;
            }
            known.taken.retain(|_, sum| *sum != 0);
            self.changed(&pod.node);
        }
    }

    /// Calls `apply` with each node that changed since the last call, and with `None` for one that is gone.
    pub(super) fn for_each_changed(
        &mut self,
        mut apply: impl FnMut(&str, Option<&NodeWithUsage<'_>>),
    ) {
        for name in std::mem::take(&mut self.changed) {
            let known = self.nodes.get(&*name);
            let Some(UsedNode { node: Some(WatchedNode { info, .. }), taken }) = known else {
                apply(&name, None);
                continue;
            };
            let foreign = taken.iter().map(|(name, sum)| (name.clone(), narrow(*sum)));
            let node = NodeWithUsage {
                labels: &info.labels,
                taints: &info.taints,
                usable: info.usable,
                allocatable: &info.allocatable,
                foreign: &foreign.collect(),
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

fn narrow(sum: i128) -> Amount {
    Amount(i64::try_from(sum).unwrap_or(if sum < 0 { i64::MIN } else { i64::MAX }))
}
