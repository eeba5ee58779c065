//! Nodes and the pods on them, added up as they come and go: a change costs as much as it changes.
//!
//! Sums are wide, since what was added must come off again exactly, whatever anybody's pod asks for.

use std::collections::BTreeMap;

use engine::Amount;
use runtime::watch::Key;

use super::node::{BoundPod, FreeNode, NodeFacts};

/// Sums by resource.
type Sums = BTreeMap<String, i128>;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Machines {
    nodes: BTreeMap<Box<str>, Machine>,
    /// Pods that are bound and not over.
    pods: BTreeMap<Key, BoundPod>,
    /// How many of them belong to a clone, by pod set.
    bound: BTreeMap<Key, BTreeMap<Box<str>, i64>>,
    totals: Sums,
}

/// A node, and what the pods on it take. Either may be heard of first.
#[derive(Debug, Default)]
struct Machine {
    facts: Option<NodeFacts>,
    taken: Sums,
    /// The part of it that pods of others take.
    foreign: Sums,
}

impl Machines {
    /// A node as it is now; none if it is gone. Whether that is news.
    pub(super) fn set_node(&mut self, name: &str, facts: Option<NodeFacts>) -> bool {
        if self.nodes.get(name).is_some_and(|machine| machine.facts == facts) {
            return false;
        }
        self.change(name, |machine| machine.facts = facts);
        true
    }

    /// A pod as it is now; none if it is gone, over, or not bound. If that is news, the clones that it is news for.
    pub(super) fn set_pod(&mut self, key: Key, pod: Option<BoundPod>) -> Option<Vec<Key>> {
        let before = match pod.clone() {
            Some(pod) => self.pods.insert(key, pod),
            None => self.pods.remove(&key),
        };
        if before == pod {
            return None;
        }
        for (pod, sign) in before.iter().map(|pod| (pod, -1)).chain(pod.iter().map(|pod| (pod, 1)))
        {
            self.count(pod, sign);
            self.change(&pod.node, |machine| machine.take(pod, sign));
        }
        let clones = before.into_iter().chain(pod).filter_map(|pod| pod.workload);
        Some(clones.collect())
    }

    /// Pods of a pod set of a clone that are bound.
    pub(super) fn bound(&self, clone: &Key, pod_set: &str) -> i64 {
        self.bound.get(clone).and_then(|all| all.get(pod_set)).copied().unwrap_or_default()
    }

    /// What usable nodes have in all, less what pods of others take of it.
    pub(super) fn totals(&self) -> Vec<(&str, Amount)> {
        self.totals.iter().map(|(name, sum)| (name.as_str(), narrow(*sum))).collect()
    }

    /// Usable nodes, and what is free on them.
    pub(super) fn free(&self) -> Vec<FreeNode<'_>> {
        let usable = self.nodes.values().filter_map(|one| Some((one, one.usable()?)));
        let free = usable.map(|(machine, facts)| FreeNode {
            facts,
            free: less(facts, &machine.taken).collect(),
            size: less(facts, &machine.foreign).collect(),
        });
        free.collect()
    }

    /// Every label key that a node has.
    pub(super) fn label_keys(&self) -> Vec<String> {
        let facts = self.nodes.values().filter_map(|machine| machine.facts.as_ref());
        let mut keys: Vec<&String> = facts.flat_map(|facts| facts.labels.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.into_iter().cloned().collect()
    }

    fn count(&mut self, pod: &BoundPod, sign: i64) {
        let (Some(clone), Some(pod_set)) = (&pod.workload, &pod.pod_set) else {
            return;
        };
        let sets = self.bound.entry(clone.clone()).or_default();
        let count = sets.entry(pod_set.clone()).or_default();
        *count += sign;
        if *count == 0 {
            sets.remove(pod_set);
        }
        if sets.is_empty() {
            self.bound.remove(clone);
        }
    }

    /// Changes a node, and the totals with it.
    fn change(&mut self, name: &str, change: impl FnOnce(&mut Machine)) {
        let machine = self.nodes.entry(name.into()).or_default();
        for (resource, amount) in machine.offered() {
            *self.totals.entry(resource).or_default() -= i128::from(amount.0);
        }
        change(machine);
        for (resource, amount) in machine.offered() {
            *self.totals.entry(resource).or_default() += i128::from(amount.0);
        }
        if machine.facts.is_none() && machine.taken.values().all(|taken| *taken == 0) {
            self.nodes.remove(name);
        }
    }
}

