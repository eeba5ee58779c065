//! What-ifs in a random world: hypothetical events made from its known objects.

use engine::explain::{FlavorAmount, SufficientChange};
use engine::ids::{QueueId, ResourceId, WorkloadId};
use engine::spec::{ClusterQueueInfo, QueueEligibility};
use engine::{AcceptAll, Amount, CycleOutcome, Event, RequeueKey, Time};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::play::SECOND;
use crate::world::World;

/// One hypothetical event: its kind, its object, and the object that it copies.
pub(crate) type Supposition = (u8, usize, usize);

/// A sequence of hypothetical events.
pub(crate) fn what_ifs() -> impl Strategy<Value = Vec<Supposition>> {
    prop::collection::vec((0..9_u8, 0..64_usize, 0..64_usize), 0..6)
}

/// Cycles in which a Workload comes to its quota.
const CYCLES: i64 = 8;

fn gets_quota(outcome: CycleOutcome) -> bool {
    matches!(
        outcome,
        CycleOutcome::Reserved { .. }
            | CycleOutcome::Preempting
            | CycleOutcome::Deferred
            | CycleOutcome::Migrating { .. }
            | CycleOutcome::MigrationRefused
    )
}

fn with_more(spec: &ClusterQueueInfo, added: &[FlavorAmount]) -> Box<ClusterQueueInfo> {
    let mut spec = spec.clone();
    for &(flavor, resource, amount) in added {
        let mut quotas = spec.groups.iter_mut().flat_map(|group| &mut group.flavors);
        let quotas = quotas.find(|one| one.flavor == flavor).expect("a flavor of the queue");
        let quota = quotas.resources.iter_mut().find(|one| one.resource == resource);
        quota.expect("a covered resource").nominal += amount;
    }
    // Another object has another generation.
    spec.generation += 1;
    Box::new(spec)
}

fn seconds(count: usize) -> Time {
    Time(i64::try_from(count).expect("few") * SECOND)
}

impl World {
    /// Applies hypothetical events with cycles between them, and checks that nothing of them stays.
    pub(crate) fn suppose(&mut self, what_ifs: &[Supposition]) -> Result<(), TestCaseError> {
        let events: Vec<Option<Event>> =
            what_ifs.iter().map(|supposition| self.supposed(*supposition)).collect();
        let before = self.player.engine.debug_dump();
        self.explain(what_ifs.len())?;
        let mut capacities = self.player.capacities.clone();
        let mut what_if = self.player.engine.what_if();
        for (at, event) in events.into_iter().enumerate() {
            match event {
                Some(event) => what_if.apply(event),
                None => {
                    let now = Time(i64::try_from(at).expect("few whims"));
                    what_if.cycle(now, &mut capacities);
                }
            }
        }
        drop(what_if);
        let after = self.player.engine.debug_dump();
        if before == after {
            return Ok(());
        }
        Err(self.failure(&format!("a what-if left traces: before\n{before}after\n{after}")))
    }

    /// Explains a Workload, and tries the changes that are named in cycles of their own.
    fn explain(&mut self, at: usize) -> Result<(), TestCaseError> {
        let known = self.player.known.values();
        let ids = known.filter_map(|event| match event {
            Event::Workload(id, _) => Some(*id),
            _ => None,
        });
        let ids: Vec<WorkloadId> = ids.collect();
        let Some(&id) = ids.get(at % ids.len().max(1)) else { return Ok(()) };
        let before = self.player.engine.debug_dump();
        let explained = self.player.engine.explain_admission(id);
        if self.player.engine.debug_dump() != before {
            return Err(self.failure("an explanation left a trace"));
        }
        for change in explained.into_iter().flat_map(|one| one.changes) {
            self.a_change_suffices(id, &change)?;
        }
        Ok(())
    }

    /// Without other pending Workloads, cycles after the change give the Workload quota, or targets.
    fn a_change_suffices(
        &mut self,
        id: WorkloadId,
        change: &SufficientChange,
    ) -> Result<(), TestCaseError> {
        let queue = self.player.engine.explain_pending(id).and_then(|one| one.queue);
        let known = self.player.known.values();
        let mut events: Vec<Event> =
            known.flat_map(|event| self.changed(event, (id, queue), change)).collect();
        if let SufficientChange::End(end) = change {
            events.push(Event::WorkloadGone(end.workload));
        }
        let mut what_if = self.player.engine.what_if();
        events.into_iter().for_each(|event| what_if.apply(event));
        let mut found = false;
        for cycle in 0..CYCLES {
            let entries = what_if.cycle(Time(cycle), &mut AcceptAll);
            found |= entries.iter().any(|one| one.workload == id && gets_quota(one.outcome));
        }
        drop(what_if);
        if found { Ok(()) } else { Err(self.failure(&format!("it does not suffice: {change:?}"))) }
    }

