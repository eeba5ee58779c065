//! What is added to RayClusters.

use ray::{
    security::{ClusterPlatform, SecurityConfig, mutate, validate},
    settings::OperatorSettings,
    step::{RayAnswer, RayRefusal, RayStep},
};
use serde_json::{Value, json};

use crate::fixture::{
    applied, config, decide, mutated, old_cluster, ray_cluster, settings, template,
};

#[test]
fn a_new_cluster_is_changed_before_anything_is_made() {
    let settings = settings(true, true, ClusterPlatform::OpenShift);
    let steps = decide(&ray_cluster(), &[], &[], &settings);
    let [RayStep::Patch { target, patch }] = steps.as_slice() else {
        unreachable!("one write: {steps:?}")
    };
    assert_eq!((target.kind.as_str(), target.uid.as_str()), ("RayCluster", "u"));
    assert_eq!(patch["metadata"]["resourceVersion"], "7");
    assert_eq!(patch["metadata"]["finalizers"], json!(["ray.openshift.ai/oauth-finalizer"]));
    assert_eq!(patch["metadata"]["annotations"]["ray.openshift.ai/version"], "v1.16.0");
    let refused = RayAnswer::Refused(RayRefusal { code: 409, message: "changed".to_owned() });
    let steps = decide(&ray_cluster(), &[], &[refused], &settings);
    assert!(matches!(steps.as_slice(), [RayStep::RequeueAfter(_)]), "no pods: {steps:?}");
}

#[test]
fn the_proxy_is_added_to_the_head_only() {
    let cluster = mutated(true, false);
    let head = &cluster["spec"]["headGroupSpec"]["template"]["spec"];
    assert_eq!(head["containers"][0]["name"], "ray");
    assert_eq!(head["containers"][1]["name"], "oauth-proxy");
    let account = head["serviceAccountName"].as_str().expect("an account");
    assert!(account.starts_with("c-oauth-proxy-"), "{account}");
    let args = head["containers"][1]["args"].as_array().expect("arguments");
    assert!(args.contains(&json!(format!("--openshift-service-account={account}"))));
    let urls =
        r#"--openshift-delegate-urls={"/":{"namespace":"ns","resource":"pods","verb":"get"}}"#;
    assert!(args.contains(&json!(urls)), "{args:?}");
    assert_eq!(head["volumes"][0]["name"], "proxy-tls-secret");
    assert_eq!(cluster["spec"]["workerGroupSpecs"][0]["template"], template());
}

#[test]
fn certificates_are_added_to_all_pods() {
    let cluster = mutated(false, true);
    let head = &cluster["spec"]["headGroupSpec"]["template"]["spec"];
    let worker = &cluster["spec"]["workerGroupSpecs"][0]["template"]["spec"];
    for pod in [head, worker] {
        let env = pod["containers"][0]["env"].as_array().expect("variables");
        let names: Vec<&Value> = env.iter().map(|one| &one["name"]).collect();
        let wanted = [
            "MY_POD_IP",
            "RAY_USE_TLS",
            "RAY_TLS_SERVER_CERT",
            "RAY_TLS_SERVER_KEY",
            "RAY_TLS_CA_CERT",
        ];
        assert_eq!(names, wanted);
        assert_eq!(env[4]["value"], "/home/ray/workspace/tls/ca.crt");
        assert_eq!(pod["initContainers"][0]["name"], "create-cert");
        assert_eq!(pod["initContainers"][0]["image"], "certs:1");
        assert_eq!(pod["containers"][0]["volumeMounts"][1]["name"], "server-cert");
        let secret = pod["volumes"][0]["secret"]["secretName"].as_str().expect("a Secret");
        assert!(secret.starts_with("c-ca-secret-"), "{secret}");
        assert!(pod["serviceAccountName"].is_null());
    }
    let names = &head["initContainers"][0]["env"][1]["value"];
    let names = names.as_str().expect("names");
    assert!(names.starts_with(",DNS:c-head-svc.ns.svc,"), "{names}");
    assert!(names.ends_with("-ns.example.com"), "{names}");
    assert_eq!(worker["initContainers"][0]["env"][1]["value"], "");
}

