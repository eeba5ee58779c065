//! Packing of pods onto nodes. Source: docs/reference/dispatch.md §2, "packs gangs over classes itself".
//!
//! A pod needs one node: four nodes with two free units each do not fit a pod that requests four. Larger pods are
//! packed first; each pod goes to the node with the least free capacity afterwards (best fit). Equal nodes are one
//! group with a count. Placing pods splits a group, so the cost depends on the number of different nodes and not on
//! the number of pods.
//!
//! A report may list new nodes as well, which an autoscaler can still add. Pods are packed onto them only after the present nodes
//! ([`new_nodes`]), and they count as free capacity nowhere else.
//!
//! Invariants: a node never receives more than it has free; equal calls give equal results. A negative result may be
//! wrong, since exact packing of several sizes is too expensive; a positive result is always right.

mod new_nodes;

use std::cmp::Reverse;
use std::sync::Arc;

use engine::{Amount, ids::ResourceId};
use smallvec::SmallVec;

pub(crate) use self::new_nodes::NewNodes;

use crate::refusal::{CapacityShortage, ShortageCause};
use crate::{AssignedPodSet, AssignedWorkload, CapacityReport, NodeClassCapacity, RequestedPodSet};

/// Sizes and free capacity are compared in millionths of the largest node, shares in millionths of the cluster.
pub(crate) const MILLIONTHS: i128 = 1_000_000;

/// Present nodes, or those that an autoscaler can add.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NodeTier {
    New,
    Present,
}

/// Nodes of one cluster with their free capacity. A clone costs O(different nodes).
#[derive(Debug, Clone)]
pub(crate) struct PackedNodes {
    table: Arc<NodeTable>,
    groups: Vec<NodeGroup>,
}

/// Constants of one packing.
#[derive(Debug)]
struct NodeTable {
    report: Arc<CapacityReport>,
    /// Resources that any class lists, sorted.
    columns: Vec<ResourceId>,
    /// Allocatable amounts of a node per class, without dispatched pods. Classes of new nodes follow those of present ones.
    allocatable: Vec<NodeAmounts>,
    /// Largest free amount on one present node per resource, before any placement.
    largest: Vec<Amount>,
    /// Allocatable amount of all present nodes per resource, without dispatched pods.
    totals: Vec<i64>,
}

type NodeAmounts = SmallVec<[Amount; 4]>;

/// Nodes of one class with equal free capacity.
#[derive(Debug, Clone)]
struct NodeGroup {
    class: usize,
    count: i64,
    free: NodeAmounts,
}

/// A pod set: request, pod count, additions of its flavors.
type AssignedPods<'a> = (&'a RequestedPodSet, i64, Option<&'a AssignedPodSet>);

/// Requests of one pod by resource column; positive amounts only.
type PodNeed = SmallVec<[(usize, Amount); 4]>;

impl PackedNodes {
    /// Creates the nodes that a report lists.
    pub(crate) fn new(report: Arc<CapacityReport>) -> Self {
        let columns = resource_columns(&report);
        let row = |class: &NodeClassCapacity| -> NodeAmounts {
            columns.iter().map(|&resource| listed_amount(&class.free, resource)).collect()
        };
        let classes = all_classes(&report).enumerate().filter(|(_, class)| class.count > 0);
        let groups: Vec<NodeGroup> = classes
            .map(|(index, class)| NodeGroup { class: index, count: class.count, free: row(class) })
            .collect();
        // A report may omit `size`. A node is at least as large as its free capacity.
        let size = |class: &NodeClassCapacity| -> NodeAmounts {
            let of = |resource| {
                listed_amount(&class.size, resource).max(listed_amount(&class.free, resource))
            };
            columns.iter().map(|&resource| of(resource)).collect()
        };
        let sizes: Vec<NodeAmounts> = all_classes(&report).map(size).collect();
        let n_present = report.classes.len();
        let present = || groups.iter().filter(|group| group.class < n_present);
        let largest = (0..columns.len()).map(|column| max_free(present(), column)).collect();
        let present = || sizes.iter().zip(&report.classes);
        let totals = (0..columns.len()).map(|column| total_size(present(), column)).collect();
        Self {
            table: Arc::new(NodeTable { report, columns, allocatable: sizes, largest, totals }),
            groups,
        }
    }

    /// Checks that every pod of `work` fits onto a present node.
    pub(crate) fn check_fit(&self, work: &AssignedWorkload) -> Result<(), CapacityShortage> {
        self.check_fit_on(work, &[NodeTier::Present]).map(|_| ())
    }

