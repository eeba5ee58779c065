//! What-ifs in a random world: hypothetical events made from its known objects.

use engine::ids::ResourceId;
use engine::spec::QueueEligibility;
use engine::{Amount, Event, RequeueKey, Time};
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

fn seconds(count: usize) -> Time {
    Time(i64::try_from(count).expect("few") * SECOND)
}

impl World {
    /// Applies hypothetical events with cycles between them, and checks that nothing of them stays.
    pub(crate) fn suppose(&mut self, what_ifs: &[Supposition]) -> Result<(), TestCaseError> {
        let events: Vec<Option<Event>> =
            what_ifs.iter().map(|supposition| self.supposed(*supposition)).collect();
        let before = self.player.engine.debug_dump();
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
