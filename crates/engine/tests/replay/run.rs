//! Plays a case: steps, releases, events, cycles.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use engine::spec::QueueEligibility;
use engine::{
    AcceptAll, CycleEntry, CycleOutcome, Engine, EngineSettings, Event, FlavorAssignment,
    PodSetFlavorAssignment, PreemptionReason, Time, explain,
};

use super::case::{
    self, Case, Change, Head, HeadDomain, HeadPodSet, HeadTarget, HeadTopology, Object,
};
use super::convert;

/// 2026-01-01T00:00:00Z.
const START: i64 = 1_767_225_600_000_000_000;
const SECOND: i64 = 1_000_000_000;

/// What came out: heads per cycle, with words beside them, and the end state.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) cycles: Vec<(u64, Vec<(Head, String)>)>,
    pub(crate) end: case::End,
}

struct Known {
    object: Object<case::WorkloadSpec>,
    eligibility: QueueEligibility,
    created_at: i64,
    queued_at: i64,
}

struct Player<'a> {
    case: &'a Case,
    engine: Engine,
    workloads: BTreeMap<String, Known>,
    releases: BTreeMap<String, (u64, QueueEligibility)>,
    policies: BTreeMap<String, String>,
    /// The latest version of every queue, and the number of its changes.
    generations: BTreeMap<String, (String, i64)>,
    step: u64,
}

/// Plays all steps of a case.
pub(crate) fn run(case: &Case, reevaluate_refused: bool) -> Result<Played> {
    let settings = EngineSettings { reevaluate_refused, ..convert::settings(case)? };
    let mut player = Player {
        case,
        engine: Engine::new(settings),
        workloads: BTreeMap::new(),
        releases: BTreeMap::new(),
        policies: BTreeMap::new(),
        generations: BTreeMap::new(),
        step: 0,
    };
    player.load()?;
    let mut cycles = Vec::new();
    for step in 0..case.expect.steps {
        player.step = step;
        player.release();
        for event in case.events.iter().filter(|event| event.step == step) {
            player.change(&event.change)?;
        }
        let heads = player.cycle()?;
        if !heads.is_empty() {
            cycles.push((step, heads));
        }
    }
    let end = player.end();
    Ok(Played { cycles, end })
}

