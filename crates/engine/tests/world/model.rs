//! A model of quotas: the definitions of docs/reference/kueue.md §4.3, recomputed from the objects and the
//! reservations. Slow on purpose.

use std::collections::{BTreeMap, BTreeSet};

use engine::ids::WorkloadId;
use engine::spec::{
    AssignedResource, FairSharingWeight, PodSetAdmission, ResourceGroupSpec, WorkloadInfo,
};
use engine::{CycleEntry, Event, FlavorAssignment, Names};

use crate::play::Player;

/// Resource and flavor, by name.
pub(crate) type Slot = (String, String);

/// A quota with its limits.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Quota {
    pub(crate) nominal: i64,
    pub(crate) borrow: Option<i64>,
    pub(crate) lend: Option<i64>,
}

/// A queue or cohort.
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    pub(crate) parent: Option<String>,
    pub(crate) quotas: BTreeMap<Slot, Quota>,
    pub(crate) weight: FairSharingWeight,
    /// Reservations of a queue.
    pub(crate) held: BTreeMap<Slot, i64>,
}

/// All nodes, by `queue NAME` and `cohort NAME`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) nodes: BTreeMap<String, Node>,
}

impl Model {
    /// The model of a player's objects and of its engine's reservations.
    pub(crate) fn of(player: &Player) -> Self {
        let mut model = Self::default();
        let names = player.engine.names();
        for event in player.known.values() {
            model.enter(event, names);
        }
        for event in player.known.values() {
            if let Event::Workload(id, _) = event
                && let Some(held) = player.engine.admission_spec(*id)
                && !is_superseded(player, *id)
            {
                let queue = format!("queue {}", names.queues.name(held.queue));
                let queue = model.nodes.entry(queue).or_default();
                for (slot, amount) in amounts(&held.pod_sets, names) {
                    *queue.held.entry(slot).or_default() += amount;
                }
            }
        }
        model
    }

    fn enter(&mut self, event: &Event, names: &Names) {
        let cohort = |id| format!("cohort {}", names.cohorts.name(id));
        let (name, parent, groups, weight) = match event {
            Event::Cohort(id, Some(spec)) => (cohort(*id), spec.parent, &spec.groups, spec.weight),
            Event::ClusterQueue(id, Some(spec)) => {
                let name = format!("queue {}", names.queues.name(*id));
                (name, spec.cohort, &spec.groups, spec.weight)
            }
            _ => return,
        };
        let parent = parent.map(cohort);
        if let Some(parent) = &parent {
            self.nodes.entry(parent.clone()).or_default();
        }
        let node = self.nodes.entry(name).or_default();
        (node.parent, node.weight, node.quotas) = (parent, weight, quotas(groups, names));
    }

    /// Whether a cohort is its own ancestor; sums over the tree are undefined then.
    pub(crate) fn is_cyclic(&self) -> bool {
        let climbs_forever = |name: &String| {
            let mut above = self.nodes[name].parent.as_ref();
            for _ in 0..self.nodes.len() {
                above = above.and_then(|name| self.nodes[name].parent.as_ref());
            }
            above.is_some()
        };
        self.nodes.keys().any(climbs_forever)
    }

    pub(crate) fn slots(&self) -> BTreeSet<Slot> {
        let all = self.nodes.values();
        all.flat_map(|node| node.quotas.keys().chain(node.held.keys())).cloned().collect()
    }

    pub(crate) fn children(&self, name: &str) -> Vec<&str> {
        let below = self.nodes.iter().filter(|(_, node)| node.parent.as_deref() == Some(name));
        below.map(|(child, _)| child.as_str()).collect()
    }

    pub(crate) fn quota(&self, name: &str, slot: &Slot) -> Quota {
        self.nodes[name].quotas.get(slot).copied().unwrap_or_default()
    }

    pub(crate) fn subtree(&self, name: &str, slot: &Slot) -> i64 {
        let lent = |child: &&str| self.subtree(child, slot) - self.local(child, slot);
        self.quota(name, slot).nominal + self.children(name).iter().map(lent).sum::<i64>()
    }

    /// Quota that is invisible to the parent.
    pub(crate) fn local(&self, name: &str, slot: &Slot) -> i64 {
        let lend = self.quota(name, slot).lend;
        lend.map_or(0, |lend| (self.subtree(name, slot) - lend).max(0))
    }

    pub(crate) fn usage(&self, name: &str, slot: &Slot) -> i64 {
        if name.starts_with("queue") {
            return self.nodes[name].held.get(slot).copied().unwrap_or_default();
        }
        let charged = |child: &&str| (self.usage(child, slot) - self.local(child, slot)).max(0);
        self.children(name).iter().map(charged).sum()
    }

