//! The workloads S1 to S5 and S8 at any size, and queues in balance. Source: docs/reference/performance.md §6.2.
//!
//! Each is split into the world that must exist before, and the cycles that are measured, which `cycle` runs.

use std::collections::VecDeque;

use engine::ids::WorkloadId;
use engine::spec::PreemptionPolicy;
use engine::{CycleEntry, CycleOutcome, Engine, EngineSettings, Event, FairStrategy, Time};

use crate::queue_world::{FAN_OUT, House, World};

/// Runs and measures one cycle of the engine.
pub(crate) type Cycle<'a> = dyn for<'b> FnMut(&'b mut Engine) -> &'b [CycleEntry] + 'a;

fn house(queues: usize) -> House {
    House {
        settings: EngineSettings::default(),
        queues,
        nominal: 1000,
        shared: None,
        cohort: Some(0),
        levels: 1,
        within: PreemptionPolicy::Never,
    }
}

fn filled(house: &House, per_queue: usize) -> World {
    let mut world = house.build();
    for _ in 0..per_queue {
        for queue in 0..house.queues {
            world.submit(queue, 1, 0);
        }
    }
    world
}

/// S1: this many queues of one cohort, all heads fit.
pub(crate) fn fit(queues: usize, per_queue: usize) -> World {
    filled(&house(queues), per_queue)
}

/// S2: the same with fair sharing.
pub(crate) fn fair(queues: usize, per_queue: usize) -> World {
    filled(&House { settings: shared_fairly(), ..house(queues) }, per_queue)
}

fn shared_fairly() -> EngineSettings {
    let fair = Some(vec![FairStrategy::LessThanOrEqualToFinalShare]);
    EngineSettings { fair_sharing: fair, ..EngineSettings::default() }
}

/// S3: 1,000 queues under three levels of cohorts; all quota belongs to the root cohort, so that all queues borrow.
pub(crate) fn deep(fair: bool, per_queue: usize) -> World {
    let settings = if fair { shared_fairly() } else { EngineSettings::default() };
    let plain = house(FAN_OUT.pow(3));
    filled(&House { settings, nominal: 0, cohort: Some(1_000_000), levels: 3, ..plain }, per_queue)
}

/// S8: as S1, but before every cycle one queue in ten gets another quota.
#[derive(Debug)]
pub(crate) struct Churn {
    world: World,
    queues: usize,
    round: usize,
}

impl Churn {
    pub(crate) fn new(queues: usize, per_queue: usize) -> Self {
        Self { world: fit(queues, per_queue), queues, round: 0 }
    }

    /// Changes quotas. Returns how many.
    pub(crate) fn change(&mut self) -> usize {
        self.round += 1;
        let changed = (self.round % 10..self.queues).step_by(10);
        let nominal = if (self.round / 10).is_multiple_of(2) { 1001 } else { 1000 };
        changed.map(|index| self.world.set_quota(index, nominal)).count()
    }

    /// Returns whether any Workload is left.
    pub(crate) fn decide(&mut self, cycle: &mut Cycle<'_>) -> bool {
        !cycle(&mut self.world.engine).is_empty()
    }
}

/// Runs cycles until no Workload is left.
pub(crate) fn drain(world: &mut World, cycle: &mut Cycle<'_>) {
    while !cycle(&mut world.engine).is_empty() {}
}

/// S4: queues that are full of Workloads of priority 0, as many candidates for each head.
pub(crate) fn full(queues: usize, candidates: usize) -> World {
    let nominal = i64::try_from(candidates).unwrap_or(i64::MAX);
    let within = PreemptionPolicy::LowerPriority;
    let mut world = filled(&House { nominal, cohort: None, within, ..house(queues) }, candidates);
    let mut clock = 0;
    drain(&mut world, &mut |engine| {
        clock += 1;
        engine.cycle(Time(clock), &mut engine::AcceptAll)
    });
    world
}

/// One round of S4: every queue gets a head that preempts (measured) and then replaces its target.
pub(crate) fn preempt(world: &mut World, queues: usize, priority: i64, cycle: &mut Cycle<'_>) {
    for queue in 0..queues {
        world.submit(queue, 1, priority);
    }
    let entries = cycle(&mut world.engine).iter();
    let victims: Vec<WorkloadId> =
        entries.flat_map(|entry| entry.targets.iter().map(|one| one.workload)).collect();
    for victim in victims {
        world.engine.apply(Event::WorkloadGone(victim));
    }
    world.engine.cycle(Time(LATER + priority), &mut engine::AcceptAll);
}

/// A time after all cycles that filled the queues.
const LATER: i64 = 1_000_000;

/// Sizes of Workloads in S5.
pub(crate) const SIZES: usize = 64;

/// The sizes in no particular order.
fn sizes() -> impl Iterator<Item = i64> {
    (0..SIZES).map(|index| i64::try_from(index * 37 % SIZES + 1).unwrap_or_default())
}

/// S5: full queues of one cohort, each with pending Workloads of 64 sizes. Either the queues keep their quota, or
/// it belongs to the cohort and they compete for it.
#[derive(Debug)]
pub(crate) struct InadmissibleLoad {
    world: World,
    /// Workloads with quota, in the order in which they finish.
    reserving: VecDeque<WorkloadId>,
    pub(crate) evaluated: u64,
    pub(crate) admitted: u64,
}

impl InadmissibleLoad {
    pub(crate) fn new(queues: usize, per_size: usize, compete: bool) -> Self {
        let quota: i64 = sizes().sum();
        let house = if compete {
            House { nominal: 0, cohort: Some(quota), ..house(queues) }
        } else {
            House { nominal: quota, shared: Some(0), ..house(queues) }
        };
        let mut world = house.build();
        for _ in 0..per_size {
            for queue in 0..queues {
                for size in sizes() {
                    world.submit(queue, size, 0);
                }
            }
        }
        let mut load = Self { world, reserving: VecDeque::new(), evaluated: 0, admitted: 0 };
        load.settle(&mut |engine| engine.cycle(Time(0), &mut engine::AcceptAll));
        (load.evaluated, load.admitted) = (0, 0);
        load
    }

    /// Finishes one Workload, then runs cycles until no Workload makes progress.
    pub(crate) fn finish(&mut self, cycle: &mut Cycle<'_>) {
        if let Some(done) = self.reserving.pop_front() {
            self.world.engine.apply(Event::WorkloadGone(done));
        }
        self.settle(cycle);
    }

    fn settle(&mut self, cycle: &mut Cycle<'_>) {
        while self.world.engine.has_pending_heads() {
            let entries = cycle(&mut self.world.engine);
            self.evaluated += entries.len() as u64;
            let known = self.reserving.len();
            self.reserving.extend(reserved(entries));
            self.admitted += (self.reserving.len() - known) as u64;
        }
    }
}

fn reserved(entries: &[CycleEntry]) -> impl Iterator<Item = WorkloadId> + '_ {
    let got_it = |one: &&CycleEntry| matches!(one.outcome, CycleOutcome::Reserved { .. });
    entries.iter().filter(got_it).map(|one| one.workload)
}

/// Queues in balance: each has one admitted and one pending Workload.
#[derive(Debug)]
pub(crate) struct Balance {
    world: World,
    running: Vec<WorkloadId>,
}

impl Balance {
    pub(crate) fn new(queues: usize) -> Self {
        let mut world = filled(&House { nominal: 1, ..house(queues) }, 2);
        let mut running = Vec::new();
        while world.engine.has_pending_heads() {
            running.extend(reserved(world.engine.cycle(Time(0), &mut engine::AcceptAll)));
        }
        Self { world, running }
    }

    /// Finishes all admitted Workloads and submits a new one to each queue.
    pub(crate) fn turn(&mut self, cycle: &mut Cycle<'_>) {
        for (queue, done) in std::mem::take(&mut self.running).into_iter().enumerate() {
            self.world.engine.apply(Event::WorkloadGone(done));
            self.world.submit(queue, 1, 0);
        }
        while self.world.engine.has_pending_heads() {
            self.running.extend(reserved(cycle(&mut self.world.engine)));
        }
    }
}
