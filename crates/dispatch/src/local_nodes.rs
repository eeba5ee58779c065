//! The nodes of an agent's own cluster, by name, with the pods that are counted on each before they are bound. Source:
//! docs/reference/dispatch.md §4.
//!
//! A Workload is assigned nodes when it is placed ([`assignment`]), and its pods may run nowhere else. Until they are bound, they
//! are counted on these nodes. How many pods of a set are bound to each of several nodes is the choice of the scheduler; so all of
//! them are counted on each. Whatever it chooses, the pods that are counted fit, in any order.
//!
//! Pods without assigned nodes are counted where they fit most tightly. That is the likely choice, computed again when a node of
//! it changes.
//!
//! New nodes that an autoscaler can still add take what fits on no present node ([`new_nodes`]).
//!
//! Costs: a change of a node costs what is counted on it, an assignment O(nodes).

mod assignment;
mod new_nodes;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::ids::{ResourceId, WorkloadId};
use engine::{Amount, node_selection::NodeTaint, topology::HOSTNAME_LABEL};

use crate::node_class_reduction::join_equal_classes;
use crate::refusal::CapacityShortage;
use crate::worker_cluster::PlacementSerial;
use crate::{AssignedWorkload, NodeClassCapacity};

/// A node of the agent's own cluster that takes pods.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LocalNode {
    /// All labels, sorted by key.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// Taints.
    pub taints: Vec<NodeTaint>,
    /// What bound pods leave, sorted by resource.
    pub free: Vec<(ResourceId, Amount)>,
    /// What bound pods of others leave, sorted by resource.
    pub size: Vec<(ResourceId, Amount)>,
}

impl LocalNode {
    fn hostname(&self) -> Option<&str> {
        let label = self.labels.iter().find(|(key, _)| **key == *HOSTNAME_LABEL);
        label.map(|(_, value)| &**value)
    }

    fn release(&mut self, amounts: &[(ResourceId, Amount)]) {
        for (resource, amount) in amounts {
            if let Some((_, free)) = self.free.iter_mut().find(|(one, _)| one == resource) {
                *free += *amount;
            }
        }
    }
}

/// What pods take on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeUsage {
    /// The name of the node.
    pub node: Box<str>,
    /// Amounts by resource.
    pub amounts: Vec<(ResourceId, Amount)>,
}

/// Amounts of pods that are counted on a node, by resource. They are 128 bits wide, so that what was added is subtracted exactly.
type CountedAmounts = BTreeMap<ResourceId, i128>;

/// Pods of one pod set that are counted on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PodsOnNode {
    node: Box<str>,
    pod_set: usize,
    pods: i64,
}

/// A placed Workload.
#[derive(Debug, Clone)]
struct CountedWorkload {
    work: Arc<AssignedWorkload>,
    pods: Vec<PodsOnNode>,
    /// Pods without assigned nodes that fit on no present node, by pod set.
    short: Vec<(usize, i64)>,
}

/// The nodes of the agent's own cluster, with the pods that are counted on each.
#[derive(Debug, Clone, Default)]
pub(crate) struct LocalNodes {
    nodes: BTreeMap<Box<str>, LocalNode>,
    /// What is counted, by node. Nodes without any have no entry; a node that is gone may have one.
    counted: BTreeMap<Box<str>, CountedAmounts>,
    placed: BTreeMap<PlacementSerial, CountedWorkload>,
    /// What bound pods of Workloads take, of those that may be preempted. Free amounts of nodes are without it.
    bound: BTreeMap<WorkloadId, Vec<NodeUsage>>,
    /// Placed Workloads with pods that have no assigned nodes.
    unassigned: BTreeSet<PlacementSerial>,
    /// Names of nodes by their hostname label.
    hosts: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
    /// Number of nodes that have a label key.
    label_keys: BTreeMap<Box<str>, usize>,
    /// The same keys and those of new nodes, sorted.
    known_keys: Vec<Box<str>>,
    /// Nodes that can still be added, those that are on their way included.
    new_nodes: Vec<NodeClassCapacity>,
}

