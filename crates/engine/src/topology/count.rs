//! Phase one: how many pods, slices and leaders fit into every domain, from the leaves up.
//!
//! Cost: leaves times requested resources, in dense arrays.

use std::ops::{Index, IndexMut};

use smallvec::SmallVec;

use crate::amount::Amount;
use crate::ids::{DomainId, HostId, ResourceId};
use crate::names::Names;
use crate::node_selection::Toleration;
use crate::spec::PodSetSpec;
use crate::state::PODS;
use crate::topology::HostSpec;
use crate::topology::exclude::{Exclusion, Tally};
use crate::topology::plan::Plan;
use crate::topology::preferred::Scores;
use crate::topology::table::Table;
use crate::topology::topologies::Topologies;
use crate::topology::tree::Tree;

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

/// What fits into every domain of a tree, and how much each is preferred.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    rooms: Vec<Room>,
    pub(super) scores: Scores,
}

impl Rooms {
    fn reset(&mut self, size: usize) {
        self.rooms.clear();
        self.rooms.resize(size, Room::default());
        self.scores.clear();
    }

    pub(super) fn copy_from(&mut self, other: &Self) {
        self.rooms.clone_from(&other.rooms);
        self.scores.copy_from(&other.scores);
    }
}

impl Index<DomainId> for Rooms {
    type Output = Room;
    fn index(&self, id: DomainId) -> &Room {
        &self.rooms[id.index()]
    }
}

impl IndexMut<DomainId> for Rooms {
    fn index_mut(&mut self, id: DomainId) -> &mut Room {
        &mut self.rooms[id.index()]
    }
}

/// What is to be placed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask<'a> {
    pub(super) workers: &'a PodSetSpec,
    pub(super) leader: Option<&'a PodSetSpec>,
    pub(super) plan: &'a Plan,
    pub(super) tolerations: &'a [Toleration],
    /// As if nothing were in use.
    pub(super) empty: bool,
    /// What other pod sets of the Workload were just given, by row of leaf; absent if there are none.
    pub(super) taken: Option<&'a Table>,
    /// Only below this domain.
    pub(super) within: Option<DomainId>,
}

/// Amounts that one pod needs, by resource name.
type Needs = SmallVec<[(ResourceId, Amount); 4]>;

/// Counts all domains of a tree.
pub(super) fn count(
    topologies: &Topologies,
    names: &Names,
    tree: &Tree,
    ask: &Ask<'_>,
    rooms: &mut Rooms,
    tally: &mut Tally,
) {
    rooms.reset(tree.size());
    tally.clear();
    let workers = needs(names, ask.workers);
    let leader = ask.leader.map(|leader| needs(names, leader));
    for leaf in tree.leaves() {
        if let Err(exclusion) = admits(topologies, tree, ask, leaf) {
            tally.add(exclusion);
            continue;
        }
        let free = Free::of(topologies, tree, ask, leaf);
        let (mut room, scarce) = leaf_room(&free, &workers, leader.as_deref());
        if room.pods == 0 {
            scarce.into_iter().for_each(|resource| tally.add(Exclusion::Scarce(resource)));
        }
        if tree.lowest() == ask.plan.slice_level {
            cut_into_slices(&mut room, ask.plan.slice_size);
        }
        rooms[leaf] = room;
    }
    for level in (0..tree.lowest()).rev() {
        for domain in tree.level(level) {
            rooms[domain] = room_of_parent(tree, rooms, ask.plan, level, domain, leader.is_some());
        }
    }
}

/// Why nobody may stand at a leaf, whatever is free there. Only machines have taints and labels.
pub(super) fn admits<'a>(
    topologies: &'a Topologies,
    tree: &Tree,
    ask: &Ask<'_>,
    leaf: DomainId,
) -> Result<(), Exclusion<'a>> {
    let takes_any = ask.workers.selection.takes_any_labels();
    let matters = |&id: &HostId| !takes_any || topologies.is_tainted(id);
    let host = tree.host(leaf).filter(matters).and_then(|id| topologies.host(id));
    if let Some(exclusion) = host.and_then(|host| exclusion(ask, host)) {
        return Err(exclusion);
    }
    match ask.within {
        Some(domain) if !tree.is_below(leaf, domain) => Err(Exclusion::OtherDomain),
        _ => Ok(()),
    }
}

/// What keeps the workers from a machine.
pub(super) fn exclusion<'a>(ask: &Ask<'_>, host: &'a HostSpec) -> Option<Exclusion<'a>> {
    let selection = &ask.workers.selection;
    if let Some((_, taint)) = selection.untolerated(&host.taints, ask.tolerations) {
        Some(Exclusion::Taint(taint))
    } else if !selection.selects_node(&host.labels) {
        Some(Exclusion::Selector)
    } else if !selection.allows_node(&host.name, &host.labels) {
        Some(Exclusion::Affinity)
    } else {
        None
    }
}

