//! Invariants of node replacement.

use std::collections::{BTreeMap, BTreeSet};

use engine::spec::{PodSetAdmission, PodSetSpec};
use engine::topology::{DomainAssignment, TopologyMode};
use engine::{CycleEntry, CycleOutcome, Event};
use proptest::test_runner::TestCaseError;

use crate::world::{WORKLOADS, World};

type Verdict = Result<(), TestCaseError>;

/// Admissions by Workload name.
pub(crate) type AdmittedPodSets = BTreeMap<String, Vec<PodSetAdmission>>;

/// Pods by domain.
type PodsByNode = BTreeMap<String, i64>;

impl World {
    pub(crate) fn held(&self) -> AdmittedPodSets {
        let engine = &self.player.engine;
        let names = (0..WORKLOADS).map(|index| format!("w{index}"));
        let held = names.filter_map(|name| {
            let id = engine.names().workloads.get(&name)?;
            Some((name, engine.admission(id)?.to_vec()))
        });
        held.collect()
    }

    /// A replaced Workload lost one node: its other pods keep their leaves, all pods are assigned within the
    /// required domain, and no node exceeds its capacity. A Workload that was not replaced is evicted or unchanged.
    pub(crate) fn node_replacements_keep_other_pods(
        &self,
        before: &AdmittedPodSets,
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
                return Err(self.failure(&format!("{name} had {before:?}")));
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
            let (old, new) = (pods_by_node(&before.domains), pods_by_node(&after.domains));
            // The node may have recovered and fit some of the pods again.
            let left = |(place, pods): &(&String, &i64)| new.get(*place).is_none_or(|n| n < *pods);
            lost.extend(old.iter().filter(left).map(|(place, _)| place.clone()));
            // A constraint added after admission may be violated.
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
        let apart = self.group_racks(entry, before) == Some(1)
            && self.group_racks(entry, after).is_some_and(|racks| racks > 1);
        lost.len() <= 1 && !apart
    }

    /// The number of racks that the pods of a group with a required topology use; `None` without such a group.
    fn group_racks(&self, entry: &CycleEntry, held: &[PodSetAdmission]) -> Option<usize> {
        let name = self.player.engine.names().workloads.name(entry.workload);
        let is_required = |one: &PodSetSpec| {
            let grouped = one.topology.as_ref().filter(|wish| wish.group.is_some());
            grouped.is_some_and(|wish| matches!(wish.mode, Some(TopologyMode::Required(_))))
        };
        let pod_sets = self.pod_sets(name);
        let grouped = !pod_sets.is_empty() && pod_sets.iter().all(is_required);
        // A pod set of reclaimable pods alone uses no domain.
        let used = held.iter().filter(|one| one.reclaimed < one.count);
        let domains: Vec<DomainAssignment> = used.flat_map(|one| one.domains.clone()).collect();
        grouped.then(|| tops(&domains, 0))
    }

    /// The required level of each pod set. Pods beyond whole slices, because some are reclaimable, complete no
    /// slice and may move anywhere.
    fn wishes(&self, entry: &CycleEntry, before: &[PodSetAdmission]) -> Vec<Option<usize>> {
        let name = self.player.engine.names().workloads.name(entry.workload);
        let level = |label: &str| usize::from(label != "rack");
        let wishes = self.pod_sets(name).iter().zip(before).map(|(one, held)| {
            let wish = one.topology.as_ref()?;
            let pods: i64 = pods_by_node(&held.domains).values().sum();
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

    /// Whether the pods on a node fit.
    fn has_room(&self, machine: &str) -> bool {
        let host = self.player.known.get(&("node", machine.to_owned()));
        let Some(Event::Node(_, Some(spec))) = host else {
            return false;
        };
        let gpu = self.player.engine.names().resources.get("gpu");
        let sum = |all: &[(engine::ids::ResourceId, engine::Amount)]| -> i64 {
            all.iter().filter(|one| Some(one.0) == gpu).map(|one| one.1.0).sum()
        };
        // Usage is charged with the current requests; a pod set of reclaimable pods alone uses nothing.
        let used = self.held().into_iter().flat_map(|(name, held)| {
            let specs = self.pod_sets(&name).iter().map(|one| sum(&one.requests));
            let here = held.into_iter().map(|one| {
                let pods = pods_by_node(&one.domains).remove(machine).unwrap_or(0);
                if one.reclaimed < one.count { pods } else { 0 }
            });
            here.zip(specs).map(|(pods, each)| pods * each).collect::<Vec<_>>()
        });
        used.sum::<i64>() <= sum(&spec.allocatable) - sum(&spec.foreign)
    }
}

/// Pods by node. A node is identified by its name, whatever its labels.
fn pods_by_node(domains: &[DomainAssignment]) -> PodsByNode {
    let mut pods = PodsByNode::new();
    for one in domains {
        let machine = one.values.last().map(|name| name.to_string());
        *pods.entry(machine.unwrap_or_default()).or_default() += one.count;
    }
    pods
}

/// Number of domains of a level that pods use.
fn tops(domains: &[DomainAssignment], level: usize) -> usize {
    let tops = domains.iter().map(|one| one.values.get(..=level));
    tops.collect::<BTreeSet<_>>().len()
}
