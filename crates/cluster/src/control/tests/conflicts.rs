//! Another client writes every object right before the manager does: each first write of a purpose is refused as stale.

use super::cluster::Cluster;
use super::*;

/// Three Workloads of four cpus in a ClusterQueue of eight; the first one finishes.
fn run(mut cluster: Cluster) -> (Vec<BTreeMap<String, Value>>, Vec<String>) {
    for name in ["a", "b", "c"] {
        cluster.workload(name, 4, &json!({}));
    }
    let mut seen = vec![];
    cluster.settle();
    seen.push(statuses(&cluster));
    let finished = json!({"status": {"conditions": [{
        "type": "Finished", "status": "True", "reason": "Succeeded", "message": "",
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }]}});
    cluster.wait(10).workload("a", 4, &finished).settle();
    seen.push(statuses(&cluster));
    (seen, cluster.take_writes())
}

/// Workloads that a check sends back, that a check rejects, and that a user deactivates.
fn run_evicted(mut cluster: Cluster) -> (Vec<BTreeMap<String, Value>>, Vec<String>) {
    let checks = json!({"admissionChecks": [{"name": "one"}]});
    cluster.check("one").queue(&json!({"admissionChecksStrategy": checks}));
    let check = |state: &str| {
        json!({"status": {"admissionChecks": [{
            "name": "one", "state": state, "message": "",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        }]}})
    };
    let mut seen = vec![];
    for (name, fields) in [
        ("again", json!({})),
        ("again", check("Retry")),
        ("never", json!({})),
        ("never", check("Rejected")),
        ("ended", json!({})),
        ("ended", json!({"spec": {"active": false}})),
    ] {
        cluster.wait(10).workload(name, 2, &fields).settle();
        seen.push(statuses(&cluster));
    }
    (seen, cluster.take_writes())
}

fn statuses(cluster: &Cluster) -> BTreeMap<String, Value> {
    let all = cluster.workloads.iter();
    all.map(|(name, object)| (name.clone(), object["status"].clone())).collect()
}

#[test]
fn a_conflict_on_every_first_write_changes_no_decision() {
    let (plain, writes) = run(Cluster::new());
    let (conflicting, more_writes) = run(Cluster::new().with_conflicts());
    assert_eq!(conflicting, plain);
    let admitted = |statuses: &BTreeMap<String, Value>| {
        let with_quota = statuses.iter().filter(|(_, status)| status["admission"].is_object());
        with_quota.map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(admitted(&plain[0]), ["a", "b"], "both fit, and a third does not");
    assert!(admitted(&plain[1]).contains(&"c".to_owned()), "the quota of the finished one is free");
    let reservations = |writes: &[String]| {
        let all = writes.iter().filter(|write| write.starts_with("reserve "));
        all.cloned().collect::<Vec<_>>()
    };
    assert_eq!(reservations(&writes), ["reserve a", "reserve b", "reserve c"]);
    assert_eq!(reservations(&more_writes), reservations(&writes), "once each");
}

#[test]
fn a_conflict_on_every_first_write_loses_no_eviction_and_repeats_none() {
    let (plain, writes) = run_evicted(Cluster::new());
    let (conflicting, more_writes) = run_evicted(Cluster::new().with_conflicts());
    assert_eq!(conflicting, plain);
    assert_eq!(sorted(&more_writes), sorted(&writes), "once each");
    let evictions: Vec<&String> =
        writes.iter().filter(|write| !write.starts_with("reserve ")).collect();
    assert_eq!(
        evictions,
        [
            "evict again",
            "deactivation-target never",
            "deactivate never",
            "evict never",
            "evict ended"
        ]
    );
}

fn sorted(writes: &[String]) -> Vec<&String> {
    let mut all: Vec<&String> = writes.iter().collect();
    all.sort();
    all
}