impl LocalNodes {
    /// Records a node; `None` if it is gone or takes no pods.
    pub(crate) fn set_node(&mut self, name: &str, node: Option<LocalNode>) {
        let before = self.nodes.remove(name);
        let same_labels = match (&before, &node) {
            (Some(before), Some(node)) => before.labels == node.labels,
            _ => false,
        };
        let hosts = [&before, &node]
            .map(|one| one.as_ref().and_then(LocalNode::hostname).map(Box::<str>::from));
        if !same_labels {
            self.index_labels(name, before.as_ref(), -1);
            self.index_labels(name, node.as_ref(), 1);
            self.update_known_keys();
        }
        if let Some(node) = node {
            self.nodes.insert(name.into(), node);
        }
        let affected: Vec<PlacementSerial> = match same_labels {
            true => self.likely_on(name).collect(),
            // A node with the name of a host came or went.
            false => self.likely_on(name).chain(self.assigned_to(&hosts)).collect(),
        };
        self.recount(affected);
    }

    fn recount(&mut self, serials: Vec<PlacementSerial>) {
        for serial in serials {
            if let Some(counted) = self.uncount(serial) {
                self.count(serial, counted.work);
            }
        }
    }

    fn update_known_keys(&mut self) {
        let new = self.new_nodes.iter().flat_map(|class| class.labels.iter().map(|(key, _)| key));
        let all: BTreeSet<&Box<str>> = self.label_keys.keys().chain(new).collect();
        self.known_keys = all.into_iter().cloned().collect();
    }

    /// Counts the pods of a Workload: those of a set with assigned nodes there.
    pub(crate) fn count(&mut self, serial: PlacementSerial, work: Arc<AssignedWorkload>) {
        let (mut pods, mut short) = (Vec::new(), Vec::new());
        let sets: Vec<(usize, i64, bool)> = work
            .pod_sets()
            .enumerate()
            .map(|(at, (_, count, given))| {
                (at, count, given.is_none_or(|one| one.nodes.is_empty()))
            })
            .collect();
        for &(at, count, unassigned) in &sets {
            let on_nodes = if unassigned {
                let (likely, left) = self.likely_nodes(&work, at);
                short.extend((left > 0).then_some((at, left)));
                likely
            } else {
                let hosts = work.assigned.get(at).map(|given| given.nodes.as_slice());
                let names =
                    hosts.unwrap_or_default().iter().filter_map(|one| self.hosts.get(&one.0));
                let names = names.flatten().cloned();
                names.map(|node| PodsOnNode { node, pod_set: at, pods: count }).collect()
            };
            on_nodes.iter().for_each(|one| self.add(&work, one, 1));
            pods.extend(on_nodes);
        }
        if sets.iter().any(|&(_, count, unassigned)| unassigned && count > 0) {
            self.unassigned.insert(serial);
        }
        self.placed.insert(serial, CountedWorkload { work, pods, short });
    }

    /// Removes the pods of a Workload. Returns what was counted.
    fn uncount(&mut self, serial: PlacementSerial) -> Option<CountedWorkload> {
        self.unassigned.remove(&serial);
        let counted = self.placed.remove(&serial)?;
        counted.pods.iter().for_each(|one| self.add(&counted.work, one, -1));
        Some(counted)
    }

    /// Counts the pods of a Workload no longer.
    pub(crate) fn remove(&mut self, serial: PlacementSerial) {
        self.uncount(serial);
    }

    /// Records what the bound pods of a Workload take. Returns whether that differs.
    pub(crate) fn set_bound(&mut self, workload: WorkloadId, pods: Vec<NodeUsage>) -> bool {
        if self.bound.get(&workload).map_or(&[][..], Vec::as_slice) == pods {
            return false;
        }
        if pods.is_empty() {
            self.bound.remove(&workload)
        } else {
            self.bound.insert(workload, pods)
        };
        true
    }

    /// Workloads with bound pods.
    pub(crate) fn with_bound_pods(&self) -> impl Iterator<Item = WorkloadId> {
        self.bound.keys().copied()
    }

