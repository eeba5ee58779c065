//! Topology explanations match what a search finds.

use std::collections::BTreeSet;

use engine::explain::{
    FlavorExplanation, PlacementRemedy, PlacementShortfall, TopologyExplanation,
};
use engine::ids::WorkloadId;
use engine::topology::TopologyMode;
use engine::{Engine, Event};
use proptest::prelude::*;
use proptest::sample::select;

use crate::world::checks::Verdict;
use crate::world::{WORKLOADS, World, WorldStep};

/// A leader and its workers with a topology constraint.
pub(crate) fn leader_and_workers() -> impl Strategy<Value = WorldStep> {
    let wish = select(vec!["required=rack", "preferred=rack", "required=node", "preferred=node"]);
    let words =
        (0..2, 1..5_i64, 1..3_i64, 1..3_i64, wish).prop_map(|(queue, pods, gpu, leader, wish)| {
            format!("q=t{queue} gpu={leader} {wish} group=g + pods={pods} gpu={gpu} {wish} group=g")
        });
    (0..WORKLOADS, words).prop_map(|(index, words)| WorldStep::Submit(index, words))
}

impl World {
    /// Explanations of Workloads with one pod set, or one group, match a search with current usage and one without
    /// other Workloads; explaining changes nothing.
    pub(crate) fn topology_explanations_match_searches(&mut self) -> Verdict {
        let workloads = self.player.known.values().filter_map(|event| match event {
            Event::Workload(id, _) => Some(*id),
            _ => None,
        });
        let workloads: BTreeSet<WorkloadId> = workloads.collect();
        for &id in &workloads {
            let before = self.player.engine.debug_dump();
            let Some(why) = self.player.engine.explain_pending(id) else {
                return Err(self.failure("a Workload is unknown"));
            };
            if self.player.engine.debug_dump() != before {
                return Err(self.failure("an explanation changed the state"));
            }
            for one in why.pod_sets.iter().flat_map(|one| &one.flavors) {
                self.a_search_agrees(id, one)?;
                if let TopologyExplanation::Shortfall(shortfall) = &one.topology {
                    self.a_shortfall_is_real(shortfall)?;
                    self.a_release_helps_unless_the_maximum_is_exceeded(
                        id, one, shortfall, &workloads,
                    )?;
                    self.preferring_helps_if_listed(id, one, shortfall)?;
                }
            }
        }
        Ok(())
    }

    fn a_search_agrees(&mut self, id: WorkloadId, one: &FlavorExplanation) -> Verdict {
        let explanations = match &one.topology {
            TopologyExplanation::Fits => true,
            TopologyExplanation::Shortfall(_) => false,
            _ => return Ok(()),
        };
        if self.player.engine.finds_topology_assignment(id, one.flavor) != explanations {
            return Err(self.failure(&format!("a search finds otherwise than {one:?}")));
        }
        Ok(())
    }

    fn a_shortfall_is_real(&self, shortfall: &PlacementShortfall) -> Verdict {
        let missing = shortfall.limiting_resource.as_ref().is_none_or(|one| one.missing.0 > 0);
        let leader = shortfall.exceeds_maximum() && !shortfall.maximum.leader
            || !shortfall.fit_in_domain.leader;
        if shortfall.fit.fits_all(shortfall.requested)
            || !missing
            || (shortfall.missing() == 0 && !leader)
        {
            return Err(self.failure(&format!("nothing is missing: {shortfall:?}")));
        }
        Ok(())
    }

    fn a_release_helps_unless_the_maximum_is_exceeded(
        &mut self,
        id: WorkloadId,
        one: &FlavorExplanation,
        shortfall: &PlacementShortfall,
        all: &BTreeSet<WorkloadId>,
    ) -> Verdict {
        let mut what_if = self.player.engine.what_if();
        for &other in all.iter().filter(|&&other| other != id) {
            what_if.apply(Event::WorkloadGone(other));
        }
        let found = places(&what_if, id, one) == Some(TopologyExplanation::Fits);
        drop(what_if);
        if found == shortfall.exceeds_maximum() {
            return Err(self.failure(&format!("it is {found} that emptiness helps: {shortfall:?}")));
        }
        Ok(())
    }

    fn preferring_helps_if_listed(
        &mut self,
        id: WorkloadId,
        one: &FlavorExplanation,
        shortfall: &PlacementShortfall,
    ) -> Verdict {
        let specs = self.player.known.values().find_map(|event| match event {
            Event::Workload(known, spec) if *known == id => Some(spec),
            _ => None,
        });
        let Some(mut spec) = specs.cloned() else { return Ok(()) };
        for wish in spec.pod_sets.iter_mut().filter_map(|one| one.topology.as_mut()) {
            if let Some(TopologyMode::Required(level)) = &wish.mode {
                wish.mode = Some(TopologyMode::Preferred(level.clone()));
            }
        }
        let mut what_if = self.player.engine.what_if();
        what_if.apply(Event::Workload(id, spec));
        let found = places(&what_if, id, one);
        drop(what_if);
        let said = shortfall.remedies.contains(&PlacementRemedy::PreferInsteadOfRequire);
        if found.is_some_and(|found| (found == TopologyExplanation::Fits) != said) {
            return Err(
                self.failure(&format!("it is not {said} that preferring helps: {shortfall:?}"))
            );
        }
        Ok(())
    }
}

/// The topology explanation of a flavor.
fn places(engine: &Engine, id: WorkloadId, one: &FlavorExplanation) -> Option<TopologyExplanation> {
    let why = engine.explain_pending(id)?;
    let mut all = why.pod_sets.into_iter().flat_map(|one| one.flavors);
    all.find(|found| found.flavor == one.flavor).map(|found| found.topology)
}
