//! Searches for one who asks why it waits: nothing is changed by them, and their buffers are their own.
//!
//! Earlier pod sets of the Workload count where they would go, in the flavors that they would get, both as things are and
//! as if nothing were in use. Pod sets of one group are looked for together. If machines came or went since the last
//! cycle, the trees are built as the next cycle will build them. Cost: one search per question, more where it fails.

use std::borrow::Cow;

use crate::equivalence_class::EquivalenceClass;
use crate::flavors::assign::members;
use crate::ids::FlavorId;
use crate::state::State;
use crate::topology::TopologyReason;
use crate::topology::apply::fresh;
use crate::topology::find::{Placed, Scratch, Search, Wanted};
use crate::topology::lack::Lack;
use crate::topology::plan::Plan;
use crate::topology::shortfall::lack;
use crate::topology::topologies::Topologies;

/// See the module.
pub(crate) struct Ground<'a> {
    state: &'a State,
    class: &'a EquivalenceClass,
    topologies: Cow<'a, Topologies>,
    /// Pod sets that found places, by the flavor of which.
    settled: Vec<(usize, FlavorId)>,
    now: Side,
    empty: Side,
}

/// The ground as it is, or as if nothing were in use.
#[derive(Default)]
struct Side {
    /// What the settled ones were given.
    settled: Vec<Placed>,
    scratch: Scratch,
}

impl Side {
    /// Leaves in the buffers what others than `members` were given.
    fn begin(&mut self, members: &[usize]) {
        let others = self.settled.iter().filter(|one| !members.contains(&one.pod_set));
        self.scratch.placed.clear();
        self.scratch.placed.extend(others);
    }
}

/// Why no places are found.
pub(crate) enum Refusal {
    /// No machines could meet the request in this topology.
    Contradiction(TopologyReason),
    /// There are too few.
    Lack(Box<Lack>),
}

impl<'a> Ground<'a> {
    pub(crate) fn new(state: &'a State, class: &'a EquivalenceClass) -> Self {
        let (now, empty) = (Side::default(), Side::default());
        Self { state, class, topologies: fresh(state), settled: Vec::new(), now, empty }
    }

    /// Whether a flavor has a topology with places in it.
    pub(crate) fn has_places(&self, flavor: FlavorId) -> bool {
        self.topologies.tree(flavor).is_some()
    }

    /// Whether a pod set, with its group, finds places in a flavor.
    pub(crate) fn look(&mut self, pod_set: usize, flavor: FlavorId) -> Result<(), Refusal> {
        let members = members(self.class, pod_set);
        let all = self.wanted(&members, flavor);
        let Self { state, topologies, now, empty, .. } = self;
        let Some(search) = search(state, topologies, &all, &members) else {
            return Ok(());
        };
        let plan = Plan::new(search.tree, search.workers.spec.topology.as_ref());
        let plan = plan.map_err(Refusal::Contradiction)?;
        now.begin(&members);
        if search.run(&mut now.scratch).is_ok() {
            return Ok(());
        }
        empty.begin(&members);
        let hope = Search { empty: true, ..search }.run(&mut empty.scratch).is_ok();
        Err(Refusal::Lack(Box::new(lack(&search, &plan, &now.scratch, &empty.scratch, hope))))
    }

    /// What a pod set and its group find counts against later ones.
    pub(crate) fn settle(&mut self, pod_set: usize, flavor: FlavorId) {
        let members = members(self.class, pod_set);
        if self.settled.iter().any(|one| members.contains(&one.0)) {
            return;
        }
        let all = self.wanted(&members, flavor);
        let Self { state, topologies, settled, now, empty, .. } = self;
        let Some(search) = search(state, topologies, &all, &members) else {
            return;
        };
        for (side, empty) in [(now, false), (empty, true)] {
            side.begin(&members);
            if (Search { empty, ..search }).run(&mut side.scratch).is_ok() {
                side.settled.clone_from(&side.scratch.placed);
            }
        }
        settled.extend(members.iter().map(|&one| (one, flavor)));
    }

    /// Those who have places, then those who look for some.
    fn wanted(&self, members: &[usize], flavor: FlavorId) -> Vec<Wanted<'a>> {
        let settled = self.settled.iter().copied().filter(|one| !members.contains(&one.0));
        let all = settled.chain(members.iter().map(|&one| (one, flavor)));
        let specs = &self.class.pod_sets;
        let all = all.filter_map(|(pod_set, flavor)| {
            let spec = specs.get(pod_set).filter(|spec| spec.count > 0)?;
            Some(Wanted { pod_set, spec, pods: spec.count, flavor, within: None, stay: &[] })
        });
        all.collect()
    }
}

/// The search for `members`; `None` if they need no places.
fn search<'s>(
    state: &'s State,
    topologies: &'s Topologies,
    all: &'s [Wanted<'s>],
    members: &[usize],
) -> Option<Search<'s>> {
    let first = all.iter().find(|one| members.contains(&one.pod_set))?;
    Search::of(state, topologies, all, first, false)
}
