//! The nodes of a Workload's pods, pod set by pod set, those with the largest pods first.
//!
//! * A pod set that fits on one node is assigned the node that it leaves with the least room.
//! * Another one is assigned several nodes. The scheduler may bind more pods to one of them than were counted there, and takes room
//!   that others wait for; so these are nodes on which nothing else is counted of what the pods request, or which take all of the
//!   set beside that.
//! * Pods that need more than room of a node are assigned none, and neither are pods that fit only where a label by which they
//!   could be bound is missing or not known.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use engine::{Amount, ids::ResourceId};

use super::{CountedAmounts, LocalNode, LocalNodes, PodsOnNode, less};
use crate::node_packing::MILLIONTHS;
use crate::refusal::{CapacityShortage, ShortageCause};
use crate::{AssignedPodSet, AssignedWorkload, RequestedPodSet};

/// Hostnames with the number of pods that are counted on each; empty for a pod set that is assigned none.
type AssignedHosts = Vec<(Box<str>, i64)>;

/// A node that the pods of a set may run on.
#[derive(Debug)]
struct SuitableNode<'a> {
    name: &'a str,
    node: &'a LocalNode,
    /// The hostname, if pods can be bound to it: no other node has it, and the match is certain.
    host: Option<&'a str>,
    /// Pods that fit beside what is counted.
    pods: i64,
}

/// Pods that an assignment counts on nodes before it is complete, beside those of other Workloads.
#[derive(Debug)]
struct NodeSearch<'a> {
    nodes: &'a LocalNodes,
    added: BTreeMap<&'a str, CountedAmounts>,
    /// The most that is free on a node, by resource.
    largest: BTreeMap<ResourceId, Amount>,
}

/// The pods of one set.
#[derive(Debug, Clone, Copy)]
struct PodsToPlace<'a> {
    pods: &'a RequestedPodSet,
    count: i64,
    /// What the assigned flavors add.
    additions: Option<&'a AssignedPodSet>,
}

/// Whether the scheduler can bind pods to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodeMatch {
    Never,
    /// It depends on a label that no node has, which new nodes may get.
    Possible,
    Certain,
}

impl LocalNodes {
    /// The nodes of each pod set, in the order of the request.
    ///
    /// # Errors
    /// If the pods do not fit.
    pub(crate) fn assign(
        &self,
        work: &AssignedWorkload,
    ) -> Result<Vec<AssignedHosts>, CapacityShortage> {
        let mut search = NodeSearch::new(self);
        let mut sets: Vec<(usize, PodsToPlace<'_>)> = all_pods(work).enumerate().collect();
        sets.sort_by_key(|(_, set)| Reverse(search.dominant_share(set.pods)));
        let mut assigned = vec![AssignedHosts::new(); sets.len()];
        for (at, set) in sets {
            let hosts = search.assign(set)?;
            if let Some(of_set) = assigned.get_mut(at) {
                *of_set = hosts;
            }
        }
        Ok(assigned)
    }

    /// Where the pods of a set that is assigned no nodes may be bound, and how many fit nowhere.
    pub(super) fn likely_nodes(
        &self,
        work: &AssignedWorkload,
        pod_set: usize,
    ) -> (Vec<PodsOnNode>, i64) {
        let Some(set) = all_pods(work).nth(pod_set) else {
            return (Vec::new(), 0);
        };
        let search = NodeSearch::new(self);
        let suitable = search.suitable(set);
        let (on_nodes, left) = search.pack(set, suitable.iter().collect());
        let counted = on_nodes.into_iter().map(|(one, pods)| PodsOnNode {
            node: one.name.into(),
            pod_set,
            pods,
        });
        (counted.collect(), left)
    }
}

fn all_pods(work: &AssignedWorkload) -> impl Iterator<Item = PodsToPlace<'_>> {
    work.pod_sets().map(|(pods, count, additions)| PodsToPlace {
        pods,
        count: count.max(0),
        additions,
    })
}

impl<'a> NodeSearch<'a> {
    fn new(nodes: &'a LocalNodes) -> Self {
        let mut largest = BTreeMap::<ResourceId, Amount>::new();
        for &(resource, free) in nodes.nodes.values().flat_map(|node| &node.free) {
            let most = largest.entry(resource).or_default();
            *most = free.max(*most);
        }
        Self { nodes, added: BTreeMap::new(), largest }
    }

