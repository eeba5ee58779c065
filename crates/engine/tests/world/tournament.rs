//! A model of fair sharing: shares of docs/reference/kueue.md §4.7 and the tournament of §4.6, recomputed for every
//! head.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use engine::spec::PreemptionPolicy;
use engine::{CycleEntry, CycleOutcome, Event, FlavorAssignmentMode};

use crate::play::Player;
use crate::world::model::{Model, Slot, known, taken};

/// A head as the tournament sees it.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub(crate) workload: String,
    queue: String,
    usage: BTreeMap<Slot, i64>,
    /// Usage that stays charged after it was processed.
    leaves: BTreeMap<Slot, i64>,
    priority: i64,
    queued_at: i64,
}

/// Heads of a cycle in processing order, without those rejected before.
pub(crate) fn heads(before: &Model, player: &Player, entries: &[CycleEntry]) -> Vec<Head> {
    let decided = |one: &&CycleEntry| {
        !matches!(one.outcome, CycleOutcome::NamespaceMismatch | CycleOutcome::Invalid)
    };
    entries.iter().filter(decided).map(|entry| head(before, player, entry)).collect()
}

fn head(before: &Model, player: &Player, entry: &CycleEntry) -> Head {
    let names = player.engine.names();
    let workload = names.workloads.name(entry.workload).to_owned();
    let queue = format!("queue {}", names.queues.name(entry.queue));
    let usage = taken(player, entry);
    let spec = known(player, &workload);
    let cluster_queue = names.queues.name(entry.queue).to_owned();
    let always_reclaims = matches!(
        player.known.get(&("cq", cluster_queue)),
        Some(Event::ClusterQueue(_, Some(spec))) if spec.preemption.reclaim == PreemptionPolicy::Any
    );
    let leaves = match entry.outcome {
        CycleOutcome::Reserved { .. } | CycleOutcome::Preempting | CycleOutcome::Deferred => {
            usage.clone()
        }
        CycleOutcome::NoCandidates if !always_reclaims => reserved(before, &queue, &usage, entry),
        _ => BTreeMap::new(),
    };
    Head { workload, queue, usage, leaves, priority: spec.priority, queued_at: spec.queued_at.0 }
}

/// Spec §4.8 step 5.
fn reserved(
    before: &Model,
    queue: &str,
    usage: &BTreeMap<Slot, i64>,
    entry: &CycleEntry,
) -> BTreeMap<Slot, i64> {
    assert_eq!(entry.assignment.mode(), FlavorAssignmentMode::Preempt);
    let bounded = usage.iter().map(|(slot, &amount)| {
        let quota = before.quota(queue, slot);
        let left = quota.nominal - before.usage(queue, slot);
        let amount = match (entry.assignment.borrow > 0, quota.borrow) {
            (true, None) => amount,
            (true, Some(limit)) => amount.min(left + limit),
            (false, _) => amount.min(left.max(0)),
        };
        (slot.clone(), amount)
    });
    bounded.collect()
}

/// The order in which the heads of each tree are processed, trees by the names of their roots.
pub(crate) fn order(mut model: Model, mut heads: Vec<Head>) -> Vec<(String, Vec<String>)> {
    let roots: BTreeSet<String> = heads.iter().map(|head| root(&model, &head.queue)).collect();
    let mut all = Vec::new();
    for root in roots {
        let mut order = Vec::new();
        while let Some(index) = winner(&model, &heads, &root) {
            let head = heads.remove(index);
            charge(&mut model, &head.queue, &head.leaves, 1);
            order.push(head.workload);
        }
        all.push((root, order));
    }
    all
}

/// The topmost ancestor.
pub(crate) fn root(model: &Model, name: &str) -> String {
    let parent = model.nodes[name].parent.as_deref();
    parent.map_or_else(|| name.to_owned(), |parent| root(model, parent))
}

/// The tree of a head.
pub(crate) fn tree_of(model: &Model, head: &Head) -> String {
    root(model, &head.queue)
}

