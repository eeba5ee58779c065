//! Pauses between evaluations of a large group of pods.
//!
//! An evaluation looks at every member, and every change of a member asks for one: thousands of members that start within seconds
//! would cost the square of their number. So a large group rests for as long as its evaluation takes, more or less, and what
//! changes meanwhile is evaluated together. A small group never rests.

use jiff::{SignedDuration, Timestamp};
use runtime::watch::Key;

use crate::control::key_map::KeyMap;

/// Groups of fewer members do not rest.
const LARGE: usize = 100;

/// Some times what an evaluation costs per member.
const PER_MEMBER: SignedDuration = SignedDuration::from_micros(25);

/// The longest pause, whatever the number of members.
const LONGEST: SignedDuration = SignedDuration::from_secs(1);

/// Until when groups rest.
#[derive(Debug, Default)]
pub(super) struct GroupPauses(KeyMap<Key, Timestamp>);

impl GroupPauses {
    /// Until when a group rests; `None` if it is evaluated now.
    pub(super) fn rests_until(&self, group: &Key, now: Timestamp) -> Option<Timestamp> {
        let until = self.0.get(group).copied().filter(|until| now < *until)?;
        // The clock may have been set back.
        (until.duration_since(now) <= LONGEST).then_some(until)
    }

    /// Records an evaluation of a group with so many members.
    pub(super) fn evaluated(&mut self, group: &Key, members: usize, now: Timestamp) {
        let pause = i32::try_from(members).ok().and_then(|n| PER_MEMBER.checked_mul(n));
        let until = now.checked_add(pause.unwrap_or(LONGEST).min(LONGEST)).ok();
        match until.filter(|_| members >= LARGE) {
            Some(until) => self.0.insert(group.clone(), until),
            None => self.0.remove(group),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

    fn group() -> Key {
        Key { namespace: Some("ns".into()), name: "g".into() }
    }

    /// For how many milliseconds a group of so many members rests.
    fn pause(members: usize) -> i128 {
        let mut pauses = GroupPauses::default();
        pauses.evaluated(&group(), members, NOW);
        pauses.rests_until(&group(), NOW).map_or(0, |until| until.duration_since(NOW).as_millis())
    }

    #[test]
    fn large_groups_rest_in_proportion_to_their_size() {
        let sizes = [0, 99, 200, 2_000, 40_000, 1_000_000];
        assert_eq!(sizes.map(pause), [0, 0, 5, 50, 1_000, 1_000]);
    }

    #[test]
    fn a_group_is_evaluated_after_its_pause_when_it_is_small_and_when_the_clock_is_set_back() {
        let mut pauses = GroupPauses::default();
        pauses.evaluated(&group(), 2_000, NOW);
        let later = |millis| NOW + SignedDuration::from_millis(millis);
        assert!(pauses.rests_until(&group(), later(49)).is_some());
        assert_eq!(pauses.rests_until(&group(), later(50)), None);
        assert_eq!(pauses.rests_until(&group(), later(-60_000)), None);
        pauses.evaluated(&group(), 2, NOW);
        assert_eq!(pauses.rests_until(&group(), NOW), None);
    }
}
