//! Priorities and sizes that are written to copies.

use super::*;

#[test]
fn a_changed_priority_is_pushed_and_running_work_stays() {
    let recorded = "quota ready recorded=a";
    let nominated = "quota nominated=a";
    check(&[
        (1, recorded, &["a live clone=1 job=1 synced other-priority"], &["push-priority a"]),
        (1, recorded, &["a live clone=1 job=1 other-priority"], &["push-priority a", "sync a"]),
        (
            1,
            nominated,
            &["a live clone=1 job=1 other-priority"],
            &["push-priority a", "wait-until 50"],
        ),
        (1, recorded, &["a lost=0 clone=1 job=1 other-priority"], &["wait-until 100"]),
        (
            1,
            recorded,
            &["a live clone=1 clone-deleting job=1 other-priority"],
            &["retry Admitting remote no longer exists, Previously: \"Ready\""],
        ),
        (1, "gone", &["a live clone=1 other-priority"], &["delete-clone a"]),
    ]);
}

#[test]
fn a_changed_number_of_replicas_is_pushed_to_the_copy_of_the_set() {
    let recorded = "quota ready recorded=a";
    let resized = "clone=1 admitted=1 job=1 job-shared job-resized synced";
    check(&[
        (1, recorded, &[&format!("a live {resized}")], &["push-size a"]),
        (1, recorded, &[&format!("a lost=0 {resized}")], &["wait-until 100"]),
        (1, recorded, &[&format!("a live {resized} job-deleting")], &[]),
        // The first replica made it; this one has no clone there yet.
        (
            1,
            "quota nominated=a",
            &["a live job=1 job-shared job-resized"],
            &["push-size a", "create-clone a", "wait-until 50"],
        ),
        (
            1,
            "quota evicted ready recorded=a",
            &["a live job=1 job-shared job-resized"],
            &["raise-epoch 2"],
        ),
    ]);
}

#[test]
fn a_smaller_size_is_pushed_to_every_copy_and_nothing_is_removed() {
    let recorded = "quota ready recorded=a";
    check(&[
        (1, recorded, &["a live clone=1 admitted=1 larger job=1 synced"], &["push-size a"]),
        (1, recorded, &["a live clone=1 admitted=1 job=1 job-resized synced"], &["push-size a"]),
        (1, recorded, &["a live clone=1 larger job=1 job-resized"], &["push-size a", "sync a"]),
        (
            1,
            "quota nominated=a,b race=a,b",
            &["a live clone=1 larger", "b live clone=1"],
            &["push-size a"],
        ),
        (1, recorded, &["a lost=0 clone=1 larger job=1 job-resized"], &["wait-until 100"]),
        (
            1,
            recorded,
            &["a live clone=1 clone-deleting larger job=1"],
            &["retry Admitting remote no longer exists, Previously: \"Ready\""],
        ),
        (
            1,
            recorded,
            &[
                "a live clone=1 clone-finished=Succeeded larger job=1 job-resized job-finished synced",
            ],
            &["finish Succeeded: all done"],
        ),
        (1, "quota epoch=2 ready recorded=a", &["a live clone=1 larger job=1"], &["delete-job a"]),
        (1, "gone", &["a live clone=1 larger"], &["delete-clone a"]),
        (1, "quota evicted ready recorded=a", &["a live clone=1 larger job=1"], &["delete-job a"]),
    ]);
}