/// What is free at a leaf.
pub(super) struct Free<'a> {
    capacity: &'a [Amount],
    used: &'a [Amount],
    taken: &'a [Amount],
}

impl<'a> Free<'a> {
    // Once per leaf: whether the compiler inlines this hung on what else is in the crate.
    #[inline(always)]
    pub(super) fn of(
        topologies: &'a Topologies,
        tree: &'a Tree,
        ask: &Ask<'a>,
        leaf: DomainId,
    ) -> Self {
        let row = tree.row(leaf);
        Self {
            capacity: tree.capacity.row(row),
            used: if ask.empty { &[] } else { topologies.used_row(tree, leaf) },
            taken: ask.taken.map(|table| table.row(row)).unwrap_or_default(),
        }
    }

    pub(super) fn amount(&self, resource: ResourceId) -> Amount {
        let at = |row: &[Amount]| row.get(resource.index()).copied().unwrap_or_default();
        at(self.capacity) - at(self.used) - at(self.taken)
    }
}

/// Everything a pod asks for and the place of a pod, by name.
fn needs(names: &Names, spec: &PodSetSpec) -> Needs {
    let asked = spec.takes().iter().copied();
    let mut needs: Needs =
        asked.filter(|&(one, amount)| one != PODS && amount > Amount::ZERO).collect();
    needs.push((PODS, Amount(1)));
    needs.sort_by_key(|&(one, _)| names.resources.name(one));
    needs
}

fn leaf_room(
    free: &Free<'_>,
    workers: &[(ResourceId, Amount)],
    leader: Option<&[(ResourceId, Amount)]>,
) -> (Room, Option<ResourceId>) {
    let (pods, scarce) = fit(workers, |resource| free.amount(resource));
    let mut room = Room { pods, pods_with_leader: pods, ..Room::default() };
    if let Some(leader) = leader
        && fit(leader, |resource| free.amount(resource)).0 > 0
    {
        room.leader = 1;
        let by_leader = |resource| leader.iter().find(|(one, _)| *one == resource);
        let beside = |resource| {
            free.amount(resource) - by_leader(resource).map_or(Amount::ZERO, |&(_, amount)| amount)
        };
        room.pods_with_leader = fit(workers, beside).0;
    }
    (room, scarce)
}

/// How many pods fit, and the first resource by name that sets the bound.
fn fit(
    needs: &[(ResourceId, Amount)],
    free: impl Fn(ResourceId) -> Amount,
) -> (i64, Option<ResourceId>) {
    let (mut least, mut scarce) = (i64::MAX, None);
    for &(resource, amount) in needs {
        let free = free(resource).clip().0;
        let pods = if amount.0 == 1 { free } else { free / amount.0.max(1) };
        if pods < least {
            (least, scarce) = (pods, Some(resource));
        }
    }
    (least, scarce)
}

/// How often `size` is in `pods`. Mostly it is one, and divisions are what counting spends its time on.
fn times(pods: i64, size: i64) -> i64 {
    if size == 1 { pods } else { pods / size }
}

fn cut_into_slices(room: &mut Room, size: i64) {
    room.slices = times(room.pods, size);
    room.slices_with_leader = times(room.pods_with_leader, size);
}

/// Sums up the children of a domain. The leader goes where it costs least; where it is wanted and cannot stand, nothing
/// fits beside it.
pub(super) fn room_of_parent(
    tree: &Tree,
    rooms: &Rooms,
    plan: &Plan,
    level: usize,
    domain: DomainId,
    led: bool,
) -> Room {
    let unit = plan.layer(level + 1).unwrap_or(1);
    let mut total = Room::default();
    let mut lost: Option<(i64, i64)> = None;
    for child in tree.children(domain) {
        let room = rooms[child];
        let whole = |pods: i64| times(pods, unit) * unit;
        total.pods += whole(room.pods);
        total.slices += room.slices;
        total.leader = total.leader.max(room.leader);
        if !led || room.leader > 0 {
            let pods = whole(room.pods) - whole(room.pods_with_leader);
            let slices = room.slices - room.slices_with_leader;
            lost = Some(lost.map_or((pods, slices), |old| (old.0.min(pods), old.1.min(slices))));
        }
    }
    if let Some((pods, slices)) = lost {
        total.pods_with_leader = total.pods - pods;
        total.slices_with_leader = total.slices - slices;
    }
    if level == plan.slice_level {
        cut_into_slices(&mut total, plan.slice_size);
    }
    total
}

/// Counts a domain that was changed below anew, and with it everything under it.
pub(super) fn recount(
    tree: &Tree,
    rooms: &mut Rooms,
    plan: &Plan,
    level: usize,
    domain: DomainId,
    led: bool,
) {
    if level == tree.lowest() {
        // What a leaf holds does not come from below.
        return;
    }
    if level + 1 < tree.lowest() {
        for child in tree.children(domain) {
            recount(tree, rooms, plan, level + 1, child, led);
        }
    }
    rooms[domain] = room_of_parent(tree, rooms, plan, level, domain, led);
}