    fn assign(&mut self, set: PodsToPlace<'_>) -> Result<AssignedHosts, CapacityShortage> {
        if set.count == 0 {
            return Ok(AssignedHosts::new());
        }
        let suitable = self.suitable(set);
        let of_set =
            |one: &SuitableNode<'a>, pods| (Box::<str>::from(one.host.unwrap_or_default()), pods);
        if !set.pods.needs_more_than_room {
            if let Some(one) = self.best_fit(&suitable, set) {
                self.add(one.name, set.pods, set.count);
                return Ok(vec![of_set(one, set.count)]);
            }
            let own = suitable
                .iter()
                .filter(|one| one.host.is_some() && self.cannot_displace_others(one, set));
            let (on_nodes, left) = self.pack(set, own.collect());
            if left == 0 {
                // Each may get all of them.
                on_nodes.iter().for_each(|(one, _)| self.add(one.name, set.pods, set.count));
                return Ok(on_nodes.into_iter().map(|(one, pods)| of_set(one, pods)).collect());
            }
            if suitable.iter().all(|one| one.host.is_some()) {
                return Err(self.shortage(set, &suitable, set.count - left));
            }
        }
        let (on_nodes, left) = self.pack(set, suitable.iter().collect());
        if left > 0 {
            return Err(self.shortage(set, &suitable, set.count - left));
        }
        on_nodes.iter().for_each(|(one, pods)| self.add(one.name, set.pods, *pods));
        Ok(AssignedHosts::new())
    }

