//! Nodes and the pods bound to them, kept up to date: a change costs as much as it changes, at any number of nodes.
//!
//! Sums are 128 bits wide: whatever a pod requests, what was added is subtracted again exactly.

use std::collections::{BTreeMap, BTreeSet};

use dispatch::{LocalNode, NodeUsage};
use engine::{Amount, Names, ids::ResourceId};
use runtime::watch::Key;

use super::node::BoundPod;
use crate::control::{autoscalers::ExistingNode, key_map::KeyMap, node_info::NodeInfo};

/// Sums by resource.
type ResourceSums = BTreeMap<String, i128>;

/// Nodes and bound pods of the cluster.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    nodes: KeyMap<Box<str>, TrackedNode>,
    /// Pods that are bound and not over.
    pods: KeyMap<Key, BoundPod>,
    /// Bound pods of clones.
    bound: KeyMap<Key, PodsOfClone>,
    totals: ResourceSums,
    totals_changed: bool,
    /// Nodes that changed since they were last taken.
    changed: BTreeSet<Box<str>>,
}

/// The bound pods of a clone.
#[derive(Debug, Default)]
struct PodsOfClone {
    /// Their number, by pod set.
    counts: KeyMap<Box<str>, i64>,
    /// What they take, by node.
    taken: BTreeMap<Box<str>, ResourceSums>,
}

/// A node and what its pods take. Either may be observed first.
#[derive(Debug, Default)]
struct TrackedNode {
    info: Option<NodeInfo>,
    taken: ResourceSums,
    /// The part of it that pods other than those of clones take.
    foreign: ResourceSums,
    /// The part of it that pods of DaemonSets take.
    daemons: ResourceSums,
}

impl Nodes {
    /// Records a node; `None` if it is gone. Returns whether anything changed.
    pub(super) fn set_node(&mut self, name: &str, info: Option<NodeInfo>) -> bool {
        // Most changes of a Node are heartbeats of its kubelet.
        if self.nodes.get(name).is_some_and(|node| node.info == info) {
            return false;
        }
        self.change(name, |node| node.info = info);
        true
    }

    /// Records a pod; `None` if it is gone, over, or not bound. Returns the clones that are concerned if anything changed.
    pub(super) fn set_pod(&mut self, key: Key, pod: Option<BoundPod>) -> Option<Vec<Key>> {
        let before = match pod.clone() {
            Some(pod) => self.pods.insert(key, pod),
            None => self.pods.remove(&key),
        };
        if before == pod {
            return None;
        }
        // A list may show a successor of the name on another node, without the deletion in between.
        for (pod, sign) in before.iter().map(|pod| (pod, -1)).chain(pod.iter().map(|pod| (pod, 1)))
        {
            self.count(pod, sign);
            self.change(&pod.node, |node| node.take(pod, sign));
        }
        let clones = before.into_iter().chain(pod).filter_map(|pod| pod.workload);
        Some(clones.collect())
    }

    /// Bound pods of one pod set of a clone.
    pub(super) fn bound(&self, clone: &Key, pod_set: &str) -> i64 {
        self.bound.get(clone).and_then(|pods| pods.counts.get(pod_set)).copied().unwrap_or_default()
    }

    /// What bound pods of a clone take, by node.
    pub(super) fn taken_by(&self, clone: &Key, names: &mut Names) -> Vec<NodeUsage> {
        let nodes = self.bound.get(clone).into_iter().flat_map(|pods| &pods.taken);
        let usage = nodes.map(|(node, sums)| {
            let sums = sums.iter().map(|(resource, sum)| (resource.clone(), narrow(*sum)));
            NodeUsage { node: node.clone(), amounts: amounts(names, sums) }
        });
        usage.collect()
    }

    /// Whether the totals changed since this was last asked.
    pub(super) fn take_totals_changed(&mut self) -> bool {
        std::mem::take(&mut self.totals_changed)
    }

    /// What usable nodes have in all, less what pods of others take.
    pub(super) fn totals(&self) -> impl Iterator<Item = (&str, Amount)> {
        self.totals.iter().map(|(name, sum)| (name.as_str(), narrow(*sum)))
    }

    /// Names of nodes that changed since they were last taken.
    pub(super) fn take_changed(&mut self) -> BTreeSet<Box<str>> {
        std::mem::take(&mut self.changed)
    }

    /// A node and what is free on it; `None` if it is not usable.
    pub(super) fn local(&self, name: &str, names: &mut Names) -> Option<LocalNode> {
        let node = self.nodes.get(name)?;
        let info = node.usable()?;
        let labels = info.labels.iter();
        Some(LocalNode {
            labels: labels
                .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
                .collect(),
            taints: index::taints(&info.taints),
            free: amounts(names, less(info, &node.taken)),
            size: amounts(names, less(info, &node.foreign)),
        })
    }

