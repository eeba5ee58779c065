//! Packing pods onto nodes. Source: docs/reference/dispatch.md §2, "packs gangs over classes itself".
//!
//! Each pod stands on one node: four nodes with two free each do not take a pod of four. Largest pods go first, and each
//! goes where the fewest is left over. Nodes that look alike are one group with a count; placing pods splits a group,
//! so that the cost follows the number of different nodes and never the number of pods.
//!
//! Invariants: no node is given more than it has free; the same calls give the same answer. The answer may be a
//! false *no* (packing several sizes exactly is too costly), never a false *yes*.

use std::cmp::Reverse;
use std::sync::Arc;

use engine::{Amount, ids::ResourceId};
use smallvec::SmallVec;

use crate::refusal::{CapacityShortage, ShortageCause};
use crate::{AssignedPodSet, AssignedWorkload, CapacityReport, NodeClassCapacity, RequestedPodSet};

/// Sizes and leftovers are compared in this many parts of the largest node.
pub(crate) const PARTS: i128 = 1_000_000;

/// The nodes of one cluster and what is free on them. A copy costs as much as there are different nodes.
#[derive(Debug, Clone)]
pub(crate) struct PackedNodes {
    table: Arc<NodeTable>,
    groups: Vec<NodeGroup>,
}

/// What does not change while pods are placed.
#[derive(Debug)]
struct NodeTable {
    report: Arc<CapacityReport>,
    /// Every resource that some class lists, sorted.
    columns: Vec<ResourceId>,
    /// What a node of each class has when nothing dispatched runs there.
    allocatable: Vec<NodeAmounts>,
    /// The most of each that one node had free at the start.
    largest: Vec<Amount>,
    /// What all nodes together had free at the start.
    totals: Vec<i64>,
}

type NodeAmounts = SmallVec<[Amount; 4]>;

/// Nodes of one class with the same left.
#[derive(Debug, Clone)]
struct NodeGroup {
    class: usize,
    count: i64,
    free: NodeAmounts,
}

/// Pods, how many of them, and what was added.
type AssignedPods<'a> = (&'a RequestedPodSet, i64, Option<&'a AssignedPodSet>);

/// What one pod takes, by column. Only what is more than nothing.
type PodNeed = SmallVec<[(usize, Amount); 4]>;

impl PackedNodes {
    /// The nodes as a report lists them.
    pub(crate) fn new(report: Arc<CapacityReport>) -> Self {
        let columns = resource_columns(&report);
        let row = |class: &NodeClassCapacity| -> NodeAmounts {
            columns.iter().map(|&resource| listed_amount(&class.free, resource)).collect()
        };
        let classes = report.classes.iter().enumerate().filter(|(_, class)| class.count > 0);
        let groups: Vec<NodeGroup> = classes
            .map(|(index, class)| NodeGroup { class: index, count: class.count, free: row(class) })
            .collect();
        let size = |class: &NodeClassCapacity| -> NodeAmounts {
            let of = |resource| {
                listed_amount(&class.size, resource).max(listed_amount(&class.free, resource))
            };
            columns.iter().map(|&resource| of(resource)).collect()
        };
        let sizes = report.classes.iter().map(size).collect();
        let largest = (0..columns.len()).map(|column| max_free(groups.iter(), column)).collect();
        let totals = (0..columns.len()).map(|column| total(&groups, column)).collect();
        Self {
            table: Arc::new(NodeTable { report, columns, allocatable: sizes, largest, totals }),
            groups,
        }
    }

    /// Whether all pods of `work` find room.
    pub(crate) fn check_fit(&self, work: &AssignedWorkload) -> Result<(), CapacityShortage> {
        let mut copy = self.clone();
        for (pods, count, given) in self.largest_pods_first(work) {
            let left = copy.place_pods(pods, count, given);
            if left > 0 {
                let lack = self.shortage_cause(pods, given, count - left, count);
                return Err(CapacityShortage { pod_set: pods.name.clone(), cause: lack });
            }
        }
        Ok(())
    }

    /// Takes the room of `work`, as far as there is any.
    pub(crate) fn place(&mut self, work: &AssignedWorkload) {
        for (pods, count, given) in self.largest_pods_first(work) {
            self.place_pods(pods, count, given);
        }
    }

    /// Gives back the room of `work`, which ran on these nodes. On which of them is not known: it is taken to leave the
    /// fullest, so that as much as possible is free in one piece. No node gets more than its size.
    pub(crate) fn release(&mut self, work: &AssignedWorkload) {
        for (pods, count, given) in self.largest_pods_first(work) {
            self.release_pods(pods, count, given);
        }
    }

    /// The nodes as a report would list them now.
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

