use expect_test::expect;
use serde_json::{Value, json};

use super::*;
use crate::output::{HumanText, OutputFormat, render};

fn read<K: serde::de::DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).expect("an object")
}

fn cluster(name: &str, active: &Value) -> MultiKueueCluster {
    read(json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueCluster",
        "metadata": {"name": name, "labels": {"zone": name},
            "annotations": {"sluice.dev/token-expires": "2026-12-01T00:00:00Z"}},
        "spec": {"clusterSource": {"kubeConfig": {"location": name}}},
        "status": {"conditions": active},
    }))
}

fn active(status: &str, reason: &str, message: &str) -> Value {
    json!([{"type": "Active", "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-11-24T11:00:00Z"}])
}

fn objects() -> ClusterObjects {
    let report = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "ClusterCapacity", "metadata": {"name": "east"},
        "status": {"protocol": 1, "mode": "Thin", "reportedAt": "2026-11-24T11:59:53Z",
            "kinds": [{"group": "batch", "version": "v1", "kind": "Job"}, {"version": "v1", "kind": "Pod"}],
            "nodeClasses": [
                {"count": 3, "free": {"cpu": "8", "memory": "64Gi", "pods": "100"}, "size": {"cpu": "32", "memory": "256Gi", "pods": "110"}},
                {"count": 2, "free": {"cpu": "500m", "memory": "1536Mi", "nvidia.com/gpu": "4"}, "size": {"cpu": "32", "memory": "256Gi", "nvidia.com/gpu": "8"}},
            ],
            "pending": {"own": 1, "others": 0}, "running": {"own": 2, "others": 5}},
    });
    let policy = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "DispatchPolicy", "metadata": {"name": "all"},
        "spec": {
            "clusterSelector": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["west", "north"]}]},
            "clusters": [{"name": "west", "drain": {"deadline": "2026-11-24T13:00:00Z"}}, {"name": "east", "weight": 2}],
        },
    });
    let config = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueConfig",
        "metadata": {"name": "workers", "annotations": {"sluice.dev/policy": "all"}},
        "spec": {"clusters": ["east"]},
    });
    let workload = |name: &str, status: Value| -> Workload {
        read(json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
            "metadata": {"name": name, "namespace": "team-a"}, "status": status}))
    };
    ClusterObjects {
        clusters: vec![
            cluster("west", &active("False", "ClientConnectionFailed", "no answer\nin 5 s")),
            cluster("east", &active("True", "Active", "Connected")),
            cluster("new", &json!([])),
        ],
        capacities: vec![read(report)],
        configs: vec![read(config)],
        policies: vec![read(policy)],
        workloads: vec![
            workload("runs", json!({"clusterName": "east"})),
            workload("next", json!({"nominatedClusterNames": ["east"]})),
            workload(
                "over",
                json!({"clusterName": "east", "conditions": [{"type": "Finished", "status": "True"}]}),
            ),
            workload("pending", json!({})),
        ],
    }
}

fn list() -> ClusterList {
    ClusterList::of(&objects(), "2026-11-24T12:00:00Z".parse().expect("a time"))
}

