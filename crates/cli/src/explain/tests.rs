use expect_test::expect;
use serde_json::{Value, json};

use super::*;
use crate::output::{HumanText, OutputFormat, render};

fn workload(active: bool, status: &Value) -> Workload {
    let object = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": {"namespace": "team-a", "name": "job-train-1f", "ownerReferences": [
            {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u"},
        ]},
        "spec": {"queueName": "gpu", "priority": 5, "active": active, "podSets": [
            {"name": "main", "count": 4, "template": {}},
            {"name": "log", "count": 1, "template": {}},
        ]},
        "status": status,
    });
    serde_json::from_value(object).expect("a Workload")
}

fn inputs() -> ExplanationInputs {
    let queue = json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
        "metadata": {"name": "gpu"}, "spec": {"clusterQueue": "research"}});
    let event = |kind: &str, name: &str, reason: &str, at: &str| -> Event {
        let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": reason},
            "eventTime": format!("2026-11-24T11:{at}:00.000000Z"), "type": "Normal", "reason": reason,
            "note": format!("{reason} of {name}"), "regarding": {"kind": kind, "name": name}});
        serde_json::from_value(event).expect("an Event")
    };
    ExplanationInputs {
        local_queue: Some(serde_json::from_value(queue).expect("a LocalQueue")),
        clusters: ["east", "west"].map(str::to_owned).to_vec(),
        events: vec![
            event("Job", "train", "Suspended", "58"),
            event("Workload", "job-train-1f", "Pending", "57"),
            event("Job", "other", "Started", "59"),
        ],
        visible: None,
    }
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-11-24T11:55:00Z"})
}

fn explained(workload: &Workload, inputs: &ExplanationInputs) -> Vec<WorkloadExplanation> {
    let now = "2026-11-24T12:00:00Z".parse().expect("a time");
    vec![WorkloadExplanation::of(workload, inputs, now)]
}

fn pending() -> Workload {
    let message =
        "no cluster has room: east: pod set main: only 3 of 4 pods fit; west: is being drained";
    workload(
        true,
        &json!({
            "conditions": [condition("QuotaReserved", "False", "WaitingForQuota", message)],
            "resourceRequests": [
                {"name": "main", "resources": {"cpu": "32", "nvidia.com/gpu": "4"}},
            ],
            "requeueState": {"count": 1, "requeueAt": "2026-11-24T12:01:00Z"},
        }),
    )
}