    /// Available quota. Negative in an overcommitted tree.
    pub(crate) fn available(&self, name: &str, slot: &Slot) -> i64 {
        let (subtree, local) = (self.subtree(name, slot), self.local(name, slot));
        let usage = self.usage(name, slot);
        let Some(parent) = &self.nodes[name].parent else {
            return subtree - usage;
        };
        let mut above = self.available(parent, slot);
        if let Some(limit) = self.quota(name, slot).borrow {
            above = above.min(subtree - local - (usage - local).max(0) + limit);
        }
        (local - usage).max(0) + above
    }
}

/// Whether a newer slice in the same queue has taken over the quota of a Workload. An evicted one keeps its quota.
fn is_superseded(player: &Player, old: WorkloadId) -> bool {
    let engine = &player.engine;
    if engine.is_evicted(old) {
        return false;
    }
    let queue = |id| engine.admission_spec(id).map(|held| held.queue);
    let name = engine.names().workloads.name(old);
    player.known.values().any(|event| match event {
        Event::Workload(new, spec) if spec.replaced_slice.as_deref() == Some(name) => {
            queue(*new) == queue(old)
        }
        _ => false,
    })
}

fn quotas(groups: &[ResourceGroupSpec], names: &Names) -> BTreeMap<Slot, Quota> {
    let mut all = BTreeMap::new();
    for flavor in groups.iter().flat_map(|group| &group.flavors) {
        for quota in &flavor.resources {
            let slot = slot(names, quota.resource, flavor.flavor);
            let limit = |limit: Option<engine::Amount>| limit.map(|one| one.0);
            let (borrow, lend) = (limit(quota.borrowing_limit), limit(quota.lending_limit));
            all.insert(slot, Quota { nominal: quota.nominal.0, borrow, lend });
        }
    }
    all
}

/// A slot by name.
pub(crate) fn slot(
    names: &Names,
    resource: engine::ids::ResourceId,
    flavor: engine::ids::FlavorId,
) -> Slot {
    (names.resources.name(resource).to_owned(), names.flavors.name(flavor).to_owned())
}

/// Charged usage of an admission: reclaimable pods use nothing.
pub(crate) fn amounts(pod_sets: &[PodSetAdmission], names: &Names) -> Vec<(Slot, i64)> {
    let mut all = Vec::new();
    for one in pod_sets {
        for &AssignedResource { resource, flavor, amount } in &one.resources {
            let left = amount.0 / one.count * (one.count - one.reclaimed);
            all.push((slot(names, resource, flavor), left));
        }
    }
    all
}

/// Usage added by an entry; for a slice, beyond the slice that it replaces.
pub(crate) fn taken(player: &Player, entry: &CycleEntry) -> BTreeMap<Slot, i64> {
    let names = player.engine.names();
    let pod_sets = &known(player, names.workloads.name(entry.workload)).pod_sets;
    let mut taken = BTreeMap::new();
    for (one, spec) in entry.assignment.pod_sets.iter().zip(pod_sets) {
        for choice in &one.flavor_assignments {
            let slot = slot(names, choice.resource, choice.flavor);
            let held = entry.replaced_slice.map_or(0, |old| held(player, old, &spec.name, choice));
            *taken.entry(slot).or_default() += choice.amount.0 - held;
        }
    }
    taken
}

/// The latest spec of a Workload.
pub(crate) fn known<'a>(player: &'a Player, workload: &str) -> &'a WorkloadInfo {
    match player.known.get(&("wl", workload.to_owned())) {
        Some(Event::Workload(_, spec)) => spec,
        _ => unreachable!("heads, and those whom they replace, are known"),
    }
}

/// Usage of the replaced slice for a pod set of this name.
fn held(player: &Player, old: WorkloadId, pod_set: &str, choice: &FlavorAssignment) -> i64 {
    let pod_sets = &known(player, player.engine.names().workloads.name(old)).pod_sets;
    let at = pod_sets.iter().position(|one| *one.name == *pod_set);
    let held = player.engine.admission(old).and_then(|all| all.get(at?));
    let amounts = held.map(|one| (one, one.resources.iter()));
    amounts.map_or(0, |(one, resources)| {
        let same = resources.filter(|assigned| assigned.resource == choice.resource);
        same.map(|assigned| assigned.amount.0 / one.count * (one.count - one.reclaimed)).sum()
    })
}
