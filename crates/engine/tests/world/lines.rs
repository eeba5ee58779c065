//! Generators of the lines of a random world: three cohorts that may be nested, five queues, two gpu flavors and
//! one cpu flavor.

use proptest::prelude::*;
use proptest::sample::select;

use crate::world::{WORKLOADS, WorldStep};

/// Queues of a world.
pub(crate) const QUEUES: usize = 5;
const COHORTS: usize = 3;

/// A flag or nothing.
fn flag(word: &'static str, one_in: u32) -> impl Strategy<Value = String> {
    prop::bool::weighted(1.0 / f64::from(one_in))
        .prop_map(move |yes| if yes { format!(" {word}") } else { String::new() })
}

fn limit(word: &'static str) -> impl Strategy<Value = String> {
    prop::option::weighted(0.3, 0..4_i64)
        .prop_map(move |limit| limit.map(|one| format!(",{word}:{one}")).unwrap_or_default())
}

fn quota(slot: &'static str) -> impl Strategy<Value = String> {
    (0..6_i64, limit("borrow"), limit("lend"))
        .prop_map(move |(nominal, borrow, lend)| format!(" {slot}={nominal}{borrow}{lend}"))
}

fn quotas() -> impl Strategy<Value = String> {
    let gpus = (quota("gpu/spot"), quota("gpu/h100")).prop_map(|(spot, h100)| spot + &h100);
    let cpus = prop::option::weighted(0.5, quota("cpu/x86"));
    (gpus, cpus)
        .prop_map(|(gpus, cpus)| gpus + &cpus.map(|cpus| format!(" +{cpus}")).unwrap_or_default())
}

fn weight() -> impl Strategy<Value = &'static str> {
    select(vec!["", "", " weight=0", " weight=0.5", " weight=3"])
}

/// The line of a cohort. Its parent has a smaller number, so that there are no cycles.
fn cohort() -> impl Strategy<Value = String> {
    let quotas = prop::option::weighted(0.5, quotas()).prop_map(Option::unwrap_or_default);
    (0..COHORTS, 0..COHORTS, quotas, weight()).prop_map(|(own, parent, quotas, weight)| {
        let parent = if parent < own { format!(" parent=c{parent}") } else { String::new() };
        format!("cohort c{own}{parent}{weight}{quotas}")
    })
}

/// Preemption policies of the queues.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PreemptionPolicies {
    /// Anything.
    Free,
    /// Preemption only within a queue.
    WithinQueue,
    /// Only the first queue preempts, and only from others.
    OnePreemptor,
}

fn policy_words(own: usize, policies: PreemptionPolicies) -> BoxedStrategy<String> {
    let policy = || select(vec!["lower", "newer", "any"]);
    match policies {
        PreemptionPolicies::WithinQueue => flag("within=lower", 2).boxed(),
        PreemptionPolicies::OnePreemptor if own == 0 => Just(" reclaim=any".to_owned()).boxed(),
        PreemptionPolicies::OnePreemptor => Just(String::new()).boxed(),
        PreemptionPolicies::Free => {
            let within = prop::option::of(select(vec!["lower", "newer"]));
            let reclaim = prop::option::of(policy());
            let say = |key: &'static str| {
                move |one: Option<&str>| one.map(|one| format!(" {key}={one}")).unwrap_or_default()
            };
            (
                within.prop_map(say("within")),
                reclaim.prop_map(say("reclaim")),
                flag("borrow-within-cohort=1", 4),
            )
                .prop_map(|(within, reclaim, borrow)| within + &reclaim + &borrow)
                .boxed()
        }
    }
}

/// The line of the queue with this number.
pub(crate) fn queue(own: usize, policies: PreemptionPolicies) -> impl Strategy<Value = String> {
    let cohort = prop::option::weighted(0.8, 0..COHORTS)
        .prop_map(|one| one.map(|one| format!(" cohort=c{one}")).unwrap_or_default());
    let scan = (flag("borrow-next", 3), flag("preempt-stops", 3), flag("prefer-preempting", 4))
        .prop_map(|(borrow, preempt, prefer)| borrow + &preempt + &prefer);
    let flags = (flag("strict", 4), flag("stopped", 12), flag("usage-based", 4), weight());
    let flags = (flags, select(vec!["", "", " last=spot", " last=h100"])).prop_map(
        |((strict, stopped, by_usage, weight), last)| strict + &stopped + &by_usage + weight + last,
    );
    (cohort, policy_words(own, policies), scan, flags, quotas()).prop_map(
        move |(cohort, policies, scan, flags, quotas)| {
            format!("cq q{own}{cohort}{policies}{scan}{flags}{quotas}")
        },
    )
}

