//! What holds when a machine under a holder is replaced.

use std::collections::{BTreeMap, BTreeSet};

use engine::spec::{PodSetAdmission, PodSetSpec};
use engine::topology::{DomainAssignment, TopologyMode};
use engine::{CycleEntry, CycleOutcome, Event};
use proptest::test_runner::TestCaseError;

use crate::world::{WORKLOADS, World};

type Verdict = Result<(), TestCaseError>;

/// What every holder holds, by name.
pub(crate) type Held = BTreeMap<String, Vec<PodSetAdmission>>;

/// Pods by place.
type TopologyTiming = BTreeMap<String, i64>;

impl World {
    pub(crate) fn held(&self) -> Held {
        let engine = &self.player.engine;
        let names = (0..WORKLOADS).map(|index| format!("w{index}"));
        let held = names.filter_map(|name| {
            let id = engine.names().workloads.get(&name)?;
            Some((name, engine.admission(id)?.to_vec()))
        });
        held.collect()
    }

    /// Who was replaced lost one machine; the others of its pods stay, all of them have a place again, in the domain that
    /// is required, and no machine holds more than it has for it. Who could not be replaced goes, or stays as it was.
    pub(crate) fn replacements_keep_their_word(
        &self,
        before: &Held,
        entries: &[CycleEntry],
    ) -> Verdict {
        let after = self.held();
        for entry in entries {
            let name = self.player.engine.names().workloads.name(entry.workload);
            let kept = match entry.outcome {
                CycleOutcome::NodeReplaced => self.moved_one(entry, &before[name], &after[name]),
                CycleOutcome::NodesFailed => {
                    self.player.engine.is_evicted(entry.workload) && before[name] == after[name]
                }
                CycleOutcome::NodeNotReplaced => before[name] == after[name],
                _ => true,
            };
            if !kept {
                return Err(self.refute(&format!("{name} had {before:?}")));
            }
        }
        Ok(())
    }

    fn moved_one(
        &self,
        entry: &CycleEntry,
        before: &[PodSetAdmission],
        after: &[PodSetAdmission],
    ) -> bool {
        let mut lost: Vec<String> = Vec::new();
        let wishes = self.wishes(entry, before);
        for ((before, after), required) in before.iter().zip(after).zip(&wishes) {
            if before.domains == after.domains {
                continue;
            }
            let (old, new) = (places(&before.domains), places(&after.domains));
            // The machine may be well again, and have room for some of those who stood there.
            let left = |(place, pods): &(&String, &i64)| new.get(*place).is_none_or(|n| n < *pods);
            lost.extend(old.iter().filter(left).map(|(place, _)| place.clone()));
            // Who asks for it only now may stand apart.
            let apart = required.is_some_and(|level| {
                tops(&before.domains, level) == 1 && tops(&after.domains, level) > 1
            });
            let complete = old.values().sum::<i64>() == new.values().sum::<i64>();
            let fits =
                new.keys().filter(|place| !old.contains_key(*place)).all(|one| self.has_room(one));
            if !complete || !fits || apart {
                return false;
            }
        }
        lost.dedup();
        lost.len() <= 1
    }

    /// The level that is required of each pod set. Where pods do not fill their slices, because some have finished, those
    /// who move complete none, and may stand anywhere.
    fn wishes(&self, entry: &CycleEntry, before: &[PodSetAdmission]) -> Vec<Option<usize>> {
        let name = self.player.engine.names().workloads.name(entry.workload);
        let level = |label: &str| usize::from(label != "rack");
        let wishes = self.pod_sets(name).iter().zip(before).map(|(one, held)| {
            let wish = one.topology.as_ref()?;
            let pods: i64 = places(&held.domains).values().sum();
            let whole = wish.slices.iter().all(|(_, size)| pods % size == 0);
            match &wish.mode {
                Some(TopologyMode::Required(label)) if whole => Some(level(label)),
                _ => None,
            }
        });
        wishes.collect()
    }

    fn pod_sets(&self, name: &str) -> &[PodSetSpec] {
        match self.player.known.get(&("wl", name.to_owned())) {
            Some(Event::Workload(_, spec)) => &spec.pod_sets,
            _ => &[],
        }
    }

    /// Whether what stands on a machine fits on it.
    fn has_room(&self, machine: &str) -> bool {
        let host = self.player.known.get(&("node", machine.to_owned()));
        let Some(Event::Node(_, Some(spec))) = host else {
            return false;
        };
        let gpu = self.player.engine.names().resources.get("gpu");
        let sum = |all: &[(engine::ids::ResourceId, engine::Amount)]| -> i64 {
            all.iter().filter(|one| Some(one.0) == gpu).map(|one| one.1.0).sum()
        };
        // Places are charged with what is asked for now.
        let used = self.held().into_iter().flat_map(|(name, held)| {
            let specs = self.pod_sets(&name).iter().map(|one| sum(&one.requests));
            let here =
                held.into_iter().map(|one| places(&one.domains).remove(machine).unwrap_or(0));
            here.zip(specs).map(|(pods, each)| pods * each).collect::<Vec<_>>()
        });
        used.sum::<i64>() <= sum(&spec.allocatable) - sum(&spec.foreign)
    }
}

/// Pods by machine. A machine is known by its name, wherever its labels put it.
fn places(domains: &[DomainAssignment]) -> TopologyTiming {
    let mut places = TopologyTiming::new();
    for one in domains {
        let machine = one.values.last().map(|name| name.to_string());
        *places.entry(machine.unwrap_or_default()).or_default() += one.count;
    }
    places
}

/// In how many domains of a level they stand.
fn tops(domains: &[DomainAssignment], level: usize) -> usize {
    let tops = domains.iter().map(|one| one.values.get(..=level));
    tops.collect::<BTreeSet<_>>().len()
}
