//! Phase one: how many pods, slices and leaders fit into every domain, from the leaves up.

use std::collections::BTreeMap;

use crate::amount::Amount;
use crate::flavors::matching::Toleration;
use crate::ids::ResourceId;
use crate::names::Names;
use crate::spec::PodSetSpec;
use crate::state::PODS;
use crate::topology::tree::{Topologies, Tree};

/// What fits into one domain.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Room {
    pub(super) pods: i64,
    pub(super) slices: i64,
    /// One leader can stand here.
    pub(super) leader: i64,
    /// With the leader in place.
    pub(super) pods_with_leader: i64,
    pub(super) slices_with_leader: i64,
}

/// What is to be placed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask<'a> {
    pub(super) workers: &'a PodSetSpec,
    pub(super) count: i64,
    pub(super) leader: Option<&'a PodSetSpec>,
    pub(super) tolerations: &'a [Toleration],
    /// As if nothing were in use.
    pub(super) empty: bool,
    /// What other pod sets of the Workload were just given: leaf, pod set, pods.
    pub(super) assumed: &'a [(usize, &'a PodSetSpec, i64)],
    pub(super) slice_size: i64,
    pub(super) slice_level: usize,
}

/// Room in every domain, and why leaves have none.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    pub(super) rooms: Vec<Room>,
    pub(super) excluded: BTreeMap<String, usize>,
}

/// Counts all domains of a tree.
pub(super) fn count(topologies: &Topologies, names: &Names, tree: &Tree, ask: &Ask<'_>) -> Rooms {
    let mut result = Rooms { rooms: vec![Room::default(); tree.domains.len()], ..Rooms::default() };
    let lowest = tree.by_level.len().saturating_sub(1);
    for &leaf in tree.by_level.last().map(Vec::as_slice).unwrap_or_default() {
        match leaf_room(topologies, names, tree, ask, leaf) {
            Ok((mut room, scarce)) => {
                if let Some(words) = scarce {
                    *result.excluded.entry(words).or_default() += 1;
                }
                if lowest == ask.slice_level {
                    cut_into_slices(&mut room, ask.slice_size);
                }
                result.rooms[leaf] = room;
            }
            Err(words) => *result.excluded.entry(words).or_default() += 1,
        }
    }
    for level in (0..lowest).rev() {
        for &domain in &tree.by_level[level] {
            let mut room = sum(&result.rooms, &tree.domains[domain].children);
            if level == ask.slice_level {
                cut_into_slices(&mut room, ask.slice_size);
            }
            result.rooms[domain] = room;
        }
    }
    result
}

fn cut_into_slices(room: &mut Room, size: i64) {
    room.slices = room.pods / size;
    room.slices_with_leader = room.pods_with_leader / size;
}

/// The leader goes where it costs least.
fn sum(rooms: &[Room], children: &[usize]) -> Room {
    let mut total = Room::default();
    let (mut pods_lost, mut slices_lost) = (i64::MAX, i64::MAX);
    for &child in children {
        let room = rooms[child];
        total.pods += room.pods;
        total.slices += room.slices;
        total.leader = total.leader.max(room.leader);
        if room.leader > 0 {
            pods_lost = pods_lost.min(room.pods - room.pods_with_leader);
            slices_lost = slices_lost.min(room.slices - room.slices_with_leader);
        }
    }
    total.pods_with_leader = if total.leader > 0 { total.pods - pods_lost } else { total.pods };
    total.slices_with_leader =
        if total.leader > 0 { total.slices - slices_lost } else { total.slices };
    total
}

/// What fits into one leaf, and the resource that keeps workers away. `Err` says in words why nothing can stand there.
fn leaf_room(
    topologies: &Topologies,
    names: &Names,
    tree: &Tree,
    ask: &Ask<'_>,
    leaf: usize,
) -> Result<(Room, Option<String>), String> {
    if let Some(host) = tree.domains[leaf].host.and_then(|id| topologies.host(id)) {
        if let Some((_, taint)) = ask.workers.selection.untolerated(&host.taints, ask.tolerations) {
            let words = format!("{}={}:{}", taint.key, taint.value, taint.effect.name());
            return Err(format!("taint {words:?}"));
        }
        if !ask.workers.selection.matches_node(&host.labels) {
            return Err("nodeSelector".to_owned());
        }
    }
    let free = |resource: ResourceId| free(topologies, tree, ask, leaf, resource);
    let (pods, scarce) = capacity(names, ask.workers, free);
    let mut room = Room { pods, pods_with_leader: pods, ..Room::default() };
    if let Some(leader) = ask.leader
        && capacity(names, leader, free).0 > 0
    {
        room.leader = 1;
        let beside = |resource| free(resource) - request(leader, resource);
        room.pods_with_leader = capacity(names, ask.workers, beside).0;
    }
    let scarce = scarce.filter(|_| pods == 0);
    Ok((room, scarce.map(|resource| format!("resource {:?}", names.resources.name(resource)))))
}

fn free(
    topologies: &Topologies,
    tree: &Tree,
    ask: &Ask<'_>,
    leaf: usize,
    resource: ResourceId,
) -> Amount {
    let capacity = tree.domains[leaf].capacity.get(resource.index()).copied().unwrap_or_default();
    let used = if ask.empty { Amount::ZERO } else { topologies.used(tree, leaf, resource) };
    let assumed = ask.assumed.iter().filter(|(at, _, _)| *at == leaf);
    let assumed: i64 =
        assumed.map(|(_, spec, count)| request(spec, resource).times(*count).0).sum();
    capacity - used - Amount(assumed)
}

/// What one pod needs of a resource.
fn request(spec: &PodSetSpec, resource: ResourceId) -> Amount {
    if resource == PODS {
        return Amount(1);
    }
    let known = spec.requests.iter().find(|(one, _)| *one == resource);
    known.map_or(Amount::ZERO, |&(_, amount)| amount)
}

/// How many pods fit, and the resource that sets the bound.
fn capacity(
    names: &Names,
    spec: &PodSetSpec,
    free: impl Fn(ResourceId) -> Amount,
) -> (i64, Option<ResourceId>) {
    let pods = (PODS, Amount(1));
    let needs = spec.requests.iter().copied().filter(|(one, _)| *one != PODS).chain([pods]);
    let mut best: Option<(i64, ResourceId)> = None;
    for (resource, amount) in needs.filter(|(_, amount)| *amount > Amount::ZERO) {
        let fit = free(resource).clip().0 / amount.0;
        let better = best.is_none_or(|(old, known)| {
            let by_name = || names.resources.name(resource) < names.resources.name(known);
            fit < old || (fit == old && by_name())
        });
        if better {
            best = Some((fit, resource));
        }
    }
    best.map_or((0, None), |(fit, resource)| (fit, Some(resource)))
}