    /// Nodes that take pods, in the order of their names.
    pub(super) fn existing(&self) -> impl Iterator<Item = ExistingNode<'_>> {
        self.nodes.iter().filter_map(|(name, node)| {
            Some(ExistingNode { name, info: node.usable()?, daemons: &node.daemons })
        })
    }

    fn count(&mut self, pod: &BoundPod, sign: i64) {
        let Some(clone) = &pod.workload else {
            return;
        };
        let pods = self.bound.entry(clone.clone()).or_default();
        pods.count(pod, sign);
        if pods.counts.is_empty() && pods.taken.is_empty() {
            self.bound.remove(clone);
        }
    }

    /// Changes a node and the totals with it.
    fn change(&mut self, name: &str, change: impl FnOnce(&mut TrackedNode)) {
        self.changed.insert(name.into());
        let node = self.nodes.entry(name.into()).or_default();
        let before = node.offered();
        change(node);
        let after = node.offered();
        if before != after {
            self.totals_changed = true;
            for (offered, sign) in [(before, -1), (after, 1)] {
                for (resource, amount) in offered {
                    *self.totals.entry(resource).or_default() += sign * i128::from(amount.0);
                }
            }
        }
        // The watch of pods may be ahead of that of nodes: sums of bound pods outlive the node.
        if node.info.is_none() && node.taken.values().all(|taken| *taken == 0) {
            self.nodes.remove(name);
        }
    }
}

impl PodsOfClone {
    fn count(&mut self, pod: &BoundPod, sign: i64) {
        let taken = self.taken.entry(pod.node.clone()).or_default();
        add(taken, pod, sign);
        taken.retain(|_, sum| *sum != 0);
        if taken.is_empty() {
            self.taken.remove(&pod.node);
        }
        if let Some(pod_set) = &pod.pod_set {
            let count = self.counts.entry(pod_set.clone()).or_default();
            *count += sign;
            if *count == 0 {
                self.counts.remove(pod_set);
            }
        }
    }
}

impl TrackedNode {
    fn usable(&self) -> Option<&NodeInfo> {
        self.info.as_ref().filter(|info| info.usable)
    }

    /// What clones may use of it.
    fn offered(&self) -> Vec<(String, Amount)> {
        self.usable().map(|info| less(info, &self.foreign).collect()).unwrap_or_default()
    }

    fn take(&mut self, pod: &BoundPod, sign: i64) {
        add(&mut self.taken, pod, sign);
        if pod.workload.is_none() {
            add(&mut self.foreign, pod, sign);
        }
        if pod.of_daemon_set {
            add(&mut self.daemons, pod, sign);
        }
    }
}

/// Adds what a pod requests, or subtracts it.
fn add(sums: &mut ResourceSums, pod: &BoundPod, sign: i64) {
    for (resource, amount) in &pod.requests {
        let amount = i128::from(amount.0) * i128::from(sign);
        *sums.entry(resource.clone()).or_default() += amount;
    }
}

/// What a node has, less what is taken; never negative.
fn less<'a>(
    info: &'a NodeInfo,
    taken: &'a ResourceSums,
) -> impl Iterator<Item = (String, Amount)> + 'a {
    info.allocatable.iter().map(|(resource, amount)| {
        // A node whose allocatable was lowered may have more bound than it offers.
        let taken = taken.get(resource).copied().unwrap_or_default();
        (resource.clone(), narrow(i128::from(amount.0) - taken).clip())
    })
}

fn amounts(
    names: &mut Names,
    all: impl Iterator<Item = (String, Amount)>,
) -> Vec<(ResourceId, Amount)> {
    let mut amounts: Vec<_> =
        all.map(|(name, amount)| (names.resources.intern(&name), amount)).collect();
    amounts.sort_unstable_by_key(|(resource, _)| *resource);
    amounts
}

