//! Workloads that belong together: slices that replace each other, and variants of one family, in two queues.

use proptest::prelude::*;
use proptest::sample::select;

use crate::world::{Step, WORKLOADS};

/// What they do.
pub(crate) fn kin() -> impl Strategy<Value = Step> {
    let some = 0..WORKLOADS / 2;
    let pods = (1..4_i64, 0..2_i64, select(vec!["", "", " gated"]));
    let words = move |(pods, priority, preemption_gated): (i64, i64, &str)| {
        format!("pods={pods} gpu=1 prio={priority} tolerate=spot{preemption_gated}")
    };
    // Rings would only be a mistake: everybody replaces somebody with a smaller number.
    let older = (1..WORKLOADS / 2).prop_flat_map(|index| (Just(index), 0..index));
    let wish = select(vec!["q0", "q1", "t0 unconstrained", "t0 unconstrained", "t0 slice=node:2"]);
    let slice = (older, wish, pods.clone());
    let slice = slice.prop_map(move |((index, old), wish, asked)| {
        Step::Submit(index, format!("q={wish} {} replaces=w{old}", words(asked)))
    });
    let variant = (some.clone(), 0..2_usize, select(vec!["spot", "h100", "h100,spot"]), pods);
    let variant = variant.prop_map(move |(index, queue, own, asked)| {
        Step::Submit(index, format!("q=q{queue} {} family=f allowed={own}", words(asked)))
    });
    prop_oneof![
        4 => slice,
        4 => variant,
        1 => some.clone().prop_map(Step::Finish),
        1 => some.clone().prop_map(Step::Evict),
        1 => some.clone().prop_map(Step::Fail),
        1 => some.prop_map(Step::Reclaim),
        2 => Just(Step::Release(false)),
        6 => Just(Step::Cycle),
    ]
}
