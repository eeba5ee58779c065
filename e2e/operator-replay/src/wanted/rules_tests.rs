//! Which steps and differences the rules are about.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::reason;
use crate::verdict::Moment;

/// Looks at a step that has these objects before and after it.
pub(super) fn at<T>(before: &[Value], after: &[Value], look: impl Fn(&Moment<'_>) -> T) -> T {
    let by_id = |objects: &[Value]| -> BTreeMap<String, Value> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let id = |it: &Value| format!("{}/{}", text(&it["kind"]), text(&it["metadata"]["name"]));
        objects.iter().map(|it| (id(it), it.clone())).collect()
    };
    let (before, after) = (by_id(before), by_id(after));
    look(&Moment { step: &json!({}), before: &before, after: &after })
}

fn explains(object: &Value, difference: &str) -> bool {
    at(&[], std::slice::from_ref(object), |moment| reason(moment, difference).is_some())
}

#[test]
fn a_rule_explains_only_what_follows_from_it() {
    let group = |replicas| json!({"replicas": replicas, "minReplicas": 0, "maxReplicas": 3});
    let cluster = |replicas| json!({"kind": "RayCluster", "spec": {"group": group(replicas)}});
    let sum = "step 0: RayCluster/c1.status.desiredCPU";
    assert!(explains(&cluster(4), sum) && explains(&cluster(-1), sum));
    assert!(!explains(&cluster(3), sum));
    assert!(!explains(&cluster(4), "step 0: Pod/x is missing"));
    assert!(explains(&json!({"groupName": "headgroup"}), "any"));
}

#[test]
fn an_old_version_of_ray_concerns_jobs_with_metadata() {
    let job = |version: &str| {
        json!({
            "entrypoint": "x", "metadata": {"a": "b"}, "rayClusterSpec": {"rayVersion": version},
        })
    };
    for version in ["2.5.1", "nightly", "2.53.0rc1", "1"] {
        assert!(explains(&json!({"spec": job(version)}), "any"), "{version}");
    }
    for version in ["", "2.6.0", "2.6", "v2.53.0", "3"] {
        assert!(!explains(&json!({"spec": job(version)}), "any"), "{version}");
    }
}

#[test]
fn a_long_account_concerns_autoscaled_heads() {
    let head = |account: &str| {
        let template = json!({"spec": {"serviceAccountName": account}});
        json!({"enableInTreeAutoscaling": true, "headGroupSpec": {"template": template}})
    };
    assert!(explains(&head(&"a".repeat(51)), "any") && explains(&head("1a"), "any"));
    assert!(!explains(&head("a"), "any"));
}

#[test]
fn a_suspension_that_has_not_ended_concerns_both_conditions() {
    let status = |suspended: &str| {
        json!({"conditions": [
            {"type": "RayClusterSuspending", "status": "True"},
            {"type": "RayClusterSuspended", "status": suspended},
        ]})
    };
    assert!(explains(&status("True"), "any"));
    assert!(!explains(&status("False"), "any"));
}

#[test]
fn a_rule_about_one_place_explains_no_other() {
    let stop = "step 1: no request POST http://h:8265/api/jobs//stop";
    assert!(explains(&json!({"submissionMode": "InteractiveMode"}), stop));
    assert!(!explains(&json!({"submissionMode": "HTTPMode"}), stop));
    let labels = json!({"app.kubernetes.io/name": "mine"});
    let template = json!({"metadata": {"labels": labels}});
    let renamed = json!({"headGroupSpec": {"template": template}});
    let selector = |key: &str| format!("step 0: Service/rj-head-svc.spec.selector.{key}");
    assert!(explains(&renamed, &selector("app.kubernetes.io/name")));
    assert!(!explains(&renamed, &selector("app")));
    let waiting = json!({
        "kind": "RayJob", "metadata": {"name": "j"}, "spec": {"suspend": true},
        "status": {"jobDeploymentStatus": "Waiting"},
    });
    assert!(explains(&waiting, "step 1: RayJob/j.status.jobDeploymentStatus"));
}

#[test]
fn only_the_submitter_that_is_gone_is_made_again() {
    let job = json!({
        "kind": "RayJob", "metadata": {"name": "j"}, "spec": {"submissionMode": "K8sJobMode"},
        "status": {"jobDeploymentStatus": "Running"},
    });
    assert!(explains(&job, "step 1 (a): Job/j is not recorded"));
    assert!(explains(&job, "step 1 (a): RayJob/j: event CreatedRayJobSubmitter is not recorded"));
    assert!(!explains(&job, "step 1 (a): RayJob/k is not recorded"));
    assert!(!explains(&job, "step 1 (a): RayJob/j: event SubmittedRayJob is not recorded"));
}

#[test]
fn a_worker_that_waits_by_itself_is_not_made_by_the_official_operator() {
    let cluster = |container: &str, replicas: u64| {
        let template = json!({"spec": {"initContainers": [{"name": container}]}});
        let group = json!({"groupName": "g", "replicas": replicas, "template": template});
        json!({
            "kind": "RayCluster", "metadata": {"name": "c"}, "spec": {"workerGroupSpecs": [group]},
        })
    };
    let pod = |group: &str| {
        let labels = json!({"ray.io/cluster": "c", "ray.io/group": group});
        json!({"kind": "Pod", "metadata": {"name": group, "labels": labels}})
    };
    let found = |objects: &[Value]| {
        let difference = "step 0: Pod/c-g-worker-<r1> is not recorded";
        at(&[], objects, |moment| reason(moment, difference).is_some())
    };
    let own = || cluster("wait-gcs-ready", 1);
    assert!(found(&[own(), pod("headgroup")]));
    assert!(!found(&[own()]), "there is no head either");
    assert!(!found(&[own(), pod("headgroup"), pod("g")]), "none was added");
    for cluster in [cluster("other", 1), cluster("wait-gcs-ready", 0)] {
        assert!(!found(&[cluster, pod("headgroup")]));
    }
}
