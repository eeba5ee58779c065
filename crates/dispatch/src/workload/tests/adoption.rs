//! Copies of an earlier dispatch that have succeeded.

use super::*;

#[test]
fn a_left_over_copy_that_has_succeeded_is_adopted_unless_another_has_started() {
    let done = "b live clone=1 job=1 job-succeeded";
    let pending = "epoch=2 suspended";
    let nominated = "epoch=2 suspended quota nominated=a";
    let running = "epoch=2 quota ready recorded=a";
    check(&[
        (1, pending, &[done], &["adopt b"]),
        (1, pending, &["a lost=0 clone=1 job=1", done], &["adopt b"]),
        (1, nominated, &["a live", done], &["adopt b"]),
        (1, nominated, &["a live clone=2 job=2 job-suspended", done], &["adopt b"]),
        // Nothing says that the other job does not run.
        (
            1,
            nominated,
            &["a lost=0 clone=2 job=2 job-suspended", done],
            &["delete-job b", "wait-until 100"],
        ),
        (1, nominated, &["a live clone=2 job=2", done], &["delete-job b", "wait-until 50"]),
        (1, running, &["a live clone=2 admitted=0 job=2 synced", done], &["delete-job b"]),
        (1, running, &["a live clone=2 admitted=0 job=2 job-suspended synced", done], &["adopt b"]),
        // Withdrawn in the moment of its end.
        (1, "quota evicted ready recorded=b", &[done], &["adopt b"]),
        (1, "quota ready recorded=b", &[done], &["sync b"]),
    ]);
}

#[test]
fn only_the_whole_result_of_the_same_work_is_adopted() {
    let hub = "epoch=2 suspended";
    let removed: &[&str] = &["delete-job b"];
    check(&[
        (1, hub, &["b live clone=1 job=1 job-finished"], removed),
        (1, hub, &["b live clone=1 job=1 job-succeeded job-end-refused"], removed),
        (1, hub, &["b live clone=1 job=1 job-succeeded job=1"], removed),
        (1, hub, &["b live clone=1 job=1 job-succeeded short"], removed),
        (1, hub, &["b live clone=1 other-pods job=1 job-succeeded"], removed),
        (1, hub, &["b live job=1 job-succeeded"], removed),
        (1, hub, &["b live clone=1 unknown job=1 job-succeeded"], &[]),
        (1, hub, &["b live clone=3 job=3 job-succeeded"], &[]),
        (1, hub, &["b live clone=1 departed job=1 job-succeeded"], removed),
        (1, hub, &["b live clone=1 uidless job=1 job-succeeded"], removed),
        (1, hub, &["b live clone=1 job=1 job-succeeded job-uidless"], removed),
        (1, hub, &["b live clone=1 job=1 job-succeeded job-departed"], removed),
        (1, hub, &["b lost=0 clone=1 job=1 job-succeeded"], &[]),
        (1, hub, &["b live clone=1"], &["delete-clone b"]),
        (1, "epoch=2 jobless", &["b live clone=1 job=1 job-succeeded"], removed),
        (1, "epoch=2 finished", &["b live clone=1 job=1 job-succeeded"], removed),
        (1, "gone", &["b live clone=1 job=1 job-succeeded"], removed),
    ]);
}
