use expect_test::expect;
use serde_json::json;

use super::*;
use crate::output::{HumanText, OutputFormat, render};

fn list() -> QueueList {
    let research = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "research"},
        "spec": {"cohortName": "lab", "resourceGroups": [
            {"coveredResources": ["cpu", "memory"], "flavors": [
                {"name": "on-demand", "resources": [
                    {"name": "cpu", "nominalQuota": "64", "borrowingLimit": "16"},
                    {"name": "memory", "nominalQuota": "2Ti"},
                ]},
                {"name": "spot", "resources": [
                    {"name": "cpu", "nominalQuota": "500m", "lendingLimit": "0"},
                    {"name": "memory", "nominalQuota": "0"},
                ]},
            ]},
        ]},
        "status": {
            "pendingWorkloads": 3, "reservingWorkloads": 2, "admittedWorkloads": 1,
            "conditions": [{"type": "Active", "status": "True", "reason": "Ready", "message": "Can admit new workloads"}],
            "flavorsUsage": [{"name": "on-demand", "resources": [{"name": "cpu", "total": "70", "borrowed": "6"},
                {"name": "memory", "total": "1536Gi"}]}],
            "flavorsReservation": [{"name": "on-demand", "resources": [{"name": "cpu", "total": "72", "borrowed": "8"},
                {"name": "memory", "total": "1600Gi"}]}],
        },
    });
    let empty = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "empty"},
        "status": {"conditions": [{"type": "Active", "status": "False", "reason": "Stopped", "message": "is stopped"}]},
    });
    let queues = [research, empty].map(|queue| serde_json::from_value(queue).expect("a queue"));
    QueueList::of(&queues)
}

#[test]
fn the_table_has_a_row_per_flavor_and_resource() {
    expect![[r#"
        QUEUE      PENDING   RESERVING   ADMITTED   FLAVOR      RESOURCE   USED    NOMINAL
        empty      0         0           0          -           -          -       -
        research   3         2           1          on-demand   cpu        70      64
                                                    on-demand   memory     1.5Ti   2Ti
                                                    spot        cpu        0       500m
                                                    spot        memory     0       0
    "#]]
    .assert_eq(&list().text(false));
}

#[test]
fn the_wide_table_adds_reservations_limits_and_state() {
    expect![[r#"
        QUEUE      PENDING   RESERVING   ADMITTED   FLAVOR      RESOURCE   USED    NOMINAL   RESERVED   BORROWED   MAX BORROWED   MAX LENT   COHORT   ACTIVE            MESSAGE
        empty      0         0           0          -           -          -       -         -          -          -              -          -        False (Stopped)   is stopped
        research   3         2           1          on-demand   cpu        70      64        72         8          16             -          lab      True              Can admit new workloads
                                                    on-demand   memory     1.5Ti   2Ti       1.5Ti      0          -              -
                                                    spot        cpu        0       500m      0          0          -              0
                                                    spot        memory     0       0         0          0          -              -
    "#]].assert_eq(&list().text(true));
}

#[test]
fn yaml_holds_every_number() {
    let text = render(&list(), OutputFormat::Yaml).expect("YAML");
    expect![[r#"
        clusterQueues:
        - name: empty
          cohort: ""
          active: "False"
          reason: Stopped
          message: is stopped
          pending: 0
          reserving: 0
          admitted: 0
          quotas: []
        - name: research
          cohort: lab
          active: "True"
          reason: Ready
          message: Can admit new workloads
          pending: 3
          reserving: 2
          admitted: 1
          quotas:
          - flavor: on-demand
            resource: cpu
            used: "70"
            reserved: "72"
            borrowed: "8"
            nominal: "64"
            borrowingLimit: "16"
          - flavor: on-demand
            resource: memory
            used: 1536Gi
            reserved: 1600Gi
            borrowed: "0"
            nominal: 2Ti
          - flavor: spot
            resource: cpu
            used: "0"
            reserved: "0"
            borrowed: "0"
            nominal: 500m
            lendingLimit: "0"
          - flavor: spot
            resource: memory
            used: "0"
            reserved: "0"
            borrowed: "0"
            nominal: "0"
    "#]]
    .assert_eq(&text);
}
