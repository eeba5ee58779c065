//! Conditions: one per type; the transition time changes only with the status.

use crds::meta::Condition;
pub use crds::meta::{find, find_true};

use super::message::for_condition;
use super::reason;
use super::status_stamp::StatusStamp;
use crate::time::to_seconds;

/// A condition as it is to be.
#[derive(Debug, Clone, Copy)]
pub struct NewCondition<'a> {
    /// Its type.
    pub kind: &'a str,
    /// True or false.
    pub status: bool,
    /// Its reason.
    pub reason: &'a str,
    /// Its message.
    pub message: &'a str,
}

/// Sets a condition of a Workload.
///
/// An equal condition is unchanged, including its observed generation: a new generation alone causes no write.
pub fn set(conditions: &mut Vec<Condition>, wanted: NewCondition<'_>, at: StatusStamp) {
    let NewCondition { kind, status, reason, message } = wanted;
    let new = Condition {
        last_transition_time: Some(to_seconds(at.now)),
        message: for_condition(message).into_owned(),
        observed_generation: at.generation,
        reason: reason::for_condition(reason).into_owned(),
        status: if status { "True" } else { "False" }.to_owned(),
        r#type: kind.to_owned(),
    };
    let Some(old) = conditions.iter_mut().find(|one| one.r#type == kind) else {
        conditions.push(new);
        return;
    };
    let same = (&old.status, &old.reason, &old.message) == (&new.status, &new.reason, &new.message);
    // A new generation alone would cause a write for every change of the spec.
    if same {
        return;
    }
    // Another reason or message is no transition.
    let kept = old.last_transition_time.take().filter(|_| old.status == new.status);
    *old = Condition { last_transition_time: kept.or(new.last_transition_time.clone()), ..new };
}

/// Sets a condition of a queue, a check or a worker cluster. Its observed generation is that of the spec it was decided for, so
/// that a client which waits for the condition after a change of the spec knows when it holds (kueue#15989).
pub fn set_for_generation(
    conditions: &mut Vec<Condition>,
    wanted: NewCondition<'_>,
    at: StatusStamp,
) {
    set(conditions, wanted, at);
    if let Some(one) = conditions.iter_mut().find(|one| one.r#type == wanted.kind) {
        one.observed_generation = at.generation;
    }
}

/// Sets a true condition to false and keeps its message as `Previously: ...`.
pub(super) fn reset(conditions: &mut Vec<Condition>, r#type: &str, reason: &str, at: StatusStamp) {
    let Some(old) = find_true(conditions, r#type) else {
        return;
    };
    let message = format!("Previously: {}", old.message);
    set(conditions, NewCondition { kind: r#type, status: false, reason, message: &message }, at);
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64, generation: i64) -> StatusStamp {
        StatusStamp { now: Timestamp::from_second(second).expect("a time"), generation }
    }

    #[test]
    fn a_reason_that_another_program_has_chosen_is_one_of_a_condition() {
        let mut conditions = Vec::new();
        set(
            &mut conditions,
            NewCondition { kind: "T", status: true, reason: "job finished\n!", message: "" },
            at(1, 1),
        );
        assert_eq!(conditions[0].reason, "jobfinished");
        set(
            &mut conditions,
            NewCondition { kind: "T", status: true, reason: "job finished!", message: "" },
            at(2, 2),
        );
        assert_eq!(conditions[0].observed_generation, 1, "nothing is new");
    }

    #[test]
    fn a_condition_of_a_queue_follows_the_generation_and_keeps_its_transition_time() {
        let mut conditions = Vec::new();
        let wanted = NewCondition { kind: "T", status: true, reason: "Ready", message: "" };
        set_for_generation(&mut conditions, wanted, at(1, 1));
        set_for_generation(&mut conditions, wanted, at(2, 2));
        assert_eq!((conditions[0].observed_generation, seconds(&conditions)), (2, Some(1)));
        let before = conditions.clone();
        set_for_generation(&mut conditions, wanted, at(3, 2));
        assert_eq!(conditions, before, "one write per generation");
    }

    fn seconds(conditions: &[Condition]) -> Option<i64> {
        let time = find(conditions, "T")?.last_transition_time.as_ref()?;
        Some(time.0.as_second())
    }

    #[test]
    fn a_reset_condition_keeps_its_message() {
        let mut conditions = Vec::new();
        reset(&mut conditions, "T", "R", at(1, 1));
        assert_eq!(conditions, []);
        set(
            &mut conditions,
            NewCondition { kind: "T", status: true, reason: "Why", message: "because" },
            at(1, 1),
        );
        reset(&mut conditions, "T", "R", at(2, 1));
        reset(&mut conditions, "T", "R", at(3, 1));
        let one = find(&conditions, "T").expect("a condition");
        assert_eq!(
            (&*one.status, &*one.reason, &*one.message),
            ("False", "R", "Previously: because")
        );
        assert_eq!(seconds(&conditions), Some(2));
    }

    proptest! {
        #[test]
        fn the_transition_time_is_that_of_the_last_status_change(
            steps in prop::collection::vec((any::<bool>(), 0..3_u8, 0..3_i64), 1..12),
        ) {
            let (mut conditions, mut last, mut since) = (Vec::new(), None, 0);
            for (second, (status, reason, generation)) in (1_i64..).zip(steps) {
                let before = conditions.clone();
                set(&mut conditions, NewCondition { kind: "T", status, reason: &format!("R{reason}"), message: "" }, at(second, generation));
                if last.map(|(status, _)| status) != Some(status) {
                    since = second;
                }
                prop_assert_eq!(seconds(&conditions), Some(since));
                prop_assert_eq!(conditions == before, last == Some((status, reason)));
                last = Some((status, reason));
            }
        }
    }
}