#[test]
fn a_pending_workload_names_the_reason_of_each_cluster() {
    expect![[r#"
        Workload:    team-a/job-train-1f
        Job:         Job/train
        Queue:       gpu (ClusterQueue research)
        Priority:    5
        State:       Pending (WaitingForQuota)
        Not before:  2026-11-24T12:01:00Z
        Why not on:
          CLUSTER   REASON
          east      pod set main: only 3 of 4 pods fit
          west      is being drained
        Pod sets:
          NAME   PODS   RESOURCE         AMOUNT   FLAVOR
          main   4      cpu              32       -
                        nvidia.com/gpu   4        -
          log    1
        Conditions:
          TYPE            STATUS   REASON            SINCE   MESSAGE
          QuotaReserved   False    WaitingForQuota   5m      no cluster has room: east: pod set main: only 3 of 4 pods fit; west: is being drained
        Events:
          LAST   TYPE     REASON      MESSAGE
          3m     Normal   Pending     Pending of job-train-1f
          2m     Normal   Suspended   Suspended of train
    "#]].assert_eq(&explained(&pending(), &inputs()).text(false));
}

#[test]
fn a_pending_workload_as_json_has_the_same_content() {
    let inputs = ExplanationInputs {
        visible: Some(PendingPlace { position: 3, explanation: String::new() }),
        ..inputs()
    };
    expect![[r#"
        [
          {
            "namespace": "team-a",
            "workload": "job-train-1f",
            "jobs": [
              "Job/train"
            ],
            "queue": "gpu",
            "clusterQueue": "research",
            "priority": 5,
            "state": "Pending",
            "reason": "WaitingForQuota",
            "message": "no cluster has room: east: pod set main: only 3 of 4 pods fit; west: is being drained",
            "position": 3,
            "nominatedClusters": [],
            "clusterReasons": [
              {
                "cluster": "east",
                "reason": "pod set main: only 3 of 4 pods fit"
              },
              {
                "cluster": "west",
                "reason": "is being drained"
              }
            ],
            "requeueAt": "2026-11-24T12:01:00Z",
            "podSets": [
              {
                "name": "main",
                "count": 4,
                "flavors": {},
                "resources": {
                  "cpu": "32",
                  "nvidia.com/gpu": "4"
                }
              },
              {
                "name": "log",
                "count": 1,
                "flavors": {},
                "resources": {}
              }
            ],
            "admissionChecks": [],
            "conditions": [
              {
                "type": "QuotaReserved",
                "status": "False",
                "reason": "WaitingForQuota",
                "message": "no cluster has room: east: pod set main: only 3 of 4 pods fit; west: is being drained",
                "since": "2026-11-24T11:55:00Z"
              }
            ],
            "events": [
              {
                "last": "2026-11-24T11:57:00Z",
                "count": 1,
                "type": "Normal",
                "reason": "Pending",
                "object": "Workload/job-train-1f",
                "message": "Pending of job-train-1f"
              },
              {
                "last": "2026-11-24T11:58:00Z",
                "count": 1,
                "type": "Normal",
                "reason": "Suspended",
                "object": "Job/train",
                "message": "Suspended of train"
              }
            ]
          }
        ]
    "#]]
        .assert_eq(&render(&explained(&pending(), &inputs), OutputFormat::Json).expect("JSON"));
}

/// An Event that explains the Workload of this name.
fn explaining(name: &str, at: &str, note: &str) -> Event {
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
        "eventTime": at, "type": "Normal", "reason": "AdmissionExplained", "note": note,
        "regarding": {"kind": "Workload", "name": name}});
    serde_json::from_value(event).expect("an Event")
}

#[test]
fn what_would_make_a_workload_admissible_comes_from_the_leader_or_the_event() {
    let mut inputs = inputs();
    let shown = |inputs: &ExplanationInputs, workload: &Workload| {
        let text = explained(workload, inputs).text(false);
        let line = text.lines().find_map(|line| line.strip_prefix("Explanation: "));
        line.map(str::to_owned)
    };
    // Of another Workload, of an earlier wait, and of this one.
    inputs.events.push(explaining("other", "2026-11-24T11:58:00.000000Z", "other"));
    inputs.events.push(explaining("job-train-1f", "2026-11-24T11:54:00.000000Z", "earlier"));
    assert_eq!(shown(&inputs, &pending()), None);
    inputs.events.push(explaining("job-train-1f", "2026-11-24T11:56:00.000000Z", "with +8"));
    inputs.events.push(explaining("job-train-1f", "2026-11-24T11:57:00.000000Z", "with +4"));
    assert_eq!(shown(&inputs, &pending()).as_deref(), Some("with +4"));
    inputs.visible = Some(PendingPlace { position: 0, explanation: "with +2".to_owned() });
    assert_eq!(shown(&inputs, &pending()).as_deref(), Some("with +2"));
    let reserved = condition("QuotaReserved", "True", "QuotaReserved", "");
    let reserved = workload(true, &json!({"conditions": [reserved]}));
    assert_eq!(shown(&inputs, &reserved), None, "it waits for quota no longer");
}

#[test]
fn an_admitted_workload_shows_its_cluster_flavors_and_checks() {
    let admitted = workload(
        true,
        &json!({
            "clusterName": "east",
            "conditions": [
                condition("QuotaReserved", "True", "QuotaReserved", "Quota reserved in ClusterQueue research"),
                condition("Admitted", "True", "Admitted", "The workload is admitted"),
            ],
            "admission": {"clusterQueue": "research", "podSetAssignments": [
                {"name": "main", "count": 3, "flavors": {"cpu": "a", "memory": "a"},
                    "resourceUsage": {"cpu": "24", "memory": "96Gi"}},
                {"name": "log", "count": 1, "flavors": {"cpu": "b"}, "resourceUsage": {"cpu": "100m"}},
            ]},
            "admissionChecks": [{"name": "workers", "state": "Ready", "message": "got reservation on \"east\"",
                "lastTransitionTime": "2026-11-24T11:54:00Z"}],
        }),
    );
    expect![[r#"
        Workload:    team-a/job-train-1f
        Job:         Job/train
        Queue:       gpu (ClusterQueue research)
        Priority:    5
        State:       Admitted (Admitted)
        Message:     The workload is admitted
        Cluster:     east
        Pod sets:
          NAME   PODS   RESOURCE   AMOUNT   FLAVOR
          main   3      cpu        24       a
                        memory     96Gi     a
          log    1      cpu        100m     b
        Admission checks:
          NAME      STATE   SINCE   MESSAGE
          workers   Ready   6m      got reservation on "east"
        Conditions:
          TYPE            STATUS   REASON          SINCE   MESSAGE
          QuotaReserved   True     QuotaReserved   5m      Quota reserved in ClusterQueue research
          Admitted        True     Admitted        5m      The workload is admitted
        Events:
          LAST   TYPE     REASON      COUNT   OBJECT                  MESSAGE
          3m     Normal   Pending     1       Workload/job-train-1f   Pending of job-train-1f
          2m     Normal   Suspended   1       Job/train               Suspended of train
    "#]]
    .assert_eq(&explained(&admitted, &inputs()).text(true));
}

#[test]
fn pods_that_cannot_start_are_explained_while_they_cannot() {
    for (status, line) in [
        (
            "True",
            Some("Pods:        ImagePullBackOff: east: pod train-x, container main: not found"),
        ),
        ("False", None),
    ] {
        let message = "east: pod train-x, container main: not found";
        let failing = condition("sluice.dev/PodsFailing", status, "ImagePullBackOff", message);
        let workload = workload(true, &json!({"conditions": [failing]}));
        let text = explained(&workload, &inputs()).text(false);
        assert_eq!(text.lines().find(|line| line.starts_with("Pods:")), line);
        assert!(text.contains("sluice.dev/PodsFailing   "), "the condition stays: {text}");
    }
}

#[test]
fn the_state_follows_from_the_strongest_condition() {
    let state = |active, conditions: Value| {
        state_of(&workload(active, &json!({"conditions": conditions}))).0
    };
    let evicted = condition("Evicted", "True", "Preempted", "");
    assert_eq!(state(true, json!([])), WorkloadState::Pending);
    assert_eq!(state(true, json!([evicted])), WorkloadState::Evicted);
    let refused = condition("QuotaReserved", "False", "Pending", "");
    assert_eq!(state(true, json!([evicted, refused])), WorkloadState::Pending);
    let reserved = condition("QuotaReserved", "True", "QuotaReserved", "");
    assert_eq!(state(true, json!([reserved])), WorkloadState::QuotaReserved);
    assert_eq!(state(false, json!([evicted])), WorkloadState::Deactivated);
    let finished = condition("Finished", "True", "Succeeded", "");
    assert_eq!(state(false, json!([finished, reserved])), WorkloadState::Finished);
}

#[test]
fn a_workload_without_a_local_queue_says_so() {
    let inputs = ExplanationInputs::default();
    expect![[r#"
        Workload:    team-a/job-train-1f
        Job:         Job/train
        Queue:       gpu (no LocalQueue of this name)
        Priority:    5
        State:       Pending
        Pod sets:
          NAME   PODS   RESOURCE   AMOUNT   FLAVOR
          main   4
          log    1
    "#]]
    .assert_eq(&explained(&workload(true, &json!({})), &inputs).text(false));
}

#[test]
fn a_job_without_a_workload_is_explained_by_the_last_warning_about_it() {
    let event = |kind: &str, name: &str, event_type: &str, note: &str, at: &str| -> Event {
        let event = json!({
            "metadata": {"name": note}, "eventTime": format!("2026-11-24T11:{at}:00.000000Z"),
            "type": event_type, "reason": "FailedToCreateWorkload", "note": note,
            "reportingController": "batch/job-kueue-controller",
            "regarding": {"kind": kind, "name": name},
        });
        serde_json::from_value(event).expect("an Event")
    };
    let mut of_another_program = event("Job", "train", "Warning", "no pods", "59");
    of_another_program.reporting_controller = Some("job-controller".to_owned());
    let events = [
        event("Job", "train", "Warning", "exceeded quota", "57"),
        event("Job", "train", "Warning", "a policy says no", "58"),
        event("Job", "train", "Normal", "created", "59"),
        event("Job", "other", "Warning", "another job", "59"),
        event("RayJob", "train", "Warning", "another kind", "59"),
        of_another_program,
    ];
    let lines = |events: &[Event]| {
        let all = refusals(&"job/train".parse().expect("a name"), events);
        let all = all.into_iter();
        all.map(|one| format!("{}: {}", one.line.object, one.line.message)).collect::<Vec<_>>()
    };
    assert_eq!(lines(&events), ["Job/train: a policy says no"]);
    let of = |mut event: Event, reason: &str, uid: &str| {
        event.reason = Some(reason.to_owned());
        event.regarding.get_or_insert_default().uid = Some(uid.to_owned());
        event
    };
    let refused = |note: &str, at: &str, uid: &str| {
        of(event("Job", "train", "Warning", note, at), "FailedToCreateWorkload", uid)
    };
    let made = |at: &str| of(event("Job", "train", "Normal", "made", at), "CreatedWorkload", "1");
    let before = refused("no", "50", "1");
    assert_eq!(lines(&[before.clone(), made("51")]), [""; 0], "it has had a Workload since");
    assert_eq!(lines(&[before.clone(), made("49")]), ["Job/train: no"]);
    let both = [before, refused("no more", "55", "2")];
    assert_eq!(lines(&both), ["Job/train: no more", "Job/train: no"], "by job, newest first");
}