    /// The nodes with `work` on these tiers, the first one first.
    fn check_fit_on(
        &self,
        work: &AssignedWorkload,
        tiers: &[NodeTier],
    ) -> Result<Self, CapacityShortage> {
        let mut copy = self.clone();
        for (pods, count, assigned) in self.largest_pods_first(work) {
            let place = |left, &tier: &NodeTier| copy.place_pods((pods, left, assigned), tier);
            let remaining = tiers.iter().fold(count, place);
            if remaining > 0 {
                let wanted = (pods, count, assigned);
                let cause = self.shortage_cause(wanted, count - remaining, tiers);
                return Err(CapacityShortage { pod_set: pods.name.clone(), cause });
            }
        }
        Ok(copy)
    }

    /// Takes the capacity of `work`, as far as it fits: what does not fit on present nodes is packed onto new ones.
    pub(crate) fn place(&mut self, work: &AssignedWorkload) {
        for (pods, count, assigned) in self.largest_pods_first(work) {
            let remaining = self.place_pods((pods, count, assigned), NodeTier::Present);
            self.place_pods((pods, remaining, assigned), NodeTier::New);
        }
    }

    /// Releases the capacity of `work`. The nodes that ran it are unknown: it is released on the fullest nodes, which
    /// leaves the largest free nodes intact; new nodes come first, which are not there yet. No node gets more free capacity
    /// than its allocatable amount.
    pub(crate) fn release(&mut self, work: &AssignedWorkload) {
        for (pods, count, assigned) in self.largest_pods_first(work) {
            self.release_pods(pods, count, assigned);
        }
    }

    /// The present nodes as a report lists them.
    pub(crate) fn classes(&self) -> Vec<NodeClassCapacity> {
        let class = |group: &NodeGroup| {
            let before = self.table.report.classes.get(group.class)?;
            let free = self.table.columns.iter().copied().zip(group.free.iter().copied());
            let listed = |&(resource, _): &(ResourceId, Amount)| {
                before.free.iter().any(|(known, _)| *known == resource)
            };
            let free = free.filter(listed).collect();
            Some(NodeClassCapacity { count: group.count, free, ..before.clone() })
        };
        self.groups.iter().filter_map(class).collect()
    }

    /// Dominant share of `work` in the allocatable capacity of the cluster, in millionths.
    pub(crate) fn share_of_cluster(&self, work: &AssignedWorkload) -> i128 {
        let asked = work.total_requests().into_iter();
        asked
            .map(|(resource, amount)| millionths(amount, Amount(self.total_allocatable(resource))))
            .max()
            .unwrap_or(0)
    }

    /// Allocatable amount of a resource on all present nodes, without dispatched pods.
    pub(crate) fn total_allocatable(&self, resource: ResourceId) -> i64 {
        let total = self.column(resource).and_then(|column| self.table.totals.get(column));
        total.copied().unwrap_or_default()
    }

    /// Free amount of a resource on all present nodes.
    pub(crate) fn free(&self, resource: ResourceId) -> i64 {
        let column = self.column(resource);
        column.map_or(0, |column| total(self.on_tier(NodeTier::Present), column))
    }