/// All objects of a world.
pub(crate) fn objects(policies: PreemptionPolicies) -> impl Strategy<Value = Vec<String>> {
    let queues: Vec<_> = (0..QUEUES).map(|own| queue(own, policies)).collect();
    (prop::collection::vec(cohort(), 0..4), queues)
        .prop_map(|(cohorts, queues)| cohorts.into_iter().chain(queues).collect())
}

/// The request of a Workload.
pub(crate) fn request(shrinks: bool) -> impl Strategy<Value = String> {
    let gpus = (1..4_i64, 1..4_i64, prop::bool::ANY).prop_map(move |(pods, gpu, min)| {
        let min = if shrinks && min && pods > 1 { " min=1" } else { "" };
        format!(" pods={pods} gpu={gpu}{min}")
    });
    let cpus = prop::option::weighted(0.2, 1..4_i64)
        .prop_map(|one| one.map(|one| format!(" cpu={one}")).unwrap_or_default());
    // Variants of one queue belong to one group.
    let own = select(vec!["spot", "h100", "h100,spot", "x86"]);
    let variant = prop::option::weighted(0.3, own);
    let rest = (flag("tolerate=spot", 2), flag("gated", 5))
        .prop_map(|(tolerates, preemption_gated)| tolerates + &preemption_gated);
    (0..QUEUES, gpus, cpus, 0..3_i64, rest, variant).prop_map(
        |(queue, gpus, cpus, priority, rest, variant)| {
            let variant = variant.map(|own| format!(" family=f{queue} allowed={own},x86"));
            let variant = variant.unwrap_or_default();
            format!("q=q{queue}{gpus}{cpus} prio={priority}{rest}{variant}")
        },
    )
}

/// Steps of Workloads.
pub(crate) fn step(shrinks: bool) -> BoxedStrategy<WorldStep> {
    prop_oneof![
        6 => (0..WORKLOADS, request(shrinks)).prop_map(|(index, words)| WorldStep::Submit(index, words)),
        2 => (0..WORKLOADS).prop_map(WorldStep::Finish),
        1 => (0..WORKLOADS).prop_map(WorldStep::Evict),
        1 => (0..WORKLOADS).prop_map(WorldStep::Fail),
        1 => (0..WORKLOADS).prop_map(WorldStep::Reclaim),
        1 => (0..WORKLOADS, 0..3_i64).prop_map(|(index, priority)| WorldStep::Priority(index, priority)),
        2 => prop::bool::weighted(0.2).prop_map(WorldStep::Release),
        1 => Just(WorldStep::Resume),
        6 => Just(WorldStep::Cycle),
    ]
    .boxed()
}

/// Changes of the configuration.
pub(crate) fn configuration_change() -> BoxedStrategy<WorldStep> {
    let lines = prop_oneof![
        4 => (0..QUEUES).prop_flat_map(|own| queue(own, PreemptionPolicies::Free)),
        4 => cohort(),
        1 => (0..COHORTS).prop_map(|own| format!("delete cohort c{own}")),
        1 => (0..QUEUES).prop_map(|own| format!("delete cq q{own}")),
        1 => select(vec!["flavor spot taint=spot:yes", "flavor spot", "delete flavor x86", "flavor x86"])
            .prop_map(str::to_owned),
        1 => select(vec!["namespace ns", "delete namespace ns"]).prop_map(str::to_owned),
        2 => (0..QUEUES, 0..QUEUES, flag("stopped", 3))
            .prop_map(|(own, queue, stopped)| format!("lq q{own} cq=q{queue}{stopped}")),
        1 => (select(vec!["spot", "h100"]), 0..20_i64)
            .prop_map(|(flavor, capacity)| format!("capacity {flavor}={capacity}")),
    ];
    lines.prop_map(WorldStep::Say).boxed()
}

/// A line of settings.
pub(crate) fn settings() -> impl Strategy<Value = String> {
    let fair = select(vec!["", "", " fair=final", " fair=initial", " fair=final,initial"]);
    let places =
        (flag("balanced-placement", 3), flag("no-fail-fast", 3), flag("preferred-affinity", 2));
    let places =
        (places, flag("elastic-tas", 2)).prop_map(|((balanced, patient, prefers), elastic)| {
            balanced + &patient + &prefers + &elastic
        });
    let gates = select(vec![
        "",
        " orchestrated-preemption",
        " concurrent-admission",
        " concurrent-admission",
    ]);
    (
        fair,
        flag("no-partial", 4),
        flag("no-scheduling-hashes", 6),
        flag("no-scan-progress", 6),
        places,
        gates,
    )
        .prop_map(|(fair, partial, shapes, progress, places, gates)| {
            format!("settings{fair}{partial}{shapes}{progress}{places}{gates}")
        })
}
