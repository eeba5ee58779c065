//! Clones that a worker of a race has changed.

use super::*;

#[test]
fn a_clone_that_a_worker_of_a_race_has_changed_is_removed() {
    let race = "quota nominated=a,b race=a,b";
    let other = "b live clone=1";
    let refused = |words: &str, steps: &[&str]| {
        check(&[(9, race, &[&format!("a live api-refused=changed {words}"), other], steps)]);
    };
    refused("clone=1 other-spec", &["delete-clone a"]);
    refused("clone=1 other-spec job=1", &["delete-job a"]);
    refused("clone=1 other-spec clone-deleting", &[]);
    refused("unsettled clone=1 other-spec", &[]);
    // What is as it was given away stays, with its reason.
    refused("clone=1", &[]);
    refused("", &[]);
    // It may have been removed, and says nothing more.
    let cut = "a lost=9 api-refused=changed clone=1 other-spec";
    check(&[(9, race, &[cut, other], &["wait-until 109"])]);
}

#[test]
fn a_changed_clone_stays_with_its_reason_while_the_nomination_ends() {
    let changed = "a live api-refused=changed clone=1 other-spec";
    check(&[
        (9, "quota nominated=a", &[changed], &["raise-epoch 2"]),
        (9, "quota nominated=a race=a", &[changed], &["raise-epoch 2"]),
    ]);
}
