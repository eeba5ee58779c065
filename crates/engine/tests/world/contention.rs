//! Worlds with many Workloads of few equivalence classes and little quota, so that the same refusals recur.

use engine::ids::QueueId;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestCaseError;

use crate::world::{WORKLOADS, World, WorldStep};

/// Three queues, most of them under one cohort of one or two levels.
pub(crate) fn contended_queues() -> impl Strategy<Value = Vec<String>> {
    let cohorts = (quota(), select(vec!["", " parent=c0"])).prop_map(|(quota, parent)| {
        vec!["cohort c0".to_owned() + &quota, format!("cohort c1{parent}")]
    });
    let queues: Vec<_> = (0..3).map(queue).collect();
    (cohorts, queues).prop_map(|(mut cohorts, queues)| {
        cohorts.extend(queues);
        cohorts
    })
}

fn quota() -> impl Strategy<Value = String> {
    let limit = |word: &'static str| {
        prop::option::weighted(0.4, 0..3_i64)
            .prop_map(move |one| one.map(|one| format!(",{word}:{one}")).unwrap_or_default())
    };
    let quota = |slot: &'static str| {
        (0..4_i64, limit("borrow"), limit("lend"))
            .prop_map(move |(own, borrow, lend)| format!(" {slot}={own}{borrow}{lend}"))
    };
    let cpu = prop::option::weighted(0.4, quota("cpu/x86"))
        .prop_map(|cpu| cpu.map(|cpu| format!(" +{cpu}")).unwrap_or_default());
    (quota("gpu/h100"), cpu).prop_map(|(gpu, cpu)| gpu + &cpu)
}

fn queue(own: usize) -> impl Strategy<Value = String> {
    let cohort = select(vec![" cohort=c0", " cohort=c0", " cohort=c1", ""]);
    let within = select(vec!["", "", " within=lower", " within=newer"]);
    let reclaim = select(vec![
        "",
        "",
        " reclaim=any",
        " reclaim=lower",
        " reclaim=any borrow-within-cohort=1",
    ]);
    (cohort, within, reclaim, quota()).prop_map(move |(cohort, within, reclaim, quota)| {
        format!("cq q{own}{cohort}{within}{reclaim}{quota}")
    })
}

/// Mostly Workloads that are submitted and finish.
pub(crate) fn contention_step() -> impl Strategy<Value = WorldStep> {
    let cpu = select(vec!["", "", " cpu=1", " cpu=2"]);
    let words = (0..3, 1..4_i64, cpu, 0..2_i64);
    let words = words.prop_map(|(queue, gpu, cpu, priority)| {
        format!("q=q{queue} pods=1 gpu={gpu}{cpu} prio={priority}")
    });
    prop_oneof![
        8 => (0..WORKLOADS, words).prop_map(|(index, words)| WorldStep::Submit(index, words)),
        3 => (0..WORKLOADS).prop_map(WorldStep::Finish),
        1 => (0..WORKLOADS, 0..2_i64).prop_map(|(index, priority)| WorldStep::Priority(index, priority)),
        1 => Just(WorldStep::Release(false)),
        10 => Just(WorldStep::Cycle),
    ]
}

impl World {
    /// Both worlds have the same pending and inadmissible Workloads in the same order.
    pub(crate) fn has_the_same_pending_workloads(&self, other: &Self) -> Result<(), TestCaseError> {
        for queue in 0..self.player.engine.names().queues.len() {
            let of = |world: &Self| {
                let (engine, id) = (&world.player.engine, QueueId::from(queue));
                (engine.active_workloads(id), engine.inadmissible_workloads(id))
            };
            if of(self) != of(other) {
                return Err(self.failure(&format!("others wait than in\n{}", other.player.trace)));
            }
        }
        Ok(())
    }
}
