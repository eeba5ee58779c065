//! What becomes of a move, and the race after it.

use super::*;

#[test]
fn a_move_ends_with_an_admission_a_refusal_or_the_time_to_admit() {
    let failed = |why: &str| MoveProgress::Failed(why.into());
    let awaited = MoveProgress::Awaited(Time(60));
    for (line, now, expected) in [
        ("a live", 59, awaited.clone()),
        ("a live clone=1", 59, awaited),
        ("a live clone=1", 60, failed("not admitted by the worker in time")),
        ("a live", 60, failed("not admitted by the worker in time")),
        ("a live clone=1 admitted=20", 60, MoveProgress::Admitted),
        ("a live clone=1 refused=no", 11, failed("no")),
        ("a live api-refused=no", 11, failed("no")),
    ] {
        assert_eq!(copy(line).move_progress(Time(10), &SETTINGS, Time(now)), expected, "{line}");
    }
}