#[test]
fn an_item_of_the_user_with_the_same_name_is_replaced() {
    let mut cluster = ray_cluster();
    let ray = &mut cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0];
    ray["env"] = json!([
        {"name": "A", "value": "b"},
        {"name": "RAY_USE_TLS", "value": "0"},
        {"name": "RAY_USE_TLS", "value": "0"},
    ]);
    mutate(&mut cluster, None, &config(false, true));
    let ray = &cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0];
    let of_name = |name: &str| -> Vec<&Value> {
        let env = ray["env"].as_array().expect("variables").iter();
        env.filter(|one| one["name"] == name).map(|one| &one["value"]).collect()
    };
    assert_eq!(of_name("A"), ["b"]);
    assert_eq!(of_name("RAY_USE_TLS"), ["1"]);
}

/// Such a head is refused later, and not by the mutation.
#[test]
fn a_head_without_containers_gets_its_additions_in_the_first_one() {
    let mut cluster = ray_cluster();
    cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"] = json!([]);
    mutate(&mut cluster, None, &config(true, true));
    let containers = &cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"];
    assert_eq!(containers[0]["name"], "oauth-proxy");
    let env = containers[0]["env"].as_array().expect("variables");
    assert!(env.iter().any(|it| it["name"] == "RAY_USE_TLS"), "{env:?}");
    let once = cluster.clone();
    mutate(&mut cluster, Some(&once), &config(true, true));
    assert_eq!(cluster, once);
}

#[test]
fn a_cluster_that_ran_before_is_left_alone() {
    let before = old_cluster();
    let mut cluster = before.clone();
    mutate(&mut cluster, Some(&before), &config(true, true));
    assert_eq!(cluster, before);
    assert!(validate(&cluster, Some(&before), &config(true, true)).is_empty());
}

#[test]
fn what_was_added_once_stays_whatever_the_settings_say_now() {
    let mut stored = mutated(true, true);
    stored["status"] = json!({"state": "ready"});
    let newer = SecurityConfig { cert_generator_image: "certs:2".to_owned(), ..config(true, true) };
    let mut same = stored.clone();
    mutate(&mut same, Some(&stored), &newer);
    assert_eq!(same, stored);
    assert!(validate(&same, Some(&stored), &newer).is_empty());

    // Settings that are switched on are about new clusters.
    let mut encrypted = mutated(false, true);
    encrypted["status"] = json!({"state": "ready"});
    let mut same = encrypted.clone();
    mutate(&mut same, Some(&encrypted), &newer);
    assert_eq!(same, encrypted);

    // A write that drops everything, and adds a group.
    let mut dropped = ray_cluster();
    let mut further = dropped["spec"]["workerGroupSpecs"][0].clone();
    further["groupName"] = json!("h");
    dropped["spec"]["workerGroupSpecs"] =
        json!([further, ray_cluster()["spec"]["workerGroupSpecs"][0]]);
    mutate(&mut dropped, Some(&stored), &newer);
    let group = |at: usize| &dropped["spec"]["workerGroupSpecs"][at];
    assert_eq!(*group(1), stored["spec"]["workerGroupSpecs"][0]);
    assert_eq!(group(0)["template"]["spec"]["initContainers"][0]["image"], "certs:2");
    assert_eq!(dropped["spec"]["headGroupSpec"], stored["spec"]["headGroupSpec"]);
    assert!(validate(&dropped, Some(&stored), &newer).is_empty());
}

#[test]
fn an_annotation_of_the_user_keeps_no_container_of_the_user() {
    let mut cluster = ray_cluster();
    cluster["metadata"]["annotations"] = json!({"ray.openshift.ai/version": "mine"});
    let containers = &mut cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"];
    *containers = json!([{"name": "ray"}, {"name": "oauth-proxy", "image": "mine"}]);
    mutate(&mut cluster, None, &config(true, false));
    let head = &cluster["spec"]["headGroupSpec"]["template"]["spec"];
    assert_eq!(head["containers"][1]["image"], "proxy:1");
    assert_eq!(cluster["metadata"]["annotations"]["ray.openshift.ai/version"], "mine");
}

#[test]
fn nothing_is_added_unless_an_administrator_asks_for_it() {
    let steps = decide(&ray_cluster(), &[], &[], &OperatorSettings::default());
    assert!(applied(&steps).is_empty());
    assert!(!steps.iter().any(|step| matches!(step, RayStep::Patch { .. })));
}
