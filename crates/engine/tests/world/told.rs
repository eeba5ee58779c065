//! What is told of places in a topology is what a search finds.

use std::collections::BTreeSet;

use engine::explain::{FlavorWhy, Lack, PlaceCure, PlacesWhy};
use engine::ids::WorkloadId;
use engine::topology::Togetherness;
use engine::{Engine, Event};
use proptest::prelude::*;
use proptest::sample::select;

use crate::world::checks::Verdict;
use crate::world::{Step, WORKLOADS, World};

/// A leader and its workers, which want places together.
pub(crate) fn led() -> impl Strategy<Value = Step> {
    let wish = select(vec!["required=rack", "preferred=rack", "required=host", "preferred=host"]);
    let words =
        (0..2, 1..5_i64, 1..3_i64, 1..3_i64, wish).prop_map(|(queue, pods, gpu, leader, wish)| {
            format!("q=t{queue} gpu={leader} {wish} group=g + pods={pods} gpu={gpu} {wish} group=g")
        });
    (0..WORKLOADS, words).prop_map(|(index, words)| Step::Submit(index, words))
}

impl World {
    /// Whoever waits with one pod set, or one group of them, is told of places what a search finds, now and if everybody
    /// else were gone; and nothing is changed by asking.
    pub(crate) fn what_is_told_of_places_is_so(&mut self) -> Verdict {
        let workloads = self.player.known.values().filter_map(|event| match event {
            Event::Workload(id, _) => Some(*id),
            _ => None,
        });
        let workloads: BTreeSet<WorkloadId> = workloads.collect();
        for &id in &workloads {
            let before = self.player.engine.debug_dump();
            let Some(why) = self.player.engine.why(id) else {
                return Err(self.refute("somebody is unknown"));
            };
            if self.player.engine.debug_dump() != before {
                return Err(self.refute("somebody was charged for asking"));
            }
            for one in why.pod_sets.iter().flat_map(|one| &one.flavors) {
                self.a_search_agrees(id, one)?;
                if let PlacesWhy::Lack(lack) = &one.places {
                    self.a_lack_is_one(lack)?;
                    self.waiting_helps_unless_hopeless(id, one, lack, &workloads)?;
                    self.preferring_helps_if_said(id, one, lack)?;
                }
            }
        }
        Ok(())
    }

    fn a_search_agrees(&mut self, id: WorkloadId, one: &FlavorWhy) -> Verdict {
        let told = match &one.places {
            PlacesWhy::Found => true,
            PlacesWhy::Lack(_) => false,
            _ => return Ok(()),
        };
        if self.player.engine.finds_topology_assignment(id, one.flavor) != told {
            return Err(self.refute(&format!("a search finds otherwise than {one:?}")));
        }
        Ok(())
    }

    fn a_lack_is_one(&self, lack: &Lack) -> Verdict {
        let scarce = lack.scarce.as_ref().is_none_or(|one| one.missing.0 > 0);
        let leader = lack.is_hopeless() && !lack.most.leader || !lack.there.leader;
        if lack.fit.holds(lack.wanted) || !scarce || (lack.missing() == 0 && !leader) {
            return Err(self.refute(&format!("nothing is missing: {lack:?}")));
        }
        Ok(())
    }

    fn waiting_helps_unless_hopeless(
        &mut self,
        id: WorkloadId,
        one: &FlavorWhy,
        lack: &Lack,
        all: &BTreeSet<WorkloadId>,
    ) -> Verdict {
        let mut what_if = self.player.engine.what_if();
        for &other in all.iter().filter(|&&other| other != id) {
            what_if.apply(Event::WorkloadGone(other));
        }
        let found = places(&what_if, id, one) == Some(PlacesWhy::Found);
        drop(what_if);
        if found == lack.is_hopeless() {
            return Err(self.refute(&format!("it is {found} that emptiness helps: {lack:?}")));
        }
        Ok(())
    }

    fn preferring_helps_if_said(
        &mut self,
        id: WorkloadId,
        one: &FlavorWhy,
        lack: &Lack,
    ) -> Verdict {
        let specs = self.player.known.values().find_map(|event| match event {
            Event::Workload(known, spec) if *known == id => Some(spec),
            _ => None,
        });
        let Some(mut spec) = specs.cloned() else { return Ok(()) };
        for wish in spec.pod_sets.iter_mut().filter_map(|one| one.topology.as_mut()) {
            if let Some(Togetherness::Required(level)) = &wish.together {
                wish.together = Some(Togetherness::Preferred(level.clone()));
            }
        }
        let mut what_if = self.player.engine.what_if();
        what_if.apply(Event::Workload(id, spec));
        let found = places(&what_if, id, one);
        drop(what_if);
        let said = lack.cures.contains(&PlaceCure::Prefer);
        if found.is_some_and(|found| (found == PlacesWhy::Found) != said) {
            return Err(self.refute(&format!("it is not {said} that preferring helps: {lack:?}")));
        }
        Ok(())
    }
}

/// What is told of places in a flavor.
fn places(engine: &Engine, id: WorkloadId, one: &FlavorWhy) -> Option<PlacesWhy> {
    let why = engine.why(id)?;
    let mut all = why.pod_sets.into_iter().flat_map(|one| one.flavors);
    all.find(|found| found.flavor == one.flavor).map(|found| found.places)
}