fn winner(model: &Model, heads: &[Head], node: &str) -> Option<usize> {
    if node.starts_with("queue") {
        return heads.iter().position(|head| head.queue == node);
    }
    let children = model.children(node).into_iter();
    let nominees = children.filter_map(|child| winner(model, heads, child).map(|one| (child, one)));
    let weighed = nominees.map(|(child, index)| (weigh(model, &heads[index], child), index));
    weighed.min_by(|left, right| compare(left, right, heads)).map(|(_, index)| index)
}

/// Whether the child borrows what the head asks for, and its share, both with the head included.
fn weigh(model: &Model, head: &Head, child: &str) -> (bool, Share) {
    let mut with = model.clone();
    charge(&mut with, &head.queue, &head.usage, 1);
    let asked = head.usage.iter().filter(|(_, amount)| **amount > 0);
    let borrows =
        asked.clone().any(|(slot, _)| with.usage(child, slot) > with.subtree(child, slot));
    (borrows, share(&with, child))
}

fn compare(
    left: &((bool, Share), usize),
    right: &((bool, Share), usize),
    heads: &[Head],
) -> Ordering {
    let (a, b) = (&heads[left.1], &heads[right.1]);
    (left.0.0.cmp(&right.0.0))
        .then_with(|| left.0.1.compare(right.0.1))
        .then(b.priority.cmp(&a.priority))
        .then(a.queued_at.cmp(&b.queued_at))
}

fn charge(model: &mut Model, queue: &str, usage: &BTreeMap<Slot, i64>, sign: i64) {
    let node = model.nodes.get_mut(queue).expect("queues of heads are known");
    for (slot, amount) in usage {
        *node.held.entry(slot.clone()).or_default() += amount * sign;
    }
}

/// Borrowed over lendable, in thousandths, and the weight that divides it: in floating point, because roundings decide
/// between equal fractions.
#[derive(Debug, Clone, Copy)]
struct Share {
    ratio: f64,
    weight: f64,
}

impl Share {
    fn compare(self, other: Self) -> Ordering {
        let infinite = |one: Self| one.weight == 0.0 && one.ratio > 0.0;
        if infinite(self) && infinite(other) {
            return self.ratio.total_cmp(&other.ratio);
        }
        self.weighted().total_cmp(&other.weighted())
    }

    fn weighted(self) -> f64 {
        if self.ratio == 0.0 { 0.0 } else { self.ratio / self.weight }
    }
}

fn share(model: &Model, name: &str) -> Share {
    // The weights of these worlds, and their billionfold, have no rounding.
    let weight = float(model.nodes[name].weight.0) / 1e9;
    let mut best = Share { ratio: 0.0, weight };
    let Some(parent) = &model.nodes[name].parent else {
        return best;
    };
    let resources: BTreeSet<String> = model.slots().into_iter().map(|slot| slot.0).collect();
    for resource in resources {
        let slots = || model.slots().into_iter().filter(|slot| slot.0 == resource);
        let named = |slot: &Slot| names(model, name, slot);
        let over = |slot: Slot| (model.usage(name, &slot) - model.subtree(name, &slot)).max(0);
        let borrowed = slots().filter(named).map(over).sum::<i64>();
        let lendable = slots().map(|slot| potential(model, parent, &slot)).sum::<i64>();
        if lendable > 0 {
            let ratio = float(borrowed.unsigned_abs()) * 1000.0 / float(lendable.unsigned_abs());
            best.ratio = best.ratio.max(ratio);
        }
    }
    best
}

#[expect(clippy::cast_precision_loss, reason = "upstream rounds, too")]
fn float(number: u64) -> f64 {
    number as f64
}

/// Whether a node or a descendant has a quota of the slot, zero included.
fn names(model: &Model, name: &str, slot: &Slot) -> bool {
    model.nodes[name].quotas.contains_key(slot)
        || model.children(name).iter().any(|child| names(model, child, slot))
}

/// Quota that a node could use if no quota were in use.
fn potential(model: &Model, name: &str, slot: &Slot) -> i64 {
    let subtree = model.subtree(name, slot);
    let Some(parent) = &model.nodes[name].parent else {
        return subtree;
    };
    let all = model.local(name, slot) + potential(model, parent, slot);
    let limit = model.quota(name, slot).borrow;
    limit.map_or(all, |limit| all.min(subtree + limit))
}