    fn suitable(&self, set: PodsToPlace<'_>) -> Vec<SuitableNode<'a>> {
        let suitable = |(name, node): (&'a str, &'a LocalNode)| {
            let node_match = self.match_node(name, node, set);
            if node_match == NodeMatch::Never {
                return None;
            }
            let host = node.hostname().filter(|host| {
                node_match == NodeMatch::Certain
                    && self.nodes.hosts.get(*host).is_some_and(|names| names.len() == 1)
            });
            let fits = needs(set.pods)
                .map(|(resource, amount)| self.left(name, node, resource).0 / amount.0.max(1));
            let pods = fits.min().unwrap_or(i64::MAX);
            Some(SuitableNode { name, node, host, pods })
        };
        let all = self.nodes.nodes.iter().map(|(name, node)| (&**name, node));
        all.filter_map(suitable).collect()
    }

    fn match_node(&self, name: &str, node: &LocalNode, set: PodsToPlace<'_>) -> NodeMatch {
        let (labels, tolerations) =
            set.additions.map_or((&[][..], &[][..]), |one| (&one.labels, &one.tolerations));
        let (selection, known) = (&set.pods.selection, self.nodes.known_keys());
        if selection.untolerated(&node.taints, tolerations).is_some()
            || !selection.may_match_node(&node.labels, known)
            || labels.iter().any(|one| known.contains(&one.0) && !node.labels.contains(one))
        {
            return NodeMatch::Never;
        }
        let mut required = selection.node_selector.iter().chain(labels);
        let certain = required.all(|one| node.labels.contains(one))
            && selection.allows_node(name, &node.labels);
        if certain { NodeMatch::Certain } else { NodeMatch::Possible }
    }

    /// The node that takes all pods of a set and is left with the least room.
    fn best_fit<'b>(
        &self,
        suitable: &'b [SuitableNode<'a>],
        set: PodsToPlace<'_>,
    ) -> Option<&'b SuitableNode<'a>> {
        let whole = suitable.iter().filter(|one| one.host.is_some() && one.pods >= set.count);
        whole.min_by_key(|one| (self.remaining_after(one, set.pods, set.count), one.name))
    }

    /// Whether the pods of a set cannot take the room of others on a node, however many of them are bound there.
    fn cannot_displace_others(&self, one: &SuitableNode<'a>, set: PodsToPlace<'_>) -> bool {
        needs(set.pods).all(|(resource, amount)| {
            let counted = self.counted(one.name, resource);
            let all = i128::from(amount.0) * i128::from(set.count);
            counted == 0 || i128::from(free_of(one.node, resource).0) >= all + counted
        })
    }

    /// Packs the pods of a set onto as few nodes as possible. Returns how many do not fit.
    fn pack<'b>(
        &self,
        set: PodsToPlace<'_>,
        suitable: Vec<&'b SuitableNode<'a>>,
    ) -> (Vec<(&'b SuitableNode<'a>, i64)>, i64) {
        let mut rest: Vec<_> = suitable.into_iter().filter(|one| one.pods > 0).collect();
        rest.sort_by_cached_key(|one| {
            (self.remaining_after(one, set.pods, one.pods.min(set.count)), one.name)
        });
        let (mut packed, mut left) = (Vec::new(), set.count);
        let mut full = rest.iter().copied().enumerate();
        while left > 0 {
            let Some((at, next)) = full.next() else { break };
            let last = rest.get(at..).unwrap_or_default().iter().filter(|one| one.pods >= left);
            let last = last.min_by_key(|one| (self.remaining_after(one, set.pods, left), one.name));
            let next = last.copied().unwrap_or(next);
            let pods = next.pods.min(left);
            packed.push((next, pods));
            left -= pods;
        }
        (packed, left)
    }

    fn add(&mut self, node: &'a str, pods: &RequestedPodSet, count: i64) {
        let added = self.added.entry(node).or_default();
        for (resource, amount) in needs(pods) {
            *added.entry(resource).or_default() += i128::from(amount.0) * i128::from(count);
        }
    }

    fn counted(&self, node: &str, resource: ResourceId) -> i128 {
        let added = self.added.get(node).and_then(|all| all.get(&resource));
        self.nodes.counted(node, resource) + added.copied().unwrap_or_default()
    }

    fn left(&self, name: &str, node: &LocalNode, resource: ResourceId) -> Amount {
        less(free_of(node, resource), self.counted(name, resource))
    }

    /// What is left of a node after so many pods more: the sum over all resources, in millionths of the largest node.
    fn remaining_after(&self, one: &SuitableNode<'a>, pods: &RequestedPodSet, count: i64) -> i128 {
        let left = one.node.free.iter().map(|&(resource, free)| {
            let taken = needs(pods).find(|(needed, _)| *needed == resource);
            let taken = taken.map_or(0, |(_, amount)| i128::from(amount.0) * i128::from(count));
            self.millionths(resource, less(free, self.counted(one.name, resource) + taken))
        });
        left.sum()
    }

    /// The share of one pod in the largest node, in millionths.
    fn dominant_share(&self, pods: &RequestedPodSet) -> i128 {
        needs(pods)
            .map(|(resource, amount)| self.millionths(resource, amount))
            .max()
            .unwrap_or_default()
    }

    fn millionths(&self, resource: ResourceId, amount: Amount) -> i128 {
        let largest = self.largest.get(&resource).map_or(0, |most| most.0);
        i128::from(amount.clip().0) * MILLIONTHS / i128::from(largest.max(1))
    }

    fn shortage(
        &self,
        set: PodsToPlace<'_>,
        suitable: &[SuitableNode<'a>],
        fit: i64,
    ) -> CapacityShortage {
        let most = |resource| {
            let left = suitable.iter().map(|one| self.left(one.name, one.node, resource));
            left.max().unwrap_or_default()
        };
        let too_large = needs(set.pods).find_map(|(resource, need)| {
            let most = most(resource);
            (need > most).then_some(ShortageCause::PodTooLarge { resource, need, most })
        });
        let cause = match (suitable.is_empty(), too_large) {
            (true, _) => ShortageCause::NoSuitableNode,
            (false, Some(cause)) => cause,
            (false, None) => ShortageCause::TooFewNodes { fit, count: set.count },
        };
        CapacityShortage { pod_set: set.pods.name.clone(), cause }
    }
}

/// What one pod requests.
fn needs(pods: &RequestedPodSet) -> impl Iterator<Item = (ResourceId, Amount)> {
    pods.requests.iter().filter(|(_, amount)| *amount > Amount::ZERO).copied()
}

fn free_of(node: &LocalNode, resource: ResourceId) -> Amount {
    let free = node.free.iter().find(|(one, _)| *one == resource);
    free.map_or(Amount::ZERO, |(_, amount)| amount.clip())
}
