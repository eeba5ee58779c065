//! Reservation only together with a cluster that has room.

use engine::ids::ClusterId;
use engine::{Entry, Placer, Settings, WakeKey};
use expect_test::expect;

use super::fixture::check_with;

/// One cluster with room for so many units.
struct Cluster {
    room: i64,
}

impl Placer for Cluster {
    fn place(&mut self, entry: &Entry) -> Result<Option<ClusterId>, WakeKey> {
        let choices = entry.assignment.pod_sets.iter().flat_map(|one| &one.choices);
        let needed: i64 = choices.map(|choice| choice.amount.0).sum();
        if needed > self.room {
            return Err(WakeKey(7));
        }
        self.room -= needed;
        Ok(Some(ClusterId(0)))
    }
}

#[test]
fn a_refused_head_holds_nothing_and_waits_for_room() {
    check_with(
        Settings::default(),
        &mut Cluster { room: 3 },
        "
        cq team-a gpu/h100=9
        wl gang q=team-a gpu=5 t=1
        wl small q=team-a gpu=2 t=2
        cycle
        cycle
        finish small
        cycle
        room 7
        cycle
        ",
        &expect![[r#"
            1  no room for gang team-a, waits for 7
            2  reserve small team-a gpu=h100:2 on cluster 0
            4  no room for gang team-a, waits for 7
        "#]],
    );
}
