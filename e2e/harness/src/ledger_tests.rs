//! The rules of the ledger, as sequences of one observation per line.

use serde_json::json;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

/// `phase` is reported by the pod; it started at `start` and, if ended, ended at `end`.
fn pod(name: &str, owner: &str, phase: &str, start: i64, end: i64) -> Pod {
    let (start, end) = (at(start).to_string(), at(end).to_string());
    let state = match phase {
        "Pending" => json!({}),
        "Running" => json!({"running": {"startedAt": start}}),
        _ => json!({"terminated": {"exitCode": 0, "startedAt": start, "finishedAt": end}}),
    };
    let pod = json!({
        "metadata": {
            "name": name, "namespace": "n", "uid": format!("{owner}/{name}"),
            "creationTimestamp": start,
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": owner, "controller": true
            }],
        },
        "spec": {"containers": []},
        "status": {"phase": phase, "containerStatuses": [
            {"name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state}
        ]},
    });
    serde_json::from_value(pod).unwrap()
}

/// Applies lines `<second> <cluster> <owner> <pod> <pending|run|succeed|fail|delete>` and returns the verdict about `job`, which
/// needs two pods.
fn verdict_of(story: &str) -> RunVerdict {
    ledger_of(story).judge("job", 2).verdict
}

fn ledger_of(story: &str) -> Ledger {
    let mut ledger = Ledger::default();
    let mut starts: BTreeMap<String, i64> = BTreeMap::new();
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [second, cluster, owner, name, what] = words[..] else { panic!("{line}") };
        let second: i64 = second.parse().unwrap();
        if what == "forgotten" {
            ledger.note(cluster, FollowedChange::Listed(vec![]), at(second));
            continue;
        }
        let key = format!("{owner}/{name}");
        if what == "run" {
            starts.insert(key.clone(), second);
        }
        let start = starts.get(&key).copied().unwrap_or(second);
        let change = match what {
            "pending" => FollowedChange::Applied(pod(name, owner, "Pending", second, second)),
            "run" => FollowedChange::Applied(pod(name, owner, "Running", start, start)),
            "succeed" => FollowedChange::Applied(pod(name, owner, "Succeeded", start, second)),
            "fail" => FollowedChange::Applied(pod(name, owner, "Failed", start, second)),
            "delete" if starts.contains_key(&key) => {
                FollowedChange::Deleted(pod(name, owner, "Running", start, start))
            }
            "delete" => FollowedChange::Deleted(pod(name, owner, "Pending", second, second)),
            _ => panic!("{line}"),
        };
        ledger.note(cluster, change, at(second));
    }
    ledger
}

#[test]
fn no_start_is_no_run() {
    assert_eq!(verdict_of(""), RunVerdict::NeverRan);
    assert_eq!(verdict_of("1 west o a pending\n2 west o a delete"), RunVerdict::NeverRan);
}

#[test]
fn one_run_that_did_the_work_is_once_and_before_that_it_runs() {
    let half = "1 west o a run\n1 west o b run\n5 west o a succeed";
    assert_eq!(verdict_of(half), RunVerdict::Running);
    assert_eq!(verdict_of(&format!("{half}\n6 west o b succeed")), RunVerdict::Once);
}

#[test]
fn a_pod_that_fails_and_is_replaced_belongs_to_the_same_run() {
    let story = "1 west o a run\n1 west o b run\n2 west o b fail\n3 west o c run
        5 west o a succeed\n6 west o c succeed";
    assert_eq!(verdict_of(story), RunVerdict::Once);
}

#[test]
fn a_run_that_stopped_before_the_next_began_has_moved() {
    let story = "1 west o a run\n4 west o a delete\n6 east p a run\n6 east p b run";
    assert_eq!(verdict_of(story), RunVerdict::Moved);
    let done = format!("{story}\n9 east p a succeed\n9 east p b succeed");
    assert_eq!(verdict_of(&done), RunVerdict::Moved);
    // Half of the work was complete before the job moved; a moved job repeats all of it.
    let half_done = done.replace("4 west o a delete", "4 west o a succeed");
    assert_eq!(verdict_of(&half_done), RunVerdict::Moved);
}

