//! Copies of a higher epoch, or of a history that the hub does not know.

use super::*;

#[test]
fn a_copy_of_a_higher_epoch_is_left_alone_for_a_while() {
    let late = "quota ready recorded=a newer-until=9";
    check(&[
        (1, late, &["a live clone=2 job=2"], &["wait-until 9"]),
        (1, "gone newer-until=9", &["a live clone=2 job=2"], &["wait-until 9"]),
        (1, late, &["a live clone=2 job=2 confirmed"], &["wait-until 9"]),
    ]);
}

#[test]
fn a_disputed_copy_is_neither_removed_nor_adopted_before_a_person_confirms() {
    for copy in ["a live clone=2 job=2", "a live clone=1 unknown job=1 job-unknown"] {
        for hub in [
            "quota ready recorded=a",
            "quota nominated=a",
            "quota nominated=b",
            "quota awaits-checks",
            "quota",
            "quota evicted recorded=a",
            "quota nominated=a raised",
            "finished",
            "",
        ] {
            check(&[(99, hub, &[copy, "b live"], &[])]);
        }
    }
    check(&[
        (1, "gone epoch=0", &["a live clone=2 unknown"], &[]),
        (1, "gone epoch=0", &["a live clone=2"], &["delete-clone a"]),
        // Beside a disputed copy the recorded one is followed, and of the others the rest is removed.
        (
            1,
            "quota ready recorded=b",
            &["a live clone=2 job=2", "b live clone=1 job=1"],
            &["sync b"],
        ),
        (1, "finished", &["a live clone=2", "b live clone=1"], &["delete-clone b"]),
        // A lost cluster blocks nothing.
        (
            99,
            "quota nominated=b",
            &["a lost=0 clone=2 job=2", "b unlisted=50"],
            &["wait-until 100"],
        ),
        (
            100,
            "quota nominated=b nominated-at=99",
            &["a lost=0 clone=2", "b live clone=1"],
            &["create-job b", "wait-until 149"],
        ),
    ]);
}

#[test]
fn after_a_confirmation_the_epoch_rises_above_every_copy_and_then_they_are_removed() {
    check(&[
        (1, "", &["a live clone=7 job=7 confirmed"], &["delete-job a"]),
        (1, "quota", &["a live clone=7 job=7 confirmed"], &["raise-epoch 8"]),
        (
            1,
            "quota nominated=b",
            &["a live clone=1 unknown confirmed", "b live"],
            &["raise-epoch 2"],
        ),
        (
            1,
            "quota nominated=b highest=5",
            &["a live clone=1 unknown confirmed"],
            &["raise-epoch 6"],
        ),
        (1, "quota epoch=8", &["a live clone=7 job=7 confirmed"], &["delete-job a"]),
        // With a recorded copy that is current, the others go without a new epoch.
        (
            1,
            "quota ready recorded=b",
            &["a live clone=2 job=2 confirmed", "b live clone=1 job=1 synced"],
            &["delete-job a"],
        ),
        (1, "quota evicted recorded=a highest=7", &["a live"], &["raise-epoch 8"]),
    ]);
}

#[test]
fn hostile_worker_an_epoch_far_above_the_hubs_is_disputed_and_uses_up_no_numbers() {
    let most = u64::MAX;
    let forged = format!("a live clone={most} job={most}");
    let confirmed = format!("{forged} confirmed");
    let lost = format!("a lost=-99 clone={most}");
    check(&[
        (99, "quota nominated=b", &[&forged, "b live"], &[]),
        // The next epoch is that after the hub's own, and the removal does not wait for it.
        (1, "quota evicted recorded=b", &[&lost, "b live"], &["raise-epoch 2"]),
        (1, "quota", &[&confirmed], &["delete-job a"]),
        (1, "quota epoch=7", &["a live clone=65543 confirmed"], &["raise-epoch 65544"]),
        (1, "quota epoch=7", &["a live clone=65544 confirmed"], &["delete-clone a"]),
        (1, "quota epoch=7", &["a live clone=65544 job=9 confirmed"], &["raise-epoch 10"]),
    ]);
}

#[test]
fn the_clusters_with_disputed_copies_are_named_while_a_workload_waits_for_them() {
    for (hub, copies, expected) in [
        ("quota", ["a live clone=2", "b live"], vec![0]),
        ("quota nominated=b", ["a live clone=1 unknown", "b live job=3"], vec![0, 1]),
        ("quota", ["a live clone=2 confirmed", "b lost=0 clone=2"], vec![]),
        ("quota ready recorded=b", ["a live clone=2", "b live clone=1"], vec![]),
        ("quota awaits-checks", ["a live clone=2", "b live"], vec![]),
        ("quota newer-until=101", ["a live clone=2", "b live"], vec![]),
        ("quota evicted", ["a live clone=2", "b live"], vec![0]),
        ("quota evicted recorded=b", ["a live job=1", "b live job=2"], vec![1]),
        ("quota evicted newer-until=101", ["a live clone=2", "b live"], vec![]),
        // Its withdrawal does not wait for these.
        ("quota evicted", ["a lost=0 clone=2", "b lost=1 clone=2"], vec![]),
        ("quota evicted finished", ["a live clone=2", "b live"], vec![]),
        ("", ["a live clone=2", "b live"], vec![]),
    ] {
        let copies = copies.map(copy);
        let blocking = blocking_clusters(&self::hub(hub), &copies, &SETTINGS, Time(100));
        let blocking: Vec<usize> = blocking.iter().map(|one| one.index()).collect();
        assert_eq!(blocking, expected, "{hub}");
    }
}
