//! What is refused.

use ray::{
    security::{ClusterPlatform, mutate, validate},
    step::{RayAnswer, RayRefusal, RayStep},
};
use serde_json::{Value, json};

use crate::fixture::{config, decide, mutated, old_cluster, ray_cluster, settings};

#[test]
fn refusals_have_the_words_of_codeflare() {
    let config = config(true, true);
    let mut good = mutated(true, true);
    good["status"] = json!({"state": "ready"});
    assert!(validate(&good, Some(&good), &config).is_empty());
    let head = "/spec/headGroupSpec/template/spec";
    let group = "/spec/workerGroupSpecs/0/template/spec";
    let table = [
        (
            "/spec/headGroupSpec/enableIngress".to_owned(),
            json!(true),
            "spec.headGroupSpec.enableIngress: Invalid value: true: RayCluster with enableIngress set to true is not allowed",
        ),
        (format!("{head}/containers/1/image"), json!("mine"), "OAuth Proxy container is immutable"),
        (
            format!("{head}/volumes/0/secret/secretName"),
            json!("mine"),
            "OAuth Proxy TLS Secret volume is immutable",
        ),
        (
            format!("{head}/serviceAccountName"),
            json!("mine"),
            "spec.headGroupSpec.template.spec.serviceAccountName: Invalid value: \"mine\": RayCluster head group service account is immutable",
        ),
        (
            format!("{head}/initContainers/0/image"),
            json!("mine"),
            "create-cert Init Container is immutable",
        ),
        (format!("{group}/initContainers"), json!([]), "create-cert Init Container is immutable"),
        (
            format!("{group}/containers/0/env/1/value"),
            json!("0"),
            "RAY_TLS related environment variables are immutable",
        ),
        (
            format!("{group}/volumes"),
            json!([]),
            "spec.workerGroupSpecs.0.template.spec.volumes: Invalid value: null: ca-vol and server-cert Secret volumes are immutable",
        ),
    ];
    for (pointer, value, words) in table {
        let mut changed = good.clone();
        match changed.pointer_mut(&pointer) {
            Some(field) => *field = value,
            None => changed["spec"]["headGroupSpec"]["enableIngress"] = value,
        }
        let errors = validate(&changed, Some(&good), &config);
        let text: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert!(text.iter().any(|error| error.contains(words)), "{words}: {text:?}");
        changed["metadata"]["deletionTimestamp"] = json!("2026-01-01");
        assert!(validate(&changed, Some(&good), &config).is_empty(), "{words}");
    }
}

#[test]
fn a_new_cluster_without_a_name_is_refused() {
    let mut cluster = ray_cluster();
    cluster["metadata"] = json!({"generateName": "c-", "namespace": "ns"});
    let before = cluster.clone();
    mutate(&mut cluster, None, &config(true, true));
    assert_eq!(cluster, before);
    let errors = validate(&cluster, None, &config(true, true));
    assert!(errors[0].to_string().starts_with("metadata.name: Required value"), "{errors:?}");
}

#[test]
fn a_secured_cluster_with_an_ingress_of_its_own_is_not_run() {
    let settings = settings(false, false, ClusterPlatform::Kubernetes);
    let mut cluster = old_cluster();
    cluster["spec"]["headGroupSpec"]["enableIngress"] = json!(true);
    let done = RayAnswer::Done(json!({}).into());
    let steps = decide(&cluster, &[], &vec![done; 4], &settings);
    let words = "RayCluster with enableIngress set to true is not allowed";
    let refused = steps.iter().any(|step| {
        matches!(step, RayStep::Event(event) if event.warning && event.message.contains(words))
    });
    assert!(refused && !steps.iter().any(RayStep::is_order), "{steps:?}");
}

/// Its quota must come back.
#[test]
fn a_cluster_that_cannot_be_secured_is_suspended_all_the_same() {
    let settings = settings(true, true, ClusterPlatform::Kubernetes);
    let mut cluster = ray_cluster();
    cluster["spec"]["suspend"] = json!(true);
    let child = |kind: &str, name: &str| {
        let owner = json!({"kind": "RayCluster", "name": "c", "uid": "u", "controller": true});
        let metadata = json!({
            "name": name, "namespace": "ns", "uid": name, "ownerReferences": [owner],
            "labels": {"ray.io/cluster": "c", "ray.io/node-type": "head"},
        });
        json!({"apiVersion": "v1", "kind": kind, "metadata": metadata})
    };
    let children = [child("Pod", "c-head"), child("Service", "c-head-svc")];
    let run = |cluster: &Value| {
        let refusal = RayRefusal { code: 403, message: "denied".to_owned() };
        let (mut orders, mut answers) = (Vec::new(), vec![RayAnswer::Refused(refusal)]);
        loop {
            let steps = decide(cluster, &children, &answers, &settings);
            if !steps.iter().any(RayStep::is_order) {
                return (orders, steps);
            }
            answers.extend(steps.iter().map(|_| RayAnswer::Done(json!({}).into())));
            orders.extend(steps);
        }
    };
    let (_, ends) = run(&cluster);
    let explains = |step: &RayStep| matches!(step, RayStep::Event(event) if event.message == "cannot secure RayCluster: denied");
    assert!(ends.iter().any(explains), "{ends:?}");
    let status = ends.iter().find_map(|step| match step {
        RayStep::ReplaceStatus(status) => Some(status.clone()),
        _ => None,
    });
    cluster["status"] = status.expect("a status");
    assert!(cluster["status"].to_string().contains("RayClusterSuspending"), "{cluster}");
    let (orders, _) = run(&cluster);
    let deletes = |step: &RayStep| matches!(step, RayStep::Delete(pod) if pod.name == "c-head");
    assert!(orders.iter().any(deletes), "{orders:?}");
    cluster["spec"]["suspend"] = json!(false);
    cluster["status"] = json!({});
    let (orders, _) = run(&cluster);
    let is_pod = |step: &RayStep| matches!(step, RayStep::Create(it) if it["kind"] == "Pod");
    assert!(!orders.iter().any(is_pod), "a pod would lack its certificate");
}
