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

use crate::refusal::{Lack, Misfit};
use crate::{Given, NodeClass, Pods, Report, Work};

/// Sizes and leftovers are compared in this many parts of the largest node.
pub(crate) const PARTS: i128 = 1_000_000;

/// The nodes of one cluster and what is free on them. A copy costs as much as there are different nodes.
#[derive(Debug, Clone)]
pub(crate) struct Nodes {
    frame: Arc<Frame>,
    groups: Vec<Group>,
}

/// What does not change while pods are placed.
#[derive(Debug)]
struct Frame {
    report: Arc<Report>,
    /// Every resource that some class lists, sorted.
    columns: Vec<ResourceId>,
    /// What a node of each class has when nothing dispatched runs there.
    sizes: Vec<Row>,
    /// The most of each that one node had free at the start.
    largest: Vec<Amount>,
    /// What all nodes together had free at the start.
    totals: Vec<i64>,
}

type Row = SmallVec<[Amount; 4]>;

/// Nodes of one class with the same left.
#[derive(Debug, Clone)]
struct Group {
    class: usize,
    count: i64,
    free: Row,
}

/// Pods, how many of them, and what was added.
type PodSet<'a> = (&'a Pods, i64, Option<&'a Given>);

/// What one pod takes, by column. Only what is more than nothing.
type Need = SmallVec<[(usize, Amount); 4]>;

impl Nodes {
    /// The nodes as a report lists them.
    pub(crate) fn new(report: Arc<Report>) -> Self {
        let columns = columns(&report);
        let row = |class: &NodeClass| -> Row {
            columns.iter().map(|&resource| listed(&class.free, resource)).collect()
        };
        let classes = report.classes.iter().enumerate().filter(|(_, class)| class.count > 0);
        let groups: Vec<Group> = classes
            .map(|(index, class)| Group { class: index, count: class.count, free: row(class) })
            .collect();
        let size = |class: &NodeClass| -> Row {
            let of = |resource| listed(&class.size, resource).max(listed(&class.free, resource));
            columns.iter().map(|&resource| of(resource)).collect()
        };
        let sizes = report.classes.iter().map(size).collect();
        let largest = (0..columns.len()).map(|column| most(groups.iter(), column)).collect();
        let totals = (0..columns.len()).map(|column| total(&groups, column)).collect();
        Self { frame: Arc::new(Frame { report, columns, sizes, largest, totals }), groups }
    }

    /// Whether all pods of `work` find room.
    pub(crate) fn fits(&self, work: &Work) -> Result<(), Misfit> {
        let mut copy = self.clone();
        for (pods, count, given) in self.by_size(work) {
            let left = copy.put(pods, count, given);
            if left > 0 {
                let lack = self.lack(pods, given, count - left, count);
                return Err(Misfit { pod_set: pods.name.clone(), lack });
            }
        }
        Ok(())
    }

    /// Takes the room of `work`, as far as there is any.
    pub(crate) fn take(&mut self, work: &Work) {
        for (pods, count, given) in self.by_size(work) {
            self.put(pods, count, given);
        }
    }

    /// Gives back the room of `work`, which ran on these nodes. On which of them is not known: it is taken to leave the
    /// fullest, so that as much as possible is free in one piece. No node gets more than its size.
    pub(crate) fn give(&mut self, work: &Work) {
        for (pods, count, given) in self.by_size(work) {
            self.put_back(pods, count, given);
        }
    }

    /// The nodes as a report would list them now.
    pub(crate) fn classes(&self) -> Vec<NodeClass> {
        let class = |group: &Group| {
            let before = self.frame.report.classes.get(group.class)?;
            let free = self.frame.columns.iter().copied().zip(group.free.iter().copied());
            let listed = |&(resource, _): &(ResourceId, Amount)| {
                before.free.iter().any(|(known, _)| *known == resource)
            };
            let free = free.filter(listed).collect();
            Some(NodeClass { count: group.count, free, ..before.clone() })
        };
        self.groups.iter().filter_map(class).collect()
    }

    /// The largest part that work takes of all nodes as they are when empty, in parts of [`PARTS`].
    pub(crate) fn part_of_all(&self, work: &Work) -> i128 {
        let asked = work.asked().into_iter();
        asked
            .map(|(resource, amount)| parts(amount, Amount(self.size_of_all(resource))))
            .max()
            .unwrap_or(0)
    }