    /// The pod sets, those with the largest pods first.
    fn largest_pods_first<'a>(
        &self,
        work: &'a AssignedWorkload,
    ) -> SmallVec<[AssignedPods<'a>; 2]> {
        let mut sets: SmallVec<[_; 2]> = work.pod_sets().collect();
        sets.sort_by_key(|&(pods, _, _)| Reverse(self.dominant_share(pods)));
        sets
    }

    /// Dominant share of one pod in the largest node.
    fn dominant_share(&self, pods: &RequestedPodSet) -> i128 {
        let part = |&(resource, amount): &(ResourceId, Amount)| {
            let column = self.column(resource);
            let largest = column.and_then(|column| self.table.largest.get(column));
            millionths(amount, largest.copied().unwrap_or_default())
        };
        pods.requests.iter().map(part).max().unwrap_or_default()
    }

    fn tier(&self, group: &NodeGroup) -> NodeTier {
        if group.class < self.table.report.classes.len() {
            NodeTier::Present
        } else {
            NodeTier::New
        }
    }

    fn on_tier(&self, tier: NodeTier) -> impl Iterator<Item = &NodeGroup> {
        self.groups.iter().filter(move |group| self.tier(group) == tier)
    }

    fn column(&self, resource: ResourceId) -> Option<usize> {
        self.table.columns.binary_search(&resource).ok()
    }

    /// Places up to `count` pods on one tier. Returns the number of pods that did not fit.
    fn place_pods(&mut self, (pods, count, assigned): AssignedPods<'_>, tier: NodeTier) -> i64 {
        let mut remaining = count.max(0);
        let Some(need) = self.pod_need(pods) else {
            return remaining;
        };
        let suitable = self.suitable(pods, assigned);
        while remaining > 0 {
            let Some(index) = self.best_fit(&need, &suitable, tier, remaining) else {
                break;
            };
            remaining -= self.fill_nodes(index, &need, remaining);
        }
        remaining
    }

    /// Requests of one pod; `None` if it requests a resource that no node lists.
    fn pod_need(&self, pods: &RequestedPodSet) -> Option<PodNeed> {
        let requests = pods.requests.iter().filter(|(_, amount)| *amount > Amount::ZERO);
        requests.map(|&(resource, amount)| Some((self.column(resource)?, amount))).collect()
    }

    /// Whether the pods may run on the nodes of each class. Labels count only if the report distinguishes their keys:
    /// other labels are unknown here, and the worker decides. Taints always count.
    fn suitable(
        &self,
        pods: &RequestedPodSet,
        assigned: Option<&AssignedPodSet>,
    ) -> SmallVec<[bool; 16]> {
        let report = &self.table.report;
        let label_keys = &report.label_keys;
        let (labels, tolerations) = assigned
            .map_or((&[][..], &[][..]), |assigned| (&assigned.labels, &assigned.tolerations));
        let suits = |class: &NodeClassCapacity| {
            pods.selection.untolerated(&class.taints, tolerations).is_none()
                && pods.selection.may_match_node(&class.labels, label_keys)
                && labels.iter().all(|requests| {
                    !label_keys.contains(&requests.0) || class.labels.contains(requests)
                })
        };
        all_classes(report).map(suits).collect()
    }

    fn release_pods(
        &mut self,
        pods: &RequestedPodSet,
        count: i64,
        assigned: Option<&AssignedPodSet>,
    ) {
        let mut remaining = count.max(0);
        // Pods without requests took no capacity, so there is none to release.
        let Some(need) = self.pod_need(pods).filter(|need| !need.is_empty()) else {
            return;
        };
        let suitable = self.suitable(pods, assigned);
        while remaining > 0 {
            let Some((index, pods)) = self.fullest(&need, &suitable) else {
                return;
            };
            remaining -= self.move_pods(index, &need, remaining, -pods.min(remaining));
        }
    }

    /// The group with the least free capacity that can have run such pods, and the number of such pods per node.
    fn fullest(&self, need: &PodNeed, suitable: &[bool]) -> Option<(usize, i64)> {
        let groups = self.groups.iter().enumerate();
        let candidates = groups.filter(|(_, group)| suitable.get(group.class) == Some(&true));
        let found = candidates.filter_map(|(index, group)| {
            let size = self.table.allocatable.get(group.class)?;
            // The nodes of the pods are unknown. A node can have run at most what its used capacity
            // allows.
            let used: NodeAmounts =
                size.iter().zip(&group.free).map(|(&size, &free)| size - free).collect();
            let pods = pods_per_node(&used, need);
            (pods > 0).then(|| {
                (self.tier(group), self.remaining_after(&group.free, need, 0), index, pods)
            })
        });
        found.min().map(|(_, _, index, pods)| (index, pods))
    }

    /// The group of a tier with the least free capacity after the placement; the first of equal groups.
    fn best_fit(
        &self,
        need: &PodNeed,
        suitable: &[bool],
        tier: NodeTier,
        remaining: i64,
    ) -> Option<usize> {
        let groups = self.groups.iter().enumerate().filter(|(_, group)| self.tier(group) == tier);
        let candidates = groups.filter(|(_, group)| suitable.get(group.class) == Some(&true));
        let candidates = candidates.filter_map(|(index, group)| {
            let pods = pods_per_node(&group.free, need).min(remaining);
            (pods > 0).then(|| (self.remaining_after(&group.free, need, pods), index))
        });
        candidates.min().map(|(_, index)| index)
    }

    /// Free capacity of a node after `pods` more pods: the sum over all resources, in millionths of the largest node.
    fn remaining_after(&self, free: &NodeAmounts, need: &PodNeed, pods: i64) -> i128 {
        let columns = free.iter().zip(&self.table.largest).enumerate();
        let remaining = columns.map(|(column, (&free, &largest))| {
            let taken = need.iter().find(|(at, _)| *at == column);
            millionths(free - taken.map_or(Amount::ZERO, |(_, amount)| amount.times(pods)), largest)
        });
        remaining.sum()
    }

    /// Places pods on nodes of one group: on as many full nodes as needed, or on one node that takes all remaining
    /// pods. Returns the number of placed pods.
    fn fill_nodes(&mut self, index: usize, need: &PodNeed, remaining: i64) -> i64 {
        let pods = self.groups.get(index).map_or(1, |group| pods_per_node(&group.free, need));
        self.move_pods(index, need, remaining, pods.min(remaining).max(1))
    }

    /// Adds `added` pods per node to nodes of one group, or removes them if `added` is negative, until `left` pods
    /// are moved. Returns the number of moved pods.
    fn move_pods(&mut self, index: usize, need: &PodNeed, remaining: i64, added: i64) -> i64 {
        let Some(group) = self.groups.get_mut(index) else {
            return 0;
        };
        let pods = added.abs().max(1);
        // Only nodes that get `pods` each are moved; the callers repeat the search for the
        // remainder.
        let nodes = group.count.min(remaining / pods).max(1);
        let mut filled = NodeGroup { count: nodes, ..group.clone() };
        for &(column, amount) in need {
            if let Some(free) = filled.free.get_mut(column) {
                *free -= amount.times(added);
            }
        }
        group.count -= nodes;
        if group.count == 0 {
            self.groups.remove(index);
        }
        self.merge_nodes(filled);
        nodes * pods
    }

    /// Merges nodes into a group with equal free capacity, or adds a group.
    fn merge_nodes(&mut self, nodes: NodeGroup) {
        let alike = |group: &&mut NodeGroup| group.class == nodes.class && group.free == nodes.free;
        match self.groups.iter_mut().find(alike) {
            Some(group) => group.count += nodes.count,
            None => self.groups.push(nodes),
        }
    }

    /// Why not all pods of a pod set fit on nodes of these tiers.
    fn shortage_cause(
        &self,
        (pods, count, assigned): AssignedPods<'_>,
        fit: i64,
        tiers: &[NodeTier],
    ) -> ShortageCause {
        let suitable = self.suitable(pods, assigned);
        let groups = || {
            let groups = self.groups.iter().filter(|group| tiers.contains(&self.tier(group)));
            groups.filter(|group| suitable.get(group.class) == Some(&true))
        };
        if groups().next().is_none() {
            return ShortageCause::NoSuitableNode;
        }
        let too_large = pods.requests.iter().find_map(|&(resource, need)| {
            let most =
                self.column(resource).map_or(Amount::ZERO, |column| max_free(groups(), column));
            (need > most).then_some(ShortageCause::PodTooLarge { resource, need, most })
        });
        too_large.unwrap_or(ShortageCause::TooFewNodes { fit, count })
    }
}

