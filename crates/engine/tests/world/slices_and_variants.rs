//! Related Workloads: slices that replace each other, and variants of one group, in two queues.

use proptest::prelude::*;
use proptest::sample::select;

use crate::world::{WORKLOADS, WorldStep};

/// Their steps.
pub(crate) fn slice_or_variant() -> impl Strategy<Value = WorldStep> {
    let some = 0..WORKLOADS / 2;
    let pods = (1..4_i64, 0..2_i64, select(vec!["", "", " gated"]));
    let words = move |(pods, priority, preemption_gated): (i64, i64, &str)| {
        format!("pods={pods} gpu=1 prio={priority} tolerate=spot{preemption_gated}")
    };
    // A slice replaces one with a smaller number, so that there are no cycles.
    let older = (1..WORKLOADS / 2).prop_flat_map(|index| (Just(index), 0..index));
    let wish = select(vec!["q0", "q1", "t0 unconstrained", "t0 unconstrained", "t0 slice=node:2"]);
    let slice = (older, wish, pods.clone());
    let slice = slice.prop_map(move |((index, old), wish, asked)| {
        WorldStep::Submit(index, format!("q={wish} {} replaces=w{old}", words(asked)))
    });
    let variant = (some.clone(), 0..2_usize, select(vec!["spot", "h100", "h100,spot"]), pods);
    let variant = variant.prop_map(move |(index, queue, own, asked)| {
        WorldStep::Submit(index, format!("q=q{queue} {} family=f allowed={own}", words(asked)))
    });
    prop_oneof![
        4 => slice,
        4 => variant,
        1 => some.clone().prop_map(WorldStep::Finish),
        1 => some.clone().prop_map(WorldStep::Evict),
        1 => some.clone().prop_map(WorldStep::Fail),
        1 => some.prop_map(WorldStep::Reclaim),
        2 => Just(WorldStep::Release(false)),
        6 => Just(WorldStep::Cycle),
    ]
}