    fn size_of_all(&self, resource: ResourceId) -> i64 {
        let Some(column) = self.column(resource) else {
            return 0;
        };
        let classes = self.frame.sizes.iter().zip(&self.frame.report.classes);
        let sizes = classes.filter_map(|(size, class)| Some(size.get(column)?.times(class.count)));
        sizes.fold(0, |sum: i64, size| sum.saturating_add(size.clip().0))
    }

    /// What all nodes together have free of a resource: now, and when they were reported.
    pub(crate) fn free(&self, resource: ResourceId) -> (i64, i64) {
        self.column(resource).map_or((0, 0), |column| {
            let before = self.frame.totals.get(column).copied().unwrap_or_default();
            (total(&self.groups, column), before)
        })
    }

    /// The pod sets, largest pods first.
    fn by_size<'a>(&self, work: &'a Work) -> SmallVec<[PodSet<'a>; 2]> {
        let mut sets: SmallVec<[_; 2]> = work.pod_sets().collect();
        sets.sort_by_key(|&(pods, _, _)| Reverse(self.size(pods)));
        sets
    }

    /// The largest part of the largest node that one pod takes.
    fn size(&self, pods: &Pods) -> i128 {
        let part = |&(resource, amount): &(ResourceId, Amount)| {
            let column = self.column(resource);
            let largest = column.and_then(|column| self.frame.largest.get(column));
            parts(amount, largest.copied().unwrap_or_default())
        };
        pods.requests.iter().map(part).max().unwrap_or_default()
    }

    fn column(&self, resource: ResourceId) -> Option<usize> {
        self.frame.columns.binary_search(&resource).ok()
    }

    /// Places up to `count` pods and says how many are left.
    fn put(&mut self, pods: &Pods, count: i64, given: Option<&Given>) -> i64 {
        let mut left = count.max(0);
        let Some(need) = self.need(pods) else {
            return left;
        };
        let suitable = self.suitable(pods, given);
        while left > 0 {
            let Some(index) = self.tightest(&need, &suitable, left) else {
                break;
            };
            left -= self.fill(index, &need, left);
        }
        left
    }

    /// What one pod takes; `None` if it takes something that no node lists.
    fn need(&self, pods: &Pods) -> Option<Need> {
        let wanted = pods.requests.iter().filter(|(_, amount)| *amount > Amount::ZERO);
        wanted.map(|&(resource, amount)| Some((self.column(resource)?, amount))).collect()
    }

    /// Whether the pods may run on a node, class by class. Labels count only where the report tells them apart: of
    /// others nothing is known here, and the worker decides. Taints always count.
    fn suitable(&self, pods: &Pods, given: Option<&Given>) -> SmallVec<[bool; 16]> {
        let report = &self.frame.report;
        let keys = &report.label_keys;
        let (labels, tolerations) =
            given.map_or((&[][..], &[][..]), |given| (&given.labels, &given.tolerations));
        let suits = |class: &NodeClass| {
            pods.selection.untolerated(&class.taints, tolerations).is_none()
                && pods.selection.may_match_node(&class.labels, keys)
                && labels
                    .iter()
                    .all(|wanted| !keys.contains(&wanted.0) || class.labels.contains(wanted))
        };
        report.classes.iter().map(suits).collect()
    }

    fn put_back(&mut self, pods: &Pods, count: i64, given: Option<&Given>) {
        let mut left = count.max(0);
        let Some(need) = self.need(pods).filter(|need| !need.is_empty()) else {
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
    fn fullest(&self, need: &Need, suitable: &[bool]) -> Option<(usize, i64)> {
        let groups = self.groups.iter().enumerate();
        let candidates = groups.filter(|(_, group)| suitable.get(group.class) == Some(&true));
        let found = candidates.filter_map(|(index, group)| {
            let size = self.frame.sizes.get(group.class)?;
            let used: Row =
                size.iter().zip(&group.free).map(|(&size, &free)| size - free).collect();
            let pods = capacity(&used, need);
            (pods > 0).then(|| (self.waste(&group.free, need, 0), index, pods))
        });
        found.min().map(|(_, index, pods)| (index, pods))
    }

    /// The group whose nodes would have the fewest left over; the first of equals.
    fn tightest(&self, need: &Need, suitable: &[bool], left: i64) -> Option<usize> {
        let groups = self.groups.iter().enumerate();
        let candidates = groups.filter(|(_, group)| suitable.get(group.class) == Some(&true));
        let wastes = candidates.filter_map(|(index, group)| {
            let pods = capacity(&group.free, need).min(left);
            (pods > 0).then(|| (self.waste(&group.free, need, pods), index))
        });
        wastes.min().map(|(_, index)| index)
    }

    /// What is left on a node with `pods` more, all resources added up, in parts of the largest node.
    fn waste(&self, free: &Row, need: &Need, pods: i64) -> i128 {
        let columns = free.iter().zip(&self.frame.largest).enumerate();
        let left = columns.map(|(column, (&free, &largest))| {
            let taken = need.iter().find(|(at, _)| *at == column);
            parts(free - taken.map_or(Amount::ZERO, |(_, amount)| amount.times(pods)), largest)
        });
        left.sum()
    }

    /// Puts pods on nodes of one group: as many full nodes as it takes, or one node that takes all that is left.
    /// Returns how many found room.
    fn fill(&mut self, index: usize, need: &Need, left: i64) -> i64 {
        let pods = self.groups.get(index).map_or(1, |group| capacity(&group.free, need));
        self.move_pods(index, need, left, pods.min(left).max(1))
    }

    /// Adds so many pods to nodes of one group, or takes them away if there are less than none: as many nodes as it
    /// takes for `left` of them. Returns how many were moved.
    fn move_pods(&mut self, index: usize, need: &Need, left: i64, added: i64) -> i64 {
        let Some(group) = self.groups.get_mut(index) else {
            return 0;
        };
        let pods = added.abs().max(1);
        let nodes = group.count.min(left / pods).max(1);
        let mut filled = Group { count: nodes, ..group.clone() };
        for &(column, amount) in need {
            if let Some(free) = filled.free.get_mut(column) {
                *free -= amount.times(added);
            }
        }
        group.count -= nodes;
        if group.count == 0 {
            self.groups.remove(index);
        }
        self.join(filled);
        nodes * pods
    }

    /// Adds nodes, to those that look alike if there are any.
    fn join(&mut self, nodes: Group) {
        let alike = |group: &&mut Group| group.class == nodes.class && group.free == nodes.free;
        match self.groups.iter_mut().find(alike) {
            Some(group) => group.count += nodes.count,
            None => self.groups.push(nodes),
        }
    }

    /// Why not all pods of a set found room.
    fn lack(&self, pods: &Pods, given: Option<&Given>, fit: i64, count: i64) -> Lack {
        let suitable = self.suitable(pods, given);
        let groups = || self.groups.iter().filter(|group| suitable.get(group.class) == Some(&true));
        if groups().next().is_none() {
            return Lack::Nodes;
        }
        let too_large = pods.requests.iter().find_map(|&(resource, need)| {
            let most = self.column(resource).map_or(Amount::ZERO, |column| most(groups(), column));
            (need > most).then_some(Lack::Size { resource, need, most })
        });
        too_large.unwrap_or(Lack::Count { fit, count })
    }
}

fn columns(report: &Report) -> Vec<ResourceId> {
    let listed = report.classes.iter().flat_map(|class| class.free.iter().chain(&class.size));
    let mut columns: Vec<ResourceId> = listed.map(|(resource, _)| *resource).collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// What is listed of a resource. What is not listed is not there.
fn listed(all: &[(ResourceId, Amount)], resource: ResourceId) -> Amount {
    all.iter().find(|(one, _)| *one == resource).map_or(Amount::ZERO, |(_, amount)| *amount)
}

/// The most that one node has free.
fn most<'a>(groups: impl Iterator<Item = &'a Group>, column: usize) -> Amount {
    groups.filter_map(|group| group.free.get(column)).max().copied().unwrap_or_default().clip()
}

/// What all nodes have free. A node that is given too much owes nothing to the others.
fn total(groups: &[Group], column: usize) -> i64 {
    let free = groups.iter().filter_map(|group| Some((group.free.get(column)?, group.count)));
    free.fold(0, |sum: i64, (free, count)| sum.saturating_add(free.clip().times(count).0))
}

/// How many pods one node takes.
fn capacity(free: &Row, need: &Need) -> i64 {
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