fn resource_columns(report: &CapacityReport) -> Vec<ResourceId> {
    let listed = all_classes(report).flat_map(|class| class.free.iter().chain(&class.size));
    let mut columns: Vec<ResourceId> = listed.map(|(resource, _)| *resource).collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// The classes of present nodes, then those of new ones.
fn all_classes(report: &CapacityReport) -> impl Iterator<Item = &NodeClassCapacity> {
    report.classes.iter().chain(&report.elastic)
}

/// Amount of a resource in a list; zero if it is not listed.
fn listed_amount(all: &[(ResourceId, Amount)], resource: ResourceId) -> Amount {
    all.iter().find(|(one, _)| *one == resource).map_or(Amount::ZERO, |(_, amount)| *amount)
}

/// Largest free amount on one node.
fn max_free<'a>(groups: impl Iterator<Item = &'a NodeGroup>, column: usize) -> Amount {
    groups.filter_map(|group| group.free.get(column)).max().copied().unwrap_or_default().clip()
}

/// Free amount of all nodes. An overcommitted node counts as zero.
fn total<'a>(groups: impl Iterator<Item = &'a NodeGroup>, column: usize) -> i64 {
    let free = groups.filter_map(|group| Some((group.free.get(column)?, group.count)));
    free.fold(0, |sum: i64, (free, count)| sum.saturating_add(free.clip().times(count).0))
}

/// Allocatable amount of all nodes of these classes.
fn total_size<'a>(
    classes: impl Iterator<Item = (&'a NodeAmounts, &'a NodeClassCapacity)>,
    column: usize,
) -> i64 {
    let sizes = classes.filter_map(|(size, class)| Some((size.get(column)?, class.count)));
    sizes.fold(0, |sum: i64, (size, count)| sum.saturating_add(size.clip().times(count).clip().0))
}

/// Number of pods that fit onto one node.
fn pods_per_node(free: &NodeAmounts, need: &PodNeed) -> i64 {
    let of = |&(column, amount): &(usize, Amount)| {
        free.get(column).map_or(0, |free| free.clip().0 / amount.0.max(1))
    };
    need.iter().map(of).min().unwrap_or(i64::MAX)
}

fn millionths(amount: Amount, of: Amount) -> i128 {
    i128::from(amount.clip().0) * MILLIONTHS / i128::from(of.0.max(1))
}

#[cfg(test)]
mod tests;