#[test]
fn two_runs_at_once_are_twice_in_two_clusters_or_in_one() {
    assert_eq!(verdict_of("1 west o a run\n3 east p a run"), RunVerdict::Twice);
    assert_eq!(verdict_of("1 west o a run\n3 west p a run"), RunVerdict::Twice);
    assert_eq!(verdict_of("1 west o a run\n3 east p a run\n4 west o a delete"), RunVerdict::Twice);
}

#[test]
fn work_done_again_is_twice_even_one_after_the_other() {
    let first = "1 west o a run\n1 west o b run\n3 west o a succeed\n3 west o b succeed";
    let again = "5 east p a run\n7 east p a succeed";
    assert_eq!(verdict_of(first), RunVerdict::Once);
    assert_eq!(verdict_of(&format!("{first}\n{again}")), RunVerdict::Twice);
    let same_owner = "5 west o c run\n7 west o c succeed";
    assert_eq!(verdict_of(&format!("{first}\n{same_owner}")), RunVerdict::Twice);
}

#[test]
fn work_that_stopped_undone_is_lost() {
    assert_eq!(verdict_of("1 west o a run\n4 west o a fail"), RunVerdict::Lost);
    assert_eq!(verdict_of("1 west o a run\n4 west o a delete"), RunVerdict::Lost);
}

#[test]
fn what_went_away_unseen_does_not_count_as_a_run_nor_as_none() {
    let gap = "1 west o a run\n4 west - - forgotten";
    assert_eq!(verdict_of(gap), RunVerdict::Unclear);
    let pending = "1 west o a pending\n4 west - - forgotten";
    assert_eq!(verdict_of(pending), RunVerdict::Unclear);
    let other_cluster = "1 west o a run\n4 east - - forgotten";
    assert_eq!(verdict_of(other_cluster), RunVerdict::Running);
    let twice_all_the_same = "1 west o a run\n3 east p a run\n5 east - - forgotten";
    assert_eq!(verdict_of(twice_all_the_same), RunVerdict::Twice);
}

#[test]
fn a_pod_that_only_the_scheduler_saw_makes_its_job_unclear_and_no_other() {
    let mut ledger =
        ledger_of("1 west o a run\n1 west o b run\n3 west o a succeed\n3 west o b succeed");
    ledger.note_scheduled("west", "o/a", "a");
    assert_eq!(ledger.judge("job", 2).verdict, RunVerdict::Once, "that one was seen");
    ledger.note_scheduled("east", "unknown", "job-x7k2p");
    let judgement = ledger.judge("job", 2);
    assert_eq!(judgement.verdict, RunVerdict::Unclear);
    assert_eq!(judgement.unseen, ["east/job-x7k2p"]);
    assert_eq!(ledger.judge("jobs", 2).verdict, RunVerdict::NeverRan);
    assert_eq!(ledger.judge("other", 2).verdict, RunVerdict::NeverRan);
}

#[test]
fn an_end_that_was_seen_survives_a_gap() {
    let story = "1 west o a run\n1 west o b run\n3 west o a succeed\n3 west o b succeed
        9 west - - forgotten";
    assert_eq!(verdict_of(story), RunVerdict::Once);
}

#[test]
fn the_judgement_names_every_pod() {
    let text = ledger_of("1 west o a run\n4 west o a delete").judge("job", 2).to_string();
    assert!(text.starts_with("job job: Lost\n  run on west (owner o)\n    a started"), "{text}");
}

#[test]
fn without_a_cluster_its_copies_are_no_runs() {
    let ledger = ledger_of(
        "1 worker-1 o1 a run
         1 worker-1 o1 b run
         1 manager o2 a run
         3 worker-1 o1 a succeed
         3 worker-1 o1 b succeed
         4 manager o2 a succeed",
    );
    assert_eq!(ledger.judge("job", 2).verdict, RunVerdict::Twice);
    assert_eq!(ledger.without("manager").judge("job", 2).verdict, RunVerdict::Once);
}