    /// The largest part that work takes of all nodes as they are when empty, in parts of [`PARTS`].
    pub(crate) fn share_of_cluster(&self, work: &AssignedWorkload) -> i128 {
        let asked = work.total_requests().into_iter();
        asked
            .map(|(resource, amount)| parts(amount, Amount(self.total_allocatable(resource))))
            .max()
            .unwrap_or(0)
    }

    fn total_allocatable(&self, resource: ResourceId) -> i64 {
        let Some(column) = self.column(resource) else {
            return 0;
        };
        let classes = self.table.allocatable.iter().zip(&self.table.report.classes);
        let sizes = classes.filter_map(|(size, class)| Some(size.get(column)?.times(class.count)));
        sizes.fold(0, |sum: i64, size| sum.saturating_add(size.clip().0))
    }

    /// What all nodes together have free of a resource: now, and when they were reported.
    pub(crate) fn free(&self, resource: ResourceId) -> (i64, i64) {
        self.column(resource).map_or((0, 0), |column| {
            let before = self.table.totals.get(column).copied().unwrap_or_default();
            (total(&self.groups, column), before)
        })
    }

    /// The pod sets, largest pods first.
    fn largest_pods_first<'a>(
        &self,
        work: &'a AssignedWorkload,
    ) -> SmallVec<[AssignedPods<'a>; 2]> {
        let mut sets: SmallVec<[_; 2]> = work.pod_sets().collect();
        sets.sort_by_key(|&(pods, _, _)| Reverse(self.dominant_share(pods)));
        sets
    }

    /// The largest part of the largest node that one pod takes.
    fn dominant_share(&self, pods: &RequestedPodSet) -> i128 {
        let part = |&(resource, amount): &(ResourceId, Amount)| {
            let column = self.column(resource);
            let largest = column.and_then(|column| self.table.largest.get(column));
            parts(amount, largest.copied().unwrap_or_default())
        };
        pods.requests.iter().map(part).max().unwrap_or_default()
    }

    fn column(&self, resource: ResourceId) -> Option<usize> {
        self.table.columns.binary_search(&resource).ok()
    }

    /// Places up to `count` pods and says how many are left.
    fn place_pods(
        &mut self,
        pods: &RequestedPodSet,
        count: i64,
        given: Option<&AssignedPodSet>,
    ) -> i64 {
        let mut left = count.max(0);
        let Some(need) = self.pod_need(pods) else {
            return left;
        };
        let suitable = self.suitable(pods, given);
        while left > 0 {
            let Some(index) = self.tightest(&need, &suitable, left) else {
                break;
            };
            left -= self.fill_nodes(index, &need, left);
        }
        left
    }

    /// What one pod takes; `None` if it takes something that no node lists.
    fn pod_need(&self, pods: &RequestedPodSet) -> Option<PodNeed> {
        let wanted = pods.requests.iter().filter(|(_, amount)| *amount > Amount::ZERO);
        wanted.map(|&(resource, amount)| Some((self.column(resource)?, amount))).collect()
    }

    /// Whether the pods may run on a node, class by class. Labels count only where the report tells them apart: of
    /// others nothing is known here, and the worker decides. Taints always count.
    fn suitable(
        &self,
        pods: &RequestedPodSet,
        given: Option<&AssignedPodSet>,
    ) -> SmallVec<[bool; 16]> {
        let report = &self.table.report;
        let keys = &report.label_keys;
        let (labels, tolerations) =
            given.map_or((&[][..], &[][..]), |given| (&given.labels, &given.tolerations));
        let suits = |class: &NodeClassCapacity| {
            pods.selection.untolerated(&class.taints, tolerations).is_none()
                && pods.selection.may_match_node(&class.labels, keys)
                && labels
                    .iter()
                    .all(|wanted| !keys.contains(&wanted.0) || class.labels.contains(wanted))
        };
        report.classes.iter().map(suits).collect()
    }

    fn release_pods(&mut self, pods: &RequestedPodSet, count: i64, given: Option<&AssignedPodSet>) {
        let mut left = count.max(0);
        let Some(need) = self.pod_need(pods).filter(|need| !need.is_empty()) else {
            return;
        };
        let suitable = self.suitable(pods, given);
        while left > 0 {
            let Some((index, pods)) = self.fullest(&need, &suitable) else {
                return;
            };
            left -= self.move_pods(index, &need, left, -pods.min(left));
        }
    }

    /// The group whose nodes have the least free of those that can have had such pods, and how many each can have had.
    fn fullest(&self, need: &PodNeed, suitable: &[bool]) -> Option<(usize, i64)> {
        let groups = self.groups.iter().enumerate();
        let candidates = groups.filter(|(_, group)| suitable.get(group.class) == Some(&true));
        let found = candidates.filter_map(|(index, group)| {
            let size = self.table.allocatable.get(group.class)?;
            let used: NodeAmounts =
                size.iter().zip(&group.free).map(|(&size, &free)| size - free).collect();
            let pods = pods_per_node(&used, need);
            (pods > 0).then(|| (self.waste(&group.free, need, 0), index, pods))
        });
        found.min().map(|(_, index, pods)| (index, pods))
    }

    /// The group whose nodes would have the fewest left over; the first of equals.
    fn tightest(&self, need: &PodNeed, suitable: &[bool], left: i64) -> Option<usize> {
        let groups = self.groups.iter().enumerate();
        let candidates = groups.filter(|(_, group)| suitable.get(group.class) == Some(&true));
        let wastes = candidates.filter_map(|(index, group)| {
            let pods = pods_per_node(&group.free, need).min(left);
            (pods > 0).then(|| (self.waste(&group.free, need, pods), index))
        });
        wastes.min().map(|(_, index)| index)
    }

    /// What is left on a node with `pods` more, all resources added up, in parts of the largest node.
    fn waste(&self, free: &NodeAmounts, need: &PodNeed, pods: i64) -> i128 {
        let columns = free.iter().zip(&self.table.largest).enumerate();
        let left = columns.map(|(column, (&free, &largest))| {
            let taken = need.iter().find(|(at, _)| *at == column);
            parts(free - taken.map_or(Amount::ZERO, |(_, amount)| amount.times(pods)), largest)
        });
        left.sum()
    }

    /// Puts pods on nodes of one group: as many full nodes as it takes, or one node that takes all that is left.
    /// Returns how many found room.
    fn fill_nodes(&mut self, index: usize, need: &PodNeed, left: i64) -> i64 {
        let pods = self.groups.get(index).map_or(1, |group| pods_per_node(&group.free, need));
        self.move_pods(index, need, left, pods.min(left).max(1))
    }

    /// Adds so many pods to nodes of one group, or takes them away if there are less than none: as many nodes as it
    /// takes for `left` of them. Returns how many were moved.
    fn move_pods(&mut self, index: usize, need: &PodNeed, left: i64, added: i64) -> i64 {
        let Some(group) = self.groups.get_mut(index) else {
            return 0;
        };
        let pods = added.abs().max(1);
        let nodes = group.count.min(left / pods).max(1);
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

    /// Adds nodes, to those that look alike if there are any.
    fn merge_nodes(&mut self, nodes: NodeGroup) {
        let alike = |group: &&mut NodeGroup| group.class == nodes.class && group.free == nodes.free;
        match self.groups.iter_mut().find(alike) {
            Some(group) => group.count += nodes.count,
            None => self.groups.push(nodes),
        }
    }

    /// Why not all pods of a set found room.
    fn shortage_cause(
        &self,
        pods: &RequestedPodSet,
        given: Option<&AssignedPodSet>,
        fit: i64,
        count: i64,
    ) -> ShortageCause {
        let suitable = self.suitable(pods, given);
        let groups = || self.groups.iter().filter(|group| suitable.get(group.class) == Some(&true));
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
    let listed = report.classes.iter().flat_map(|class| class.free.iter().chain(&class.size));
    let mut columns: Vec<ResourceId> = listed.map(|(resource, _)| *resource).collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// What is listed of a resource. What is not listed is not there.
fn listed_amount(all: &[(ResourceId, Amount)], resource: ResourceId) -> Amount {
    all.iter().find(|(one, _)| *one == resource).map_or(Amount::ZERO, |(_, amount)| *amount)
}

/// The most that one node has free.
fn max_free<'a>(groups: impl Iterator<Item = &'a NodeGroup>, column: usize) -> Amount {
    groups.filter_map(|group| group.free.get(column)).max().copied().unwrap_or_default().clip()
}

/// What all nodes have free. A node that is given too much owes nothing to the others.
fn total(groups: &[NodeGroup], column: usize) -> i64 {
    let free = groups.iter().filter_map(|group| Some((group.free.get(column)?, group.count)));
    free.fold(0, |sum: i64, (free, count)| sum.saturating_add(free.clip().times(count).0))
}

/// How many pods one node takes.
fn pods_per_node(free: &NodeAmounts, need: &PodNeed) -> i64 {
    let of = |&(column, amount): &(usize, Amount)| {
        free.get(column).map_or(0, |free| free.clip().0 / amount.0.max(1))
    };
    need.iter().map(of).min().unwrap_or(i64::MAX)
}

fn parts(amount: Amount, of: Amount) -> i128 {
    i128::from(amount.clip().0) * PARTS / i128::from(of.0.max(1))
}

#[cfg(test)]
mod tests;
