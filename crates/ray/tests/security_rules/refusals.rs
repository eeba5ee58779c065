//! What is refused.

use ray::{
    security::{ClusterPlatform, mutate, validate},
    step::{RayAnswer, RayStep},
};
use serde_json::json;

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