    /// Whether a Workload would fit without the counted pods of these placements and the bound pods of these Workloads.
    ///
    /// # Errors
    /// If its pods would not fit.
    pub(crate) fn check_fit_without(
        &self,
        work: &AssignedWorkload,
        counted: &BTreeSet<PlacementSerial>,
        bound: impl Fn(WorkloadId) -> bool,
    ) -> Result<(), CapacityShortage> {
        let mut after = self.clone();
        counted.iter().for_each(|serial| after.remove(*serial));
        let leaving = self.bound.iter().filter(|(workload, _)| bound(**workload));
        for usage in leaving.flat_map(|(_, pods)| pods) {
            if let Some(node) = after.nodes.get_mut(&usage.node) {
                node.release(&usage.amounts);
            }
        }
        after.assign(work).map(drop)
    }

    /// The nodes with what bound and counted pods leave, in classes by labels with these keys.
    pub(crate) fn classes(&self, keys: &[Box<str>]) -> Vec<NodeClassCapacity> {
        let class = |(name, node): (&str, &LocalNode)| {
            let labels = node.labels.iter().filter(|(key, _)| keys.contains(key));
            let free = node
                .free
                .iter()
                .map(|&(resource, free)| (resource, less(free, self.counted(name, resource))));
            NodeClassCapacity {
                count: 1,
                labels: labels.cloned().collect(),
                taints: node.taints.clone(),
                free: free.collect(),
                size: node.size.clone(),
            }
        };
        join_equal_classes(self.nodes.iter().map(|(name, node)| class((name, node))))
    }

    /// Every label key of any node, present or new.
    pub(crate) fn known_keys(&self) -> &[Box<str>] {
        &self.known_keys
    }

    fn counted(&self, node: &str, resource: ResourceId) -> i128 {
        let counted = self.counted.get(node).and_then(|all| all.get(&resource));
        counted.copied().unwrap_or_default()
    }

    fn add(&mut self, work: &AssignedWorkload, on: &PodsOnNode, sign: i128) {
        let Some(pods) = work.request.pod_sets.get(on.pod_set) else {
            return;
        };
        let counted = self.counted.entry(on.node.clone()).or_default();
        for (resource, amount) in &pods.requests {
            let sum = counted.entry(*resource).or_default();
            *sum += sign * i128::from(amount.clip().0) * i128::from(on.pods);
            if *sum == 0 {
                counted.remove(resource);
            }
        }
        if counted.is_empty() {
            self.counted.remove(&on.node);
        }
    }

    /// Workloads with likely nodes that a change of this node may change.
    fn likely_on(&self, name: &str) -> impl Iterator<Item = PlacementSerial> {
        let concerns = move |serial: &&PlacementSerial| {
            self.placed.get(serial).is_some_and(|counted| {
                !counted.short.is_empty() || counted.pods.iter().any(|one| *one.node == *name)
            })
        };
        self.unassigned.iter().filter(concerns).copied()
    }

    /// Workloads that one of these hosts is assigned to.
    fn assigned_to(&self, hosts: &[Option<Box<str>>; 2]) -> impl Iterator<Item = PlacementSerial> {
        let named = move |host: &str| hosts.iter().flatten().any(|one| **one == *host);
        let assigned = self.placed.iter().filter(move |(serial, counted)| {
            let mut nodes = counted.work.assigned.iter().flat_map(|given| &given.nodes);
            !self.unassigned.contains(serial) && nodes.any(|(host, _)| named(host))
        });
        assigned.map(|(serial, _)| *serial)
    }

    fn index_labels(&mut self, name: &str, node: Option<&LocalNode>, sign: isize) {
        let Some(node) = node else {
            return;
        };
        for (key, _) in &node.labels {
            let nodes = self.label_keys.entry(key.clone()).or_default();
            *nodes = nodes.saturating_add_signed(sign);
            if *nodes == 0 {
                self.label_keys.remove(key);
            }
        }
        if let Some(host) = node.hostname() {
            let names = self.hosts.entry(host.into()).or_default();
            if sign > 0 {
                names.insert(name.into());
            } else {
                names.remove(name);
            }
            if names.is_empty() {
                self.hosts.remove(host);
            }
        }
    }
}

/// What is left of an amount; never negative.
fn less(free: Amount, counted: i128) -> Amount {
    let left = (i128::from(free.0) - counted).max(0);
    Amount(i64::try_from(left).unwrap_or(i64::MAX))
}