impl Player<'_> {
    fn load(&mut self) -> Result<()> {
        let case = self.case;
        for one in &case.namespaces {
            let id = self.engine.names_mut().namespaces.intern(&one.metadata.name);
            let labels = convert::pairs(&one.metadata.labels);
            self.engine.apply(Event::Namespace(id, Some(labels)));
        }
        for one in &case.resource_flavors {
            let spec = convert::flavor(self.engine.names_mut(), one)?;
            let id = self.engine.names_mut().flavors.intern(&one.metadata.name);
            self.engine.apply(Event::Flavor(id, Some(spec)));
        }
        for one in &case.topologies {
            let id = self.engine.names_mut().topologies.intern(&one.metadata.name);
            let levels = one.spec.iter().flat_map(|spec| &spec.levels);
            let levels = levels.map(|level| level.node_label.as_str().into()).collect();
            let spec = engine::topology::TopologyLevels { levels };
            self.engine.apply(Event::Topology(id, Some(spec)));
        }
        for one in &case.nodes {
            let spec = convert::host(self.engine.names_mut(), one)?;
            let id = self.engine.names_mut().nodes.intern(&one.metadata.name);
            self.engine.apply(Event::Node(id, Some(spec)));
        }
        for one in &case.cohorts {
            self.cohort(one)?;
        }
        for one in &case.cluster_queues {
            self.queue(one)?;
        }
        for one in &case.local_queues {
            let name = format!("{}/{}", one.metadata.namespace, one.metadata.name);
            let queue =
                one.spec.as_ref().map(|spec| spec.cluster_queue.as_str()).unwrap_or_default();
            let queue = self.engine.names_mut().queues.intern(queue);
            let id = self.engine.names_mut().local_queues.intern(&name);
            let spec = engine::spec::LocalQueueInfo {
                queue,
                stopped: false,
                weight: engine::spec::FairSharingWeight::default(),
            };
            self.engine.apply(Event::LocalQueue(id, Some(spec)));
        }
        for one in &case.workloads {
            self.create(one)?;
        }
        Ok(())
    }

    fn now(&self) -> i64 {
        START + i64::try_from(self.step).unwrap_or(i64::MAX / SECOND) * SECOND
    }

    fn cohort(&mut self, object: &Object<case::CohortSpec>) -> Result<()> {
        let spec = convert::cohort(self.engine.names_mut(), object)?;
        let id = self.engine.names_mut().cohorts.intern(&object.metadata.name);
        self.engine.apply(Event::Cohort(id, Some(spec)));
        Ok(())
    }

    fn queue(&mut self, object: &Object<case::QueueSpec>) -> Result<()> {
        let mut spec = convert::queue(self.engine.names_mut(), object)?;
        spec.generation = self.generation(object);
        let id = self.engine.names_mut().queues.intern(&object.metadata.name);
        self.engine.apply(Event::ClusterQueue(id, Some(Box::new(spec))));
        let policy = object.spec.as_ref().map(|spec| spec.stop_policy.clone()).unwrap_or_default();
        let old = self.policies.insert(object.metadata.name.clone(), policy.clone());
        if policy == "HoldAndDrain" && old.as_ref() != Some(&policy) {
            self.drain(&object.metadata.name);
        }
        if matches!(policy.as_str(), "" | "None") {
            self.restart(&object.metadata.name)?;
        }
        Ok(())
    }

    /// It changes with the text of the object, even where a default is spelled out that was absent before.
    fn generation(&mut self, object: &Object<case::QueueSpec>) -> i64 {
        let text = format!("{:?}", object.spec);
        let (known, generation) = self.generations.entry(object.metadata.name.clone()).or_default();
        *generation += i64::from(*known != text);
        *known = text;
        *generation
    }

    fn drain(&mut self, queue: &str) {
        let Some(id) = self.engine.names().queues.get(queue) else {
            return;
        };
        for workload in self.engine.reserving_workloads(id) {
            if self.engine.is_evicted(workload) {
                continue;
            }
            self.engine.apply(Event::Evicting(workload));
            let name = self.engine.names().workloads.name(workload).to_owned();
            self.mark(name, QueueEligibility::AwaitsRequeue);
        }
    }

    /// Drained Workloads may be queued again.
    fn restart(&mut self, queue: &str) -> Result<()> {
        let held = self
            .workloads
            .iter()
            .filter(|(_, known)| known.eligibility == QueueEligibility::AwaitsRequeue);
        let names: Vec<String> = held.map(|(name, _)| name.clone()).collect();
        for name in names {
            let known = self.workloads.get_mut(&name).context("listed above")?;
            let spec = known.object.spec.clone().unwrap_or_default();
            let target = self.case.local_queues.iter().find(|one| {
                one.metadata.name == spec.queue_name
                    && one.metadata.namespace == known.object.metadata.namespace
            });
            let target = target.and_then(|one| one.spec.as_ref());
            if target.is_some_and(|one| one.cluster_queue == queue) {
                known.eligibility = QueueEligibility::Eligible;
                self.upsert(&name)?;
            }
        }
        Ok(())
    }

    fn mark(&mut self, name: String, eligibility: QueueEligibility) {
        let due = self.step + 1 + self.case.config.release_delay_steps;
        self.releases.entry(name).or_insert((due, eligibility));
    }

    fn release(&mut self) {
        let due = self.releases.iter().filter(|(_, (due, _))| *due <= self.step);
        let due: Vec<(String, QueueEligibility)> =
            due.map(|(name, (_, eligibility))| (name.clone(), *eligibility)).collect();
        for (name, eligibility) in due {
            self.releases.remove(&name);
            let Some(known) = self.workloads.get_mut(&name) else {
                continue;
            };
            known.eligibility = eligibility;
            let queued_at = Time(known.queued_at);
            let workload = self.engine.names_mut().workloads.intern(&name);
            self.engine.apply(Event::Released { workload, eligibility, queued_at });
        }
    }

    /// Without the gate, a Workload preempted for a borrower queues behind it until it is admitted again.
    fn preempted(&mut self, name: &str, reason: PreemptionReason) {
        let gate = self.case.config.feature_gates.get("PrioritySortingWithinCohort");
        let behind = reason == PreemptionReason::InCohortReclaimWhileBorrowing;
        let now = self.now();
        if let Some(known) = self.workloads.get_mut(name)
            && behind
            && gate == Some(&false)
        {
            known.queued_at = now + 1_000_000;
        }
    }

    fn create(&mut self, object: &Object<case::WorkloadSpec>) -> Result<()> {
        let name = object.metadata.name.clone();
        let spec = convert::workload(self.engine.names_mut(), object)?;
        let known = Known {
            object: object.clone(),
            eligibility: spec.eligibility,
            created_at: spec.queued_at.0,
            queued_at: spec.queued_at.0,
        };
        self.workloads.insert(name.clone(), known);
        let id = self.engine.names_mut().workloads.intern(&name);
        self.engine.apply(Event::Workload(id, Box::new(spec)));
        Ok(())
    }

    fn upsert(&mut self, name: &str) -> Result<()> {
        let Some(known) = self.workloads.get(name) else {
            return Ok(());
        };
        let mut spec = convert::workload(self.engine.names_mut(), &known.object)?;
        spec.eligibility = known.eligibility;
        spec.queued_at = Time(known.queued_at);
        let id = self.engine.names_mut().workloads.intern(name);
        spec.admission = self.engine.admission_spec(id);
        if let Some(admission) = &mut spec.admission {
            let names = known.object.spec.iter().flat_map(|spec| &spec.pod_sets);
            for (one, pod_set) in admission.pod_sets.iter_mut().zip(names) {
                let gone = &known.object.status.reclaimable_pods;
                let gone = gone.iter().find(|gone| gone.name == pod_set.name);
                // A partial assignment, or one after pods were reclaimed, is not released twice.
                let left = pod_set.count - gone.map_or(0, |gone| gone.count);
                one.reclaimed = one.count - one.count.min(left);
            }
        }
        self.engine.apply(Event::Workload(id, Box::new(spec)));
        Ok(())
    }

    fn change(&mut self, change: &Change) -> Result<()> {
        match change {
            Change::Create { workload } => self.create(workload),
            Change::Finish { name } | Change::Delete { name } => {
                self.releases.remove(name);
                self.workloads.remove(name);
                let id = self.engine.names_mut().workloads.intern(name);
                self.engine.apply(Event::WorkloadGone(id));
                Ok(())
            }
            Change::SetPriority { name, priority } => {
                if let Some(known) = self.workloads.get_mut(name) {
                    known.object.spec.get_or_insert_default().priority = Some(*priority);
                }
                self.upsert(name)
            }
            Change::Reclaim { name, reclaimable_pods } => {
                if let Some(known) = self.workloads.get_mut(name) {
                    known.object.status.reclaimable_pods.clone_from(reclaimable_pods);
                }
                self.upsert(name)
            }
            Change::UpdateClusterQueue { cluster_queue } => self.queue(cluster_queue),
            Change::UpdateCohort { cohort } => self.cohort(cohort),
        }
    }

    fn cycle(&mut self) -> Result<Vec<(Head, String)>> {
        let now = self.now();
        let entries = self.engine.cycle(Time(now), &mut AcceptAll).to_vec();
        let mut heads = Vec::new();
        // The objects that the cycle changed come back to the watches, by name.
        let mut touched = BTreeSet::new();
        for entry in &entries {
            if matches!(entry.outcome, CycleOutcome::Reserved { .. }) {
                let name = self.engine.names().workloads.name(entry.workload).to_owned();
                if let Some(known) = self.workloads.get_mut(&name) {
                    known.queued_at = known.created_at;
                }
                touched.insert(name);
            }
            if entry.outcome == CycleOutcome::Preempting {
                for target in &entry.targets {
                    let name = self.engine.names().workloads.name(target.workload).to_owned();
                    if !self.releases.contains_key(&name) {
                        self.preempted(&name, target.reason);
                        self.mark(name.clone(), QueueEligibility::Eligible);
                        touched.insert(name);
                    }
                }
            }
            heads.push(self.head(entry));
        }
        for name in touched {
            self.upsert(&name)?;
        }
        Ok(heads)
    }

    fn head(&self, entry: &CycleEntry) -> (Head, String) {
        let names = self.engine.names();
        let mut targets: Vec<HeadTarget> = Vec::new();
        for target in &entry.targets {
            let wl = names.workloads.name(target.workload).to_owned();
            targets.push(HeadTarget { wl, reason: target.reason.name().to_owned() });
        }
        targets.sort();
        // Without the gate the condition has one reason for everything, which the recording leaves out.
        let gate = self.case.config.feature_gates.get("UnadmittedWorkloadsObservability");
        let silent = gate == Some(&false) && entry.outcome == CycleOutcome::NoFit;
        let admitted = matches!(entry.outcome, CycleOutcome::Reserved { .. });
        let head = Head {
            wl: names.workloads.name(entry.workload).to_owned(),
            cq: names.queues.name(entry.queue).to_owned(),
            result: result(entry.outcome).to_owned(),
            borrow: entry.assignment.borrow,
            pod_sets: if admitted { self.pod_sets(entry) } else { Vec::new() },
            targets,
            reason: if silent {
                String::new()
            } else {
                explain::condition_reason(entry).to_owned()
            },
            msg: None,
            flavors: if waits_with_flavors(entry.outcome) {
                self.flavors(entry)
            } else {
                BTreeMap::new()
            },
        };
        (head, explain::condition_message(&self.engine, entry))
    }

    /// What each pod set was assigned, by name.
    fn assigned<'a>(
        &'a self,
        entry: &'a CycleEntry,
    ) -> impl Iterator<Item = (&'a PodSetFlavorAssignment, &'a str)> + 'a {
        let name = self.engine.names().workloads.name(entry.workload);
        let specs = self.workloads[name].object.spec.iter().flat_map(|spec| &spec.pod_sets);
        entry.assignment.pod_sets.iter().zip(specs.map(|spec| spec.name.as_str()))
    }

    fn flavors(&self, entry: &CycleEntry) -> BTreeMap<String, case::Map> {
        let some = self.assigned(entry).filter(|(one, _)| !one.flavor_assignments.is_empty());
        some.map(|(one, name)| (name.to_owned(), self.flavors_of(one))).collect()
    }

    fn flavors_of(&self, one: &PodSetFlavorAssignment) -> case::Map {
        let names = self.engine.names();
        let flavor = |choice: &FlavorAssignment| {
            let resource = names.resources.name(choice.resource).to_owned();
            (resource, names.flavors.name(choice.flavor).to_owned())
        };
        one.flavor_assignments.iter().map(flavor).collect()
    }

    fn pod_sets(&self, entry: &CycleEntry) -> Vec<HeadPodSet> {
        let names = self.engine.names();
        self.assigned(entry)
            .map(|(one, name)| HeadPodSet {
                name: name.to_owned(),
                count: one.count,
                flavors: self.flavors_of(one),
                usage: one
                    .flavor_assignments
                    .iter()
                    .map(|choice| {
                        let resource = names.resources.name(choice.resource).to_owned();
                        let text = explain::quantity::format_quantity(&resource, choice.amount);
                        (resource, text)
                    })
                    .collect(),
                topology: self.engine.topology_assignment(one).map(|placement| HeadTopology {
                    levels: placement.levels,
                    domains: placement
                        .domains
                        .into_iter()
                        .map(|(values, count)| HeadDomain { values, count })
                        .collect(),
                }),
            })
            .collect()
    }

    fn end(&self) -> case::End {
        let names = self.engine.names();
        let list = |ids: Vec<engine::ids::WorkloadId>| -> Vec<String> {
            ids.into_iter().map(|id| names.workloads.name(id).to_owned()).collect()
        };
        let mut end = case::End::default();
        for queue in &self.case.cluster_queues {
            let name = &queue.metadata.name;
            let Some(id) = names.queues.get(name) else {
                continue;
            };
            let one = case::QueueEnd {
                admitted: list(self.engine.reserving_workloads(id)),
                active: list(self.engine.active_workloads(id)),
                inadmissible: list(self.engine.inadmissible_workloads(id)),
                usage: self.usage(self.engine.queue_usage(id)),
            };
            end.cluster_queues.insert(name.clone(), one);
        }
        for index in 0..names.cohorts.len() {
            let id = engine::ids::CohortId::from(index);
            let usage = self.usage(self.engine.cohort_usage(id));
            if !usage.is_empty() {
                end.cohort_usage.insert(names.cohorts.name(id).to_owned(), usage);
            }
        }
        end
    }

    fn usage(
        &self,
        all: Vec<(engine::ids::FlavorId, engine::ids::ResourceId, engine::Amount)>,
    ) -> case::Map {
        let names = self.engine.names();
        let pair = |(flavor, resource, amount): (_, _, engine::Amount)| {
            let name = format!("{}/{}", names.flavors.name(flavor), names.resources.name(resource));
            (name, amount.0.to_string())
        };
        all.into_iter().map(pair).collect()
    }
}