    /// What happens to a known object if a change that helps a Workload is made and no other one is pending.
    fn changed(
        &self,
        event: &Event,
        (id, queue): (WorkloadId, Option<QueueId>),
        change: &SufficientChange,
    ) -> Vec<Event> {
        match (event, change) {
            // A new object begins its flavor scan with the first flavor.
            (Event::Workload(own, spec), _) if *own == id => {
                let mut spec = spec.clone();
                spec.admission = None;
                if let SufficientChange::Priority(priority) = change {
                    spec.priority = *priority;
                }
                vec![Event::WorkloadGone(id), Event::Workload(id, spec)]
            }
            (Event::Workload(other, _), _) if self.player.engine.admission(*other).is_none() => {
                vec![Event::WorkloadGone(*other)]
            }
            (Event::ClusterQueue(known, Some(spec)), SufficientChange::MoreQuota(added, _))
                if queue == Some(*known) =>
            {
                vec![Event::ClusterQueue(*known, Some(with_more(spec, added)))]
            }
            _ => Vec::new(),
        }
    }

    /// An event; `None` is a cycle.
    fn supposed(&self, (kind, at, model): Supposition) -> Option<Event> {
        let known: Vec<&Event> = self.player.known.values().collect();
        let one = known.get(at % known.len().max(1)).copied()?;
        let other = known.get(model % known.len()).copied()?;
        Some(match (kind, one, other) {
            (0, Event::ClusterQueue(id, _), _) => Event::ClusterQueue(*id, None),
            (0, Event::Cohort(id, _), _) => Event::Cohort(*id, None),
            (0, Event::Flavor(id, _), _) => Event::Flavor(*id, None),
            (0, Event::Node(id, _), _) => Event::Node(*id, None),
            (0, Event::Namespace(id, _), _) => Event::Namespace(*id, None),
            (0, Event::LocalQueue(id, _), _) => Event::LocalQueue(*id, None),
            (0 | 1, Event::Workload(id, _), _) => Event::WorkloadGone(*id),
            (2, Event::Workload(id, _), _) => Event::Evicting(*id),
            (3, Event::Workload(id, _), _) => Event::ReservationWithdrawn(*id),
            (4, Event::Workload(id, _), _) => {
                let eligibility = if model % 2 == 0 {
                    QueueEligibility::Eligible
                } else {
                    QueueEligibility::AwaitsRequeue
                };
                let queued_at = Time(i64::try_from(model).expect("small"));
                Event::Released { workload: *id, eligibility, queued_at }
            }
            (5 | 6, Event::Workload(id, _), Event::Workload(_, spec)) => {
                Event::Workload(*id, spec.clone())
            }
            (5 | 6, Event::ClusterQueue(id, _), Event::ClusterQueue(_, spec)) => {
                Event::ClusterQueue(*id, spec.clone())
            }
            (5 | 6, Event::LocalQueue(id, _), Event::LocalQueue(_, spec)) => {
                Event::LocalQueue(*id, spec.clone())
            }
            (5 | 6, Event::Node(id, _), Event::Node(_, spec)) => Event::Node(*id, spec.clone()),
            (5, Event::Cohort(id, _), Event::Cohort(_, spec)) => Event::Cohort(*id, spec.clone()),
            (8, Event::Workload(id, _), _) => Event::Admitted(*id, seconds(model)),
            (8, Event::ClusterQueue(..), _) => Event::SampleUsage(seconds(model)),
            (8, Event::LocalQueue(id, _), _) => {
                let amount = Amount(i64::try_from(model).expect("small"));
                Event::ConsumedResources(*id, vec![(ResourceId(1), amount.into())], seconds(at))
            }
            (7, ..) => Event::ClusterCapacity(RequeueKey(u64::try_from(model % 4).expect("small"))),
            _ => return None,
        })
    }
}
