use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const ALL: PendingPage = PendingPage { offset: 0, limit: 1000 };

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("an object")
}

fn workload(name: &str, queue: &str, priority: i32, second: u32) -> Value {
    json!({
        "metadata": {
            "namespace": "ns", "name": name, "uid": format!("uid-{name}"),
            "creationTimestamp": format!("2026-01-01T12:00:{second:02}Z"),
        },
        "spec": {"queueName": queue, "priority": priority},
    })
}

/// A state with the ClusterQueue `cq` and the LocalQueues `a` and `b` of it.
fn queues() -> PendingWorkloads {
    let mut state = PendingWorkloads::new(index::IndexConfig::default());
    set_cluster_queue(&mut state, "cq", true);
    for name in ["a", "b"] {
        set_queue(&mut state, name, "cq", "None");
    }
    state
}

fn set_queue(state: &mut PendingWorkloads, name: &str, target: &str, stop: &str) {
    let queue = from(json!({"spec": {"clusterQueue": target, "stopPolicy": stop}}));
    state.set_local_queue("ns", name, Some(&queue));
}

fn set_cluster_queue(state: &mut PendingWorkloads, name: &str, exists: bool) {
    let queue: ClusterQueue = from(json!({"spec": {}}));
    state.set_cluster_queue(name, Some(&queue).filter(|_| exists));
}

fn set(state: &mut PendingWorkloads, value: Value) {
    let workload: Workload = from(value);
    let name = workload.metadata.name.clone().expect("a name");
    state.set_workload("ns", &name, Some(&Arc::new(workload)));
}

/// One line per Workload: name, positions in ClusterQueue and LocalQueue.
fn lines(state: &PendingWorkloads, queue: &QueueReference<'_>, page: PendingPage) -> String {
    match state.page(queue, page) {
        Err(UnknownQueue) => "unknown\n".to_owned(),
        Ok(items) => items
            .iter()
            .map(|item| {
                let name = item.metadata.name.as_deref().unwrap_or_default();
                let positions = (item.position_in_cluster_queue, item.position_in_local_queue);
                format!("{name} {} {positions:?}\n", item.local_queue_name)
            })
            .collect(),
    }
}

fn check(
    state: &PendingWorkloads,
    queue: &QueueReference<'_>,
    page: PendingPage,
    expected: &Expect,
) {
    expected.assert_eq(&lines(state, queue, page));
}

const CQ: QueueReference<'static> = QueueReference::ClusterQueue("cq");
const A: QueueReference<'static> = QueueReference::LocalQueue("ns", "a");

fn four() -> PendingWorkloads {
    let mut state = queues();
    set(&mut state, workload("late", "a", 0, 9));
    set(&mut state, workload("early", "a", 0, 1));
    set(&mut state, workload("urgent", "b", 5, 8));
    set(&mut state, workload("between", "b", 0, 5));
    state
}

