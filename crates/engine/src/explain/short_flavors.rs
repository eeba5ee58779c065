//! Flavors that a pending Workload would get if their quota sufficed, and what they lack.

use crate::amount::Amount;
use crate::explain::explanation::{FlavorExplanation, PodSetExplanation};
use crate::ids::{FlavorId, QueueId, Slot};
use crate::quota::available::{available, potential};
use crate::state::State;

/// Choices of flavors that are looked at.
const MAX_CHOICES: usize = 3;

/// What a choice of flavors, one for each resource group without a fitting one, lacks in its slots.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct ShortFlavors {
    pub(super) slots: Vec<ShortSlot>,
}

/// A slot with too little quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShortSlot {
    pub(super) slot: Slot,
    /// Missing quota, relative to what is free.
    pub(super) missing: Amount,
    /// Missing quota, relative to what the ClusterQueue could use at most; none or less if that suffices.
    pub(super) beyond_maximum: Amount,
}

/// The choices in the order of the flavors. Of several resource groups the first flavors go together, then the second ones.
pub(super) fn short_flavors(
    state: &State,
    queue: QueueId,
    pod_sets: &[PodSetExplanation],
) -> Vec<ShortFlavors> {
    let groups = state.queues.at(queue).groups.iter();
    let by_group = groups.filter_map(|group| in_group(state, queue, &group.flavors, pod_sets));
    let by_group: Vec<Vec<ShortFlavors>> = by_group.collect();
    // A group that no quota helps leaves no choice.
    if by_group.iter().any(Vec::is_empty) {
        return Vec::new();
    }
    let choices = by_group.iter().map(Vec::len).max().unwrap_or_default().min(MAX_CHOICES);
    let choice = |at: usize| {
        let chosen = by_group.iter().map(|all| &all[at.min(all.len() - 1)]);
        ShortFlavors { slots: chosen.flat_map(|one| one.slots.clone()).collect() }
    };
    (0..choices).map(choice).collect()
}

/// The flavors of a group that lack nothing but quota; `None` if each pod set has a fitting one.
fn in_group(
    state: &State,
    queue: QueueId,
    flavors: &[FlavorId],
    pod_sets: &[PodSetExplanation],
) -> Option<Vec<ShortFlavors>> {
    let unfit = pod_sets.iter().map(|one| one.unfit_in(flavors)).filter(|all| !all.is_empty());
    let unfit: Vec<Vec<&FlavorExplanation>> = unfit.collect();
    if unfit.is_empty() {
        return None;
    }
    let short = flavors.iter().filter_map(|&flavor| {
        let is_short = |one: &&FlavorExplanation| one.flavor == flavor && one.lacks_quota_alone();
        let explained = unfit.iter().map(|all| all.iter().copied().find(is_short));
        let explained: Vec<&FlavorExplanation> = explained.collect::<Option<_>>()?;
        Some(shortage_of(state, queue, &explained)).filter(|one| !one.slots.is_empty())
    });
    Some(short.collect())
}

/// The sum of what pod sets lack in one flavor.
fn shortage_of(state: &State, queue: QueueId, pod_sets: &[&FlavorExplanation]) -> ShortFlavors {
    let (tree, node) = (state.quota.tree(), state.queues.at(queue).node);
    let mut wanted: Vec<(Slot, Amount)> = Vec::new();
    for one in pod_sets.iter().flat_map(|one| &one.shortages) {
        match wanted.iter_mut().find(|(slot, _)| *slot == one.slot) {
            Some((_, amount)) => *amount += one.request,
            None => wanted.push((one.slot, one.earlier + one.request)),
        }
    }
    let slots = wanted.into_iter().map(|(slot, wanted)| ShortSlot {
        slot,
        missing: wanted - available(tree, node, slot),
        beyond_maximum: wanted - potential(tree, node, slot),
    });
    ShortFlavors { slots: slots.collect() }
}
