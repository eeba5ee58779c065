//! Preemption gates of clones, one row for each rule.

use super::*;

const RACE: &str = "quota nominated=a,b race=a,b";

#[test]
fn the_gate_of_the_clone_that_has_waited_longest_is_opened() {
    check(&[
        (9, RACE, &["a live clone=1 gated", "b live clone=1 gated"], &[]),
        (9, RACE, &["a live clone=1 blocked=5", "b live clone=1 gated"], &["open-gate a"]),
        (9, RACE, &["a live clone=1 blocked=5", "b live clone=1 blocked=4"], &["open-gate b"]),
        // The order of cluster names breaks ties.
        (9, RACE, &["a live clone=1 blocked=5", "b live clone=1 blocked=5"], &["open-gate a"]),
        // Other clones are created meanwhile.
        (9, RACE, &["a live clone=1 blocked=5", "b live"], &["open-gate a", "create-clone b"]),
        // A clone without a gate preempts when it has to.
        (9, RACE, &["a live clone=1", "b live clone=1 gate-open=3"], &[]),
    ]);
}

#[test]
fn the_next_gate_is_opened_a_timeout_after_the_last_one() {
    let after = |now, opened: &str, steps: &[&str]| {
        let a = format!("a live clone=1 gate-open={opened}");
        check(&[(now, RACE, &[&a, "b live clone=1 blocked=4"], steps)]);
    };
    after(20, "10", &["wait-until 50"]);
    after(49, "10", &["wait-until 50"]);
    after(50, "10", &["open-gate b"]);
    let third = "quota nominated=a,b,c race=a,b,c";
    let copies =
        &["a live clone=1 gate-open=10", "b live clone=1 gate-open=55", "c live clone=1 blocked=4"];
    check(&[(60, third, copies, &["wait-until 95"])]);
}

#[test]
fn what_cannot_be_admitted_gets_no_open_gate() {
    let blocked = "a live clone=1 blocked=4";
    check(&[
        // A clone was admitted: the others are removed.
        (9, RACE, &[blocked, "b live clone=1 admitted=8"], &["delete-clone a"]),
        (9, "quota awaits-checks race=a", &[blocked], &["delete-clone a"]),
        (9, "quota evicted nominated=a race=a", &[blocked], &["delete-clone a"]),
        (9, "quota retry nominated=a race=a", &[blocked], &[]),
        (9, "finished nominated=a", &[blocked], &["delete-clone a"]),
        // It is removed for what it is, or where it is.
        (9, RACE, &["a live clone=1 blocked=4 other-spec", "b live clone=1"], &["delete-clone a"]),
        (9, RACE, &["a live clone=1 blocked=4 clone-deleting", "b live clone=1"], &[]),
        (9, "quota epoch=2 nominated=a race=a", &[blocked], &["delete-clone a"]),
        // Its deletion is on the way: it would preempt for nothing.
        (
            9,
            RACE,
            &["a live clone=1 blocked=4 delete-sent", "b live clone=1 blocked=5"],
            &["open-gate b", "delete-clone a"],
        ),
        (9, "quota nominated=b race=b", &[blocked, "b live clone=1"], &["delete-clone a"]),
    ]);
}

#[test]
fn a_cluster_that_is_not_reached_may_have_an_open_gate() {
    let next = "b live clone=1 blocked=4";
    let gated = "a lost=10 clone=1 blocked=2";
    check(&[
        (20, RACE, &[gated, next], &["wait-until 50", "wait-until 110"]),
        (50, RACE, &[gated, next], &["open-gate b", "wait-until 110"]),
        (20, RACE, &["a unlisted=10", next], &["wait-until 50", "wait-until 110"]),
        (20, RACE, &["a lost=10 clone=1 gate-open=5", next], &["wait-until 45", "wait-until 110"]),
        (20, RACE, &["a lost=10 clone=1", next], &["open-gate b", "wait-until 110"]),
        // No clone was sent there.
        (20, &format!("{RACE} unsent"), &["a lost=10", next], &["open-gate b", "wait-until 110"]),
    ]);
}

#[test]
fn the_clone_of_a_recorded_slice_may_preempt_as_well() {
    check(&[
        (
            9,
            "quota recorded=a slice extends",
            &["a live clone=1 blocked=4"],
            &["open-gate a", "wait-until 50"],
        ),
        (9, "quota recorded=a slice", &["a live clone=1 blocked=4 job=1 synced"], &["open-gate a"]),
        (9, "quota ready recorded=a", &["a live clone=1 blocked=4 job=1 synced"], &[]),
    ]);
}

#[test]
fn a_hub_that_does_not_order_preemption_opens_what_is_closed() {
    let settings = DispatchTimeouts { preemption_timeout: 0, ..SETTINGS };
    for (lines, expected) in [
        (["a live clone=1 gate-open=9", "b live clone=1 blocked=4"], ["open-gate b"].as_slice()),
        (
            ["a lost=9 clone=1 gated", "b live clone=1 blocked=4"],
            &["open-gate b", "wait-until 109"],
        ),
        (["a live clone=1 gate-open=9", "b live clone=1 gated"], &[]),
    ] {
        let copies: Vec<RemoteCopy> = lines.iter().map(|line| copy(line)).collect();
        let steps = decide(&hub(RACE), &copies, &settings, Time(9));
        let words: Vec<String> = steps.iter().map(in_words).collect();
        assert_eq!(words, expected, "{lines:?}");
    }
}