fn narrow(sum: i128) -> Amount {
    Amount(i64::try_from(sum).unwrap_or(if sum < 0 { i64::MIN } else { i64::MAX }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A node, how much it has, and whether it takes pods; or a pod, where it is, how much it takes, and its owner.
    #[derive(Clone, Debug)]
    enum NodeStep {
        Node(u8, Option<(i64, bool)>),
        Pod(u8, Option<(u8, i64, Option<u8>)>),
    }

    fn step() -> impl Strategy<Value = NodeStep> {
        let amount = prop_oneof![0..100_i64, Just(i64::MAX), Just(i64::MAX - 1)];
        let node = (0..3_u8, proptest::option::of((0..200_i64, any::<bool>())));
        let pod = (0..3_u8, amount, proptest::option::of(0..2_u8));
        prop_oneof![
            node.prop_map(|(name, info)| NodeStep::Node(name, info)),
            (0..6_u8, proptest::option::of(pod)).prop_map(|(name, pod)| NodeStep::Pod(name, pod)),
        ]
    }

    fn key(name: u8) -> Key {
        Key { namespace: Some("ns".into()), name: name.to_string().into() }
    }

    fn cpu(amount: i64) -> BTreeMap<String, Amount> {
        [("cpu".to_owned(), Amount(amount))].into()
    }

    fn info((amount, usable): (i64, bool)) -> NodeInfo {
        NodeInfo { allocatable: cpu(amount), usable, ..NodeInfo::default() }
    }

    fn pod((node, amount, workload): (u8, i64, Option<u8>)) -> BoundPod {
        let pod_set = workload.map(|_| "main".into());
        let (node, workload) = (node.to_string().into(), workload.map(key));
        BoundPod { node, requests: cpu(amount), workload, pod_set, of_daemon_set: false }
    }

    #[test]
    fn a_bound_pod_changes_its_node_only_and_no_quota() {
        let mut sums = Nodes::default();
        for number in 0..1000 {
            sums.set_node(&number.to_string(), Some(info((100, true))));
        }
        assert_eq!((sums.take_changed().len(), sums.take_totals_changed()), (1000, true));
        sums.set_pod(key(1), Some(pod((7, 3, Some(1)))));
        assert_eq!(sums.take_changed(), ["7".into()].into());
        assert!(!sums.take_totals_changed(), "the pod is one of a clone");
        sums.set_pod(key(1), Some(pod((8, 3, None))));
        assert_eq!(sums.take_changed(), ["7".into(), "8".into()].into());
        assert!(sums.take_totals_changed());
        sums.set_node("9", Some(info((100, true))));
        assert!(sums.take_changed().is_empty(), "a heartbeat");
    }

    proptest! {
        #[test]
        fn incremental_sums_equal_those_of_a_fresh_count(
            steps in proptest::collection::vec(step(), 1..40),
        ) {
            let mut sums = Nodes::default();
            let (mut nodes, mut pods) = (BTreeMap::new(), BTreeMap::new());
            for step in steps {
                match step {
                    NodeStep::Node(name, one) => {
                        sums.set_node(&name.to_string(), one.map(info));
                        nodes.insert(name, one);
                    }
                    NodeStep::Pod(name, one) => {
                        sums.set_pod(key(name), one.map(pod));
                        pods.insert(name, one);
                    }
                }
            }
            let on = |node: u8| pods.values().flatten().filter(move |pod| pod.0 == node);
            let left = |has: i64, taken: i128| i64::try_from((i128::from(has) - taken).max(0)).expect("fits");
            let usable = nodes.iter().filter_map(|(name, one)| Some((*name, one.filter(|one| one.1)?.0)));
            let free: Vec<i64> = usable.clone()
                .map(|(name, has)| left(has, on(name).map(|pod| i128::from(pod.1)).sum()))
                .collect();
            let mut names = Names::default();
            let mut local: Vec<LocalNode> = Vec::new();
            for name in nodes.keys() {
                local.extend(sums.local(&name.to_string(), &mut names));
            }
            let found: Vec<i64> = local.iter().map(|node| node.free[0].1.0).collect();
            prop_assert_eq!(found, free);
            let offered = |(name, has): (u8, i64)| {
                let foreign = on(name).filter(|pod| pod.2.is_none());
                left(has, foreign.map(|pod| i128::from(pod.1)).sum())
            };
            let sizes: Vec<i64> = usable.map(offered).collect();
            let found: Vec<i64> = local.iter().map(|node| node.size[0].1.0).collect();
            prop_assert_eq!(&found, &sizes);
            let total: i64 = sizes.iter().sum();
            let found = sums.totals().next().map_or(0, |one| one.1.0);
            prop_assert_eq!(found, total);
            sums.take_totals_changed();
            prop_assert!(!sums.take_totals_changed(), "unchanged");
            for clone in 0..2 {
                let of = pods.values().flatten().filter(|pod| pod.2 == Some(clone)).count();
                prop_assert_eq!(sums.bound(&key(clone), "main"), of as i64);
                let taken = |name: u8| -> i128 {
                    on(name).filter(|pod| pod.2 == Some(clone)).map(|pod| i128::from(pod.1)).sum()
                };
                let taken = (0..3_u8).map(|name| (name, taken(name))).filter(|(_, sum)| *sum != 0);
                let taken: Vec<_> = taken.map(|(name, sum)| (name.to_string(), narrow(sum))).collect();
                let found = sums.taken_by(&key(clone), &mut names).into_iter();
                let found: Vec<_> = found.map(|one| (String::from(one.node), one.amounts[0].1)).collect();
                prop_assert_eq!(found, taken);
            }
        }
    }
}