/// Flavors are not recorded for heads that do not fit or were never evaluated.
fn waits_with_flavors(outcome: CycleOutcome) -> bool {
    matches!(
        outcome,
        CycleOutcome::NoCandidates
            | CycleOutcome::Preempting
            | CycleOutcome::Skipped
            | CycleOutcome::Deferred
    )
}

fn result(outcome: CycleOutcome) -> &'static str {
    match outcome {
        CycleOutcome::Nominated => "open",
        CycleOutcome::Reserved { .. } => "admitted",
        CycleOutcome::Preempting => "preempting",
        CycleOutcome::NoCandidates => "noCandidates",
        CycleOutcome::NoFit => "noFit",
        CycleOutcome::PreemptionGated => "gated",
        CycleOutcome::BetterVariantAdmitted => "outranked",
        CycleOutcome::Migrating { .. } | CycleOutcome::MigrationRefused => "migrating",
        CycleOutcome::Skipped => "skipped",
        CycleOutcome::Deferred => "deferred",
        CycleOutcome::NoClusterCapacity(_) => "noRoom",
        CycleOutcome::FailedCheck | CycleOutcome::NamespaceMismatch | CycleOutcome::Invalid => {
            "rejected"
        }
        CycleOutcome::NodeReplaced | CycleOutcome::NodeNotReplaced | CycleOutcome::NodesFailed => {
            "node"
        }
    }
}