#[test]
fn priority_goes_before_time_in_both_views() {
    let state = four();
    check(
        &state,
        &CQ,
        ALL,
        &expect![[r#"
            urgent b (0, 0)
            early a (1, 0)
            between b (2, 1)
            late a (3, 1)
        "#]],
    );
    check(
        &state,
        &A,
        ALL,
        &expect![[r#"
            early a (1, 0)
            late a (3, 1)
        "#]],
    );
}

/// Upstream compares names of LocalQueues without their namespace, so that such lists show Workloads of both.
#[test]
fn local_queues_of_one_name_in_two_namespaces_do_not_see_each_other() {
    let mut state = four();
    let queue = from(json!({"spec": {"clusterQueue": "cq"}}));
    state.set_local_queue("other", "a", Some(&queue));
    for (name, second) in [("first", 0), ("middle", 4)] {
        let mut foreign = workload(name, "a", 0, second);
        foreign["metadata"]["namespace"] = json!("other");
        state.set_workload("other", name, Some(&Arc::new(from(foreign))));
    }
    check(
        &state,
        &CQ,
        ALL,
        &expect![[r#"
            urgent b (0, 0)
            first a (1, 0)
            early a (2, 0)
            middle a (3, 1)
            between b (4, 1)
            late a (5, 1)
        "#]],
    );
    check(
        &state,
        &A,
        ALL,
        &expect![[r#"
            early a (2, 0)
            late a (5, 1)
        "#]],
    );
    check(
        &state,
        &QueueReference::LocalQueue("other", "a"),
        ALL,
        &expect![[r#"
            first a (1, 0)
            middle a (3, 1)
        "#]],
    );
}

#[test]
fn a_page_counts_positions_from_the_beginning_of_the_queue() {
    let state = four();
    check(
        &state,
        &CQ,
        PendingPage { offset: 2, limit: 1 },
        &expect![[r#"
            between b (2, 1)
        "#]],
    );
    check(
        &state,
        &A,
        PendingPage { offset: 1, limit: 5 },
        &expect![[r#"
            late a (3, 1)
        "#]],
    );
    check(&state, &CQ, PendingPage { offset: 4, limit: 5 }, &expect![""]);
    check(&state, &CQ, PendingPage { offset: 0, limit: 0 }, &expect![""]);
}

#[test]
fn only_workloads_without_quota_that_may_be_queued_are_listed() {
    let mut state = queues();
    let condition = |kind: &str, status: &str, reason: &str| json!([{"type": kind, "status": status, "reason": reason, "message": "m"}]);
    for (name, conditions) in [
        ("reserved", condition("QuotaReserved", "True", "QuotaReserved")),
        ("finished", condition("Finished", "True", "Succeeded")),
        ("inadmissible", condition("QuotaReserved", "False", "WaitingForQuota")),
        ("backoff", condition("Requeued", "False", "PodsReadyTimeout")),
    ] {
        let mut value = workload(name, "a", 0, 1);
        value["status"]["conditions"] = conditions;
        set(&mut state, value);
    }
    let mut inactive = workload("inactive", "a", 0, 1);
    inactive["spec"]["active"] = json!(false);
    set(&mut state, inactive);
    check(
        &state,
        &CQ,
        ALL,
        &expect![[r#"
            backoff a (0, 0)
            inadmissible a (1, 1)
        "#]],
    );
    let items = state.page(&CQ, ALL).expect("a queue");
    let reasons: Vec<_> = items.iter().map(|one| (&*one.reason, &*one.message)).collect();
    assert_eq!(reasons, [("", ""), ("WaitingForQuota", "m")]);
}

#[test]
fn a_workload_that_is_admitted_or_deleted_leaves_both_queues() {
    let mut state = four();
    let mut admitted = workload("urgent", "b", 5, 8);
    admitted["status"]["conditions"] = json!([{"type": "QuotaReserved", "status": "True"}]);
    set(&mut state, admitted);
    state.set_workload("ns", "early", None);
    check(
        &state,
        &CQ,
        ALL,
        &expect![[r#"
            between b (0, 0)
            late a (1, 0)
        "#]],
    );
}

#[test]
fn a_changed_workload_moves() {
    let mut state = four();
    set(&mut state, workload("late", "b", 9, 9));
    check(
        &state,
        &CQ,
        ALL,
        &expect![[r#"
            late b (0, 0)
            urgent b (1, 1)
            early a (2, 0)
            between b (3, 2)
        "#]],
    );
}

/// Sets a LocalQueue of `cq` that records so much CPU.
fn set_usage(state: &mut PendingWorkloads, name: &str, weight: &str, cpu: &str) {
    let record = json!({"consumedResources": {"cpu": cpu}, "lastUpdate": "2026-01-01T00:00:00Z"});
    let queue = from(json!({
        "spec": {"clusterQueue": "cq", "fairSharing": {"weight": weight}},
        "status": {"fairSharing": {"weightedShare": 0, "admissionFairSharingStatus": record}},
    }));
    state.set_local_queue("ns", name, Some(&queue));
}

fn share(state: &mut PendingWorkloads, mode: &str) {
    let queue = from(json!({"spec": {"admissionScope": {"admissionMode": mode}}}));
    state.set_cluster_queue("cq", Some(&queue));
}

fn names(state: &PendingWorkloads) -> Vec<String> {
    let page = state.page(&CQ, ALL).expect("the queue exists");
    page.into_iter().filter_map(|item| item.metadata.name).collect()
}

const BY_PRIORITY: [&str; 4] = ["urgent", "early", "between", "late"];
const A_FIRST: [&str; 4] = ["early", "late", "urgent", "between"];
const B_FIRST: [&str; 4] = ["urgent", "between", "early", "late"];

#[test]
fn the_local_queue_with_the_least_usage_goes_first_under_admission_fair_sharing() {
    let mut state = four().weighing_usage(Some(UsageWeights::default()));
    set_usage(&mut state, "b", "1", "2");
    assert_eq!(names(&state), BY_PRIORITY, "not under the mode of this ClusterQueue");
    share(&mut state, "UsageBasedAdmissionFairSharing");
    assert_eq!(names(&state), A_FIRST);
    set_usage(&mut state, "a", "1", "5");
    assert_eq!(names(&state), B_FIRST, "usage has changed");
    set_usage(&mut state, "a", "4", "5");
    assert_eq!(names(&state), A_FIRST, "usage counts by the weight of the LocalQueue");
    check(
        &state,
        &QueueReference::LocalQueue("ns", "b"),
        ALL,
        &expect![[r#"
            urgent b (2, 0)
            between b (3, 1)
        "#]],
    );
    set_usage(&mut state, "a", "0", "0");
    assert_eq!(names(&state), B_FIRST, "without a weight usage is infinite");
    share(&mut state, "NoAdmissionFairSharing");
    assert_eq!(names(&state), BY_PRIORITY);
}

#[test]
fn usage_does_not_count_without_admission_fair_sharing() {
    let mut state = four();
    share(&mut state, "UsageBasedAdmissionFairSharing");
    set_usage(&mut state, "b", "1", "2");
    assert_eq!(names(&state), BY_PRIORITY);
}

#[test]
fn a_change_of_usage_moves_workloads_only_where_usage_counts() {
    for (mode, moved) in [("NoAdmissionFairSharing", 0), ("UsageBasedAdmissionFairSharing", 2)] {
        let mut state = four().weighing_usage(Some(UsageWeights::default()));
        share(&mut state, mode);
        // What moves is in the order again.
        let order = state.cluster_queues.get_mut("cq").expect("an order");
        order.items = RankedSet::default();
        set_usage(&mut state, "a", "1", "5");
        assert_eq!(names(&state).len(), moved, "{mode}");
    }
}

#[test]
fn nothing_stays_of_a_local_queue_with_usage() {
    let mut state = four().weighing_usage(Some(UsageWeights::default()));
    share(&mut state, "UsageBasedAdmissionFairSharing");
    set_usage(&mut state, "a", "1", "2");
    set(&mut state, workload("early", "b", 0, 1));
    assert_eq!(names(&state), ["urgent", "early", "between", "late"]);
    state.set_local_queue("ns", "a", None);
    assert_eq!(names(&state), ["urgent", "early", "between"]);
}

#[test]
fn objects_may_come_in_any_order() {
    let mut state = PendingWorkloads::new(index::IndexConfig::default());
    set(&mut state, workload("one", "a", 0, 1));
    check(&state, &A, ALL, &expect!["unknown\n"]);
    set_queue(&mut state, "a", "cq", "None");
    check(&state, &CQ, ALL, &expect!["unknown\n"]);
    check(&state, &A, ALL, &expect![""]);
    set_cluster_queue(&mut state, "cq", true);
    check(&state, &CQ, ALL, &expect!["one a (0, 0)\n"]);
    check(&state, &A, ALL, &expect!["one a (0, 0)\n"]);
}

#[test]
fn workloads_follow_their_local_queue_and_leave_with_it() {
    let mut state = four();
    set_cluster_queue(&mut state, "other", true);
    set_queue(&mut state, "a", "other", "None");
    check(
        &state,
        &CQ,
        ALL,
        &expect![[r#"
            urgent b (0, 0)
            between b (1, 1)
        "#]],
    );
    let other = QueueReference::ClusterQueue("other");
    check(
        &state,
        &other,
        ALL,
        &expect![[r#"
            early a (0, 0)
            late a (1, 1)
        "#]],
    );
    set_queue(&mut state, "a", "other", "Hold");
    check(&state, &other, ALL, &expect![""]);
    check(&state, &A, ALL, &expect![""]);
    set_queue(&mut state, "a", "other", "None");
    assert_eq!(lines(&state, &other, ALL).lines().count(), 2);
    state.set_local_queue("ns", "a", None);
    check(&state, &other, ALL, &expect![""]);
    check(&state, &A, ALL, &expect!["unknown\n"]);
}

#[test]
fn nothing_stays_of_what_is_gone() {
    let mut state = four();
    for name in ["late", "early", "urgent", "between"] {
        state.set_workload("ns", name, None);
    }
    set_cluster_queue(&mut state, "cq", false);
    for name in ["a", "b", "never-there"] {
        state.set_local_queue("ns", name, None);
    }
    set_cluster_queue(&mut state, "never-there", false);
    assert!(state.workloads.is_empty() && state.local_queues.is_empty());
    assert!(state.cluster_queues.is_empty());
}

#[test]
fn the_shown_metadata_is_that_of_upstream() {
    let mut state = queues();
    let mut value = workload("one", "a", 3, 1);
    value["metadata"]["labels"] = json!({"x": "y"});
    value["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "u",
        "controller": true, "blockOwnerDeletion": true,
    }]);
    set(&mut state, value);
    let items = state.page(&A, ALL).expect("a queue");
    let expected = json!([{
        "metadata": {
            "name": "one", "namespace": "ns", "creationTimestamp": "2026-01-01T12:00:01Z",
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "u"}],
        },
        "priority": 3, "localQueueName": "a",
        "positionInClusterQueue": 0, "positionInLocalQueue": 0,
    }]);
    assert_eq!(serde_json::to_value(items).expect("JSON"), expected);
}

/// A change of the state.
#[derive(Debug, Clone)]
enum PendingStep {
    Workload { name: u8, queue: u8, priority: i32, second: u32 },
    WorkloadGone(u8),
    LocalQueue { name: u8, target: Option<u8>, stopped: bool },
    ClusterQueue { name: u8, exists: bool },
}

fn step() -> impl Strategy<Value = PendingStep> {
    prop_oneof![
        (0..12_u8, 0..3_u8, 0..3_i32, 0..4_u32).prop_map(|(name, queue, priority, second)| {
            PendingStep::Workload { name, queue, priority, second }
        }),
        (0..12_u8).prop_map(PendingStep::WorkloadGone),
        (0..3_u8, proptest::option::of(0..2_u8), any::<bool>())
            .prop_map(|(name, target, stopped)| PendingStep::LocalQueue { name, target, stopped }),
        (0..2_u8, any::<bool>())
            .prop_map(|(name, exists)| PendingStep::ClusterQueue { name, exists }),
    ]
}

/// The last object of each name.
#[derive(Default)]
struct PendingModel {
    workloads: BTreeMap<u8, (u8, i32, u32)>,
    local: BTreeMap<u8, (u8, bool)>,
    cluster: BTreeMap<u8, bool>,
}

impl PendingModel {
    fn apply(&mut self, step: &PendingStep) {
        match *step {
            PendingStep::Workload { name, queue, priority, second } => {
                self.workloads.insert(name, (queue, priority, second));
            }
            PendingStep::WorkloadGone(name) => {
                self.workloads.remove(&name);
            }
            PendingStep::LocalQueue { name, target: Some(target), stopped } => {
                self.local.insert(name, (target, stopped));
            }
            PendingStep::LocalQueue { name, target: None, .. } => {
                self.local.remove(&name);
            }
            PendingStep::ClusterQueue { name, exists } => {
                self.cluster.insert(name, exists);
            }
        }
    }

    /// What a ClusterQueue shows, sorted from nothing.
    fn lines(&self, cluster: u8) -> String {
        if self.cluster.get(&cluster) != Some(&true) {
            return "unknown\n".to_owned();
        }
        let mut waiting: Vec<_> = self
            .workloads
            .iter()
            .filter(|(_, (queue, ..))| self.local.get(queue) == Some(&(cluster, false)))
            .map(|(name, &(queue, priority, second))| {
                (-priority, second, format!("uid-w{name}"), format!("w{name}"), queue)
            })
            .collect();
        waiting.sort();
        let mut of_local: BTreeMap<u8, usize> = BTreeMap::new();
        let lines = waiting.into_iter().enumerate().map(|(at, (.., name, queue))| {
            let local = of_local.entry(queue).or_default();
            *local += 1;
            format!("{name} q{queue} {:?}\n", (at, *local - 1))
        });
        lines.collect()
    }
}

fn apply(state: &mut PendingWorkloads, step: &PendingStep) {
    match *step {
        PendingStep::Workload { name, queue, priority, second } => {
            let (name, queue) = (format!("w{name}"), format!("q{queue}"));
            set(state, workload(&name, &queue, priority, second));
        }
        PendingStep::WorkloadGone(name) => state.set_workload("ns", &format!("w{name}"), None),
        PendingStep::LocalQueue { name, target: Some(target), stopped } => {
            let stop = if stopped { "HoldAndDrain" } else { "None" };
            set_queue(state, &format!("q{name}"), &format!("c{target}"), stop);
        }
        PendingStep::LocalQueue { name, target: None, .. } => {
            state.set_local_queue("ns", &format!("q{name}"), None);
        }
        PendingStep::ClusterQueue { name, exists } => {
            set_cluster_queue(state, &format!("c{name}"), exists);
        }
    }
}

proptest! {
    #[test]
    fn any_history_shows_what_its_last_objects_sort_to(
        steps in proptest::collection::vec(step(), 0..60),
    ) {
        let mut state = PendingWorkloads::new(index::IndexConfig::default());
        let mut model = PendingModel::default();
        for step in &steps {
            apply(&mut state, step);
            model.apply(step);
        }
        for cluster in 0..2 {
            let name = format!("c{cluster}");
            let shown = lines(&state, &QueueReference::ClusterQueue(&name), ALL);
            prop_assert_eq!(shown, model.lines(cluster));
        }
    }
}