#[test]
fn the_table_shows_connection_report_room_work_and_drain() {
    expect![[r#"
        NAME   ACTIVE    REASON                   REPORT   NODES   CPU FREE   MEMORY FREE   NVIDIA.COM/GPU FREE   WORKLOADS   DRAIN
        east   True      Active                   7s ago   5       25/160     195Gi/1.2Ti   8/16                  2           -
        new    Unknown   -                        -        -       -          -             -                     0           -
        west   False     ClientConnectionFailed   -        -       -          -             -                     0           2026-11-24T13:00:00Z
    "#]].assert_eq(&list().text(false));
}

#[test]
fn the_wide_table_adds_resources_configurations_token_and_message() {
    expect![[r#"
        NAME   ACTIVE    REASON                   REPORT   NODES   CPU FREE   MEMORY FREE   NVIDIA.COM/GPU FREE   PODS FREE   WORKLOADS   DRAIN                  MODE   CONFIGS   TOKEN EXPIRES          MESSAGE
        east   True      Active                   7s ago   5       25/160     195Gi/1.2Ti   8/16                  300/330     2           -                      Thin   workers   2026-12-01T00:00:00Z   Connected
        new    Unknown   -                        -        -       -          -             -                     -           0           -                      -      -         2026-12-01T00:00:00Z   -
        west   False     ClientConnectionFailed   -        -       -          -             -                     -           0           2026-11-24T13:00:00Z   -      workers   2026-12-01T00:00:00Z   no answer in 5 s
    "#]].assert_eq(&list().text(true));
}

#[test]
fn json_holds_exact_amounts_and_times() {
    expect![[r#"
        {
          "clusters": [
            {
              "name": "east",
              "active": "True",
              "reason": "Active",
              "message": "Connected",
              "configs": [
                "workers"
              ],
              "capacity": {
                "mode": "Thin",
                "reportedAt": "2026-11-24T11:59:53Z",
                "ageSeconds": 7,
                "nodes": 5,
                "resources": {
                  "cpu": {
                    "free": "25",
                    "total": "160"
                  },
                  "memory": {
                    "free": "195Gi",
                    "total": "1280Gi"
                  },
                  "nvidia.com/gpu": {
                    "free": "8",
                    "total": "16"
                  },
                  "pods": {
                    "free": "300",
                    "total": "330"
                  }
                },
                "pending": 1,
                "running": 2,
                "kinds": [
                  "batch/v1/Job",
                  "v1/Pod"
                ]
              },
              "workloads": 2,
              "tokenExpires": "2026-12-01T00:00:00Z"
            },
            {
              "name": "new",
              "active": "Unknown",
              "reason": "",
              "message": "",
              "configs": [],
              "workloads": 0,
              "tokenExpires": "2026-12-01T00:00:00Z"
            },
            {
              "name": "west",
              "active": "False",
              "reason": "ClientConnectionFailed",
              "message": "no answer\nin 5 s",
              "configs": [
                "workers"
              ],
              "drain": {
                "policies": [
                  "all"
                ],
                "deadline": "2026-11-24T13:00:00Z"
              },
              "workloads": 0,
              "tokenExpires": "2026-12-01T00:00:00Z"
            }
          ]
        }
    "#]]
    .assert_eq(&render(&list(), OutputFormat::Json).expect("JSON"));
}

#[test]
fn yaml_is_one_document() {
    let one = ClusterList { clusters: list().clusters.split_off(2) };
    expect![[r#"
        clusters:
        - name: west
          active: "False"
          reason: ClientConnectionFailed
          message: |-
            no answer
            in 5 s
          configs:
          - workers
          drain:
            policies:
            - all
            deadline: "2026-11-24T13:00:00Z"
          workloads: 0
          tokenExpires: "2026-12-01T00:00:00Z"
    "#]]
    .assert_eq(&render(&one, OutputFormat::Yaml).expect("YAML"));
}

#[test]
fn without_clusters_the_text_names_the_next_command() {
    let none = ClusterList::of(&ClusterObjects::default(), Timestamp::UNIX_EPOCH);
    expect![[r#"
        No MultiKueueClusters: `sluicectl join` registers a worker.
    "#]]
    .assert_eq(&none.text(false));
}

#[test]
fn a_drain_by_annotations_is_shown_until_its_end() {
    let shown = |annotations: Value| {
        let mut objects = objects();
        let annotations = serde_json::from_value(annotations).expect("annotations");
        objects.clusters[1].metadata.annotations = Some(annotations);
        let list = ClusterList::of(&objects, "2026-11-24T12:00:00Z".parse().expect("a time"));
        let drain = list.clusters[0].drain.as_ref();
        drain.map(|one| (one.text(), one.annotated.as_ref().is_some_and(|one| one.holds)))
    };
    let at = |hour: u32| format!("2026-11-24T{hour}:00:00Z");
    let in_window = |from: u32, until: u32| {
        json!({"sluice.dev/drain": "true", "sluice.dev/drain-deadline": "30m",
            "sluice.dev/drain-window": format!("{}/{}", at(from), at(until))})
    };
    let text = |text: &str, holds: bool| Some((text.to_owned(), holds));
    assert_eq!(shown(json!({})), None);
    assert_eq!(shown(json!({"sluice.dev/drain": "true"})), text("no deadline", true));
    assert_eq!(shown(in_window(13, 14)), text("from 2026-11-24T13:00:00Z", false));
    assert_eq!(shown(in_window(12, 14)), text("2026-11-24T12:30:00Z", true));
    assert_eq!(shown(in_window(10, 12)), None, "it is over");
    assert_eq!(shown(json!({"sluice.dev/drain": "yes"})), text("invalid", false));
}