impl Machine {
    fn usable(&self) -> Option<&NodeFacts> {
        self.facts.as_ref().filter(|facts| facts.usable)
    }

    /// What clones may have of it.
    fn offered(&self) -> Vec<(String, Amount)> {
        self.usable().map(|facts| less(facts, &self.foreign).collect()).unwrap_or_default()
    }

    fn take(&mut self, pod: &BoundPod, sign: i64) {
        for (resource, amount) in &pod.requests {
            let amount = i128::from(amount.0) * i128::from(sign);
            *self.taken.entry(resource.clone()).or_default() += amount;
            if pod.workload.is_none() {
                *self.foreign.entry(resource.clone()).or_default() += amount;
            }
        }
    }
}

/// What a node has, less what is taken of it; never less than nothing.
fn less<'a>(facts: &'a NodeFacts, taken: &'a Sums) -> impl Iterator<Item = (String, Amount)> + 'a {
    facts.allocatable.iter().map(|(resource, amount)| {
        let taken = taken.get(resource).copied().unwrap_or_default();
        (resource.clone(), narrow(i128::from(amount.0) - taken).clip())
    })
}

fn narrow(sum: i128) -> Amount {
    Amount(i64::try_from(sum).unwrap_or(if sum < 0 { i64::MIN } else { i64::MAX }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A node, how much it has, and whether it takes pods; or a pod, where it is, how much it takes, and whose it is.
    #[derive(Clone, Debug)]
    enum Step {
        Node(u8, Option<(i64, bool)>),
        Pod(u8, Option<(u8, i64, Option<u8>)>),
    }

    fn step() -> impl Strategy<Value = Step> {
        let amount = prop_oneof![0..100_i64, Just(i64::MAX), Just(i64::MAX - 1)];
        let node = (0..3_u8, proptest::option::of((0..200_i64, any::<bool>())));
        let pod = (0..3_u8, amount, proptest::option::of(0..2_u8));
        prop_oneof![
            node.prop_map(|(name, facts)| Step::Node(name, facts)),
            (0..6_u8, proptest::option::of(pod)).prop_map(|(name, pod)| Step::Pod(name, pod)),
        ]
    }

    fn key(name: u8) -> Key {
        Key { namespace: Some("ns".into()), name: name.to_string().into() }
    }

    fn cpu(amount: i64) -> BTreeMap<String, Amount> {
        [("cpu".to_owned(), Amount(amount))].into()
    }

    fn facts((amount, usable): (i64, bool)) -> NodeFacts {
        NodeFacts { allocatable: cpu(amount), usable, ..NodeFacts::default() }
    }

    fn pod((node, amount, workload): (u8, i64, Option<u8>)) -> BoundPod {
        let pod_set = workload.map(|_| "main".into());
        let (node, workload) = (node.to_string().into(), workload.map(key));
        BoundPod { node, requests: cpu(amount), workload, pod_set }
    }

    proptest! {
        #[test]
        fn what_is_added_up_is_what_counting_anew_finds(
            steps in proptest::collection::vec(step(), 1..40),
        ) {
            let mut machines = Machines::default();
            let (mut nodes, mut pods) = (BTreeMap::new(), BTreeMap::new());
            for step in steps {
                match step {
                    Step::Node(name, one) => {
                        machines.set_node(&name.to_string(), one.map(facts));
                        nodes.insert(name, one);
                    }
                    Step::Pod(name, one) => {
                        machines.set_pod(key(name), one.map(pod));
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
            let found: Vec<i64> = machines.free().iter().map(|node| node.free["cpu"].0).collect();
            prop_assert_eq!(found, free);
            let offered = |(name, has): (u8, i64)| {
                let foreign = on(name).filter(|pod| pod.2.is_none());
                left(has, foreign.map(|pod| i128::from(pod.1)).sum())
            };
            let sizes: Vec<i64> = usable.map(offered).collect();
            let found: Vec<i64> = machines.free().iter().map(|node| node.size["cpu"].0).collect();
            prop_assert_eq!(&found, &sizes);
            let total: i64 = sizes.iter().sum();
            let found = machines.totals().first().map_or(0, |(_, amount)| amount.0);
            prop_assert_eq!(found, total);
            for clone in 0..2 {
                let of = pods.values().flatten().filter(|pod| pod.2 == Some(clone)).count();
                prop_assert_eq!(machines.bound(&key(clone), "main"), of as i64);
            }
        }
    }
}
