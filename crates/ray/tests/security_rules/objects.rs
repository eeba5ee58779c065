//! Objects of clusters on a plain Kubernetes.

use jiff::Timestamp;
use ray::{
    PassInputs, cluster,
    security::ClusterPlatform,
    step::{RayAnswer, RayRefusal, RayStep},
};
use serde_json::{Value, json};

use crate::fixture::{applied, decide, object, old_cluster, settings};

#[test]
fn a_plain_cluster_without_oauth_gets_policies_a_ca_and_ingresses() {
    let settings = settings(false, true, ClusterPlatform::Kubernetes);
    let cluster = old_cluster();
    let steps = decide(&cluster, &[], &[], &settings);
    assert_eq!(
        applied(&steps),
        [
            "NetworkPolicy/c-head",
            "NetworkPolicy/c-workers",
            "Secret/ca-secret-c",
            "Ingress/ray-dashboard-c",
            "Ingress/rayclient-c",
        ]
    );
    let dashboard = object(&steps, "Ingress/ray-dashboard-c");
    let rule = &dashboard["spec"]["rules"][0];
    assert_eq!(rule["host"], "ray-dashboard-c-ns.example.com");
    let path = &rule["http"]["paths"][0];
    assert_eq!((&path["path"], &path["pathType"]), (&json!("/"), &json!("Prefix")));
    let backend = json!({"service": {"name": "c-head-svc", "port": {"name": "dashboard"}}});
    assert_eq!(path["backend"], backend);
    let client = object(&steps, "Ingress/rayclient-c");
    assert_eq!(client["spec"]["ingressClassName"], "nginx");
    let port = &client["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["port"];
    assert_eq!(*port, json!({"number": 10001}));
    let owner = &client["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["uid"]), (&json!("RayCluster"), &json!("u")));
}

#[test]
fn only_pods_of_the_cluster_reach_workers() {
    let settings = settings(false, false, ClusterPlatform::Kubernetes);
    let steps = decide(&old_cluster(), &[], &[], &settings);
    let workers = object(&steps, "NetworkPolicy/c-workers");
    let own = json!([{"podSelector": {"matchLabels": {"ray.io/cluster": "c"}}}]);
    assert_eq!(workers["spec"]["ingress"], json!([{"from": own}]));
    let labels = json!({"ray.io/cluster": "c", "ray.io/node-type": "worker"});
    assert_eq!(workers["spec"]["podSelector"]["matchLabels"], labels);
    let head = object(&steps, "NetworkPolicy/c-head");
    let rules = head["spec"]["ingress"].as_array().expect("rules");
    assert_eq!(rules[0], json!({"from": own}));
    let ports = |rule: &Value| -> Vec<u64> {
        let ports = rule["ports"].as_array().expect("ports").iter();
        ports.filter_map(|port| port["port"].as_u64()).collect()
    };
    assert_eq!(ports(&rules[1]), [10001, 8265]);
    assert_eq!(ports(&rules[2]), [8265, 10001]);
    assert_eq!(ports(&rules[3]), [8080]);
    assert_eq!(ports(&rules[4]), [8443]);
    assert!(rules[4]["from"].is_null(), "from anywhere");
    let steps = {
        let settings = self::settings(false, true, ClusterPlatform::Kubernetes);
        decide(&old_cluster(), &[], &[], &settings)
    };
    let encrypted = object(&steps, "NetworkPolicy/c-head");
    assert_eq!(ports(&encrypted["spec"]["ingress"][4]), [8443, 10001]);
}

#[test]
fn neither_ingress_nor_route_where_oauth_and_platform_do_not_fit() {
    for (oauth, platform) in
        [(true, ClusterPlatform::Kubernetes), (false, ClusterPlatform::OpenShift)]
    {
        let settings = settings(oauth, false, platform);
        let steps = decide(&old_cluster(), &[], &[], &settings);
        let policies = ["NetworkPolicy/c-head", "NetworkPolicy/c-workers"];
        assert_eq!(applied(&steps), policies, "{oauth} {platform:?}");
    }
}

#[test]
fn a_secret_of_another_program_gets_the_label_and_keeps_its_content() {
    let settings = settings(false, true, ClusterPlatform::Kubernetes);
    let cluster = old_cluster();
    let done = RayAnswer::Done(json!({}).into());
    let exists = RayAnswer::Refused(RayRefusal { code: 409, message: "exists".to_owned() });
    let steps = decide(&cluster, &[], &[done.clone(), done, exists], &settings);
    let secret = object(&steps, "Secret/ca-secret-c");
    assert_eq!(secret["metadata"]["labels"]["ray.io/cluster"], "c");
    assert!(secret.get("stringData").is_none() && secret.get("type").is_none());
}

#[test]
fn a_policy_that_is_refused_keeps_pods_back() {
    let settings = settings(false, false, ClusterPlatform::Kubernetes);
    let refused = RayAnswer::Refused(RayRefusal { code: 403, message: "no right".to_owned() });
    let done = RayAnswer::Done(json!({}).into());
    let answers = [refused, done.clone(), done.clone(), done];
    let steps = decide(&old_cluster(), &[], &answers, &settings);
    let made = |kind: &str| {
        steps.iter().any(|step| matches!(step, RayStep::Create(it) if it["kind"] == kind))
    };
    assert!(!made("Pod") && !made("Service"), "{steps:?}");
    let message = steps.iter().find_map(|step| match step {
        RayStep::Event(event) => Some(event.message.clone()),
        _ => None,
    });
    assert_eq!(message.as_deref(), Some("cannot write NetworkPolicy c-head: no right"));
}

/// Its quota must come back.
#[test]
fn a_policy_that_is_refused_keeps_no_cluster_from_its_suspension() {
    let settings = settings(false, false, ClusterPlatform::Kubernetes);
    let mut cluster = old_cluster();
    cluster["spec"]["suspend"] = json!(true);
    cluster["status"]["conditions"] = json!([{"type": "RayClusterSuspending", "status": "True"}]);
    let head = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "c-head-x", "uid": "p",
            "labels": {"ray.io/cluster": "c", "ray.io/node-type": "head"},
            "ownerReferences": [{"kind": "RayCluster", "uid": "u", "controller": true}],
        },
    });
    let refused = RayAnswer::Refused(RayRefusal { code: 403, message: "no right".to_owned() });
    let done = RayAnswer::Done(json!({}).into());
    let answers = [refused, done.clone(), done.clone(), done];
    let steps = decide(&cluster, &[head], &answers, &settings);
    let is_deletion = |step: &RayStep| matches!(step, RayStep::Delete(it) if it.uid == "p");
    assert!(steps.iter().any(is_deletion), "{steps:?}");
}

#[test]
fn an_ingress_that_is_not_of_the_cluster_stays_as_it_is() {
    let settings = settings(false, false, ClusterPlatform::Kubernetes);
    let ingress = |owners: Value| {
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "spec": {},
            "metadata": {"name": "ray-dashboard-c", "namespace": "ns", "ownerReferences": owners},
        })
    };
    let of_user = ingress(json!([]));
    let steps = decide(&old_cluster(), std::slice::from_ref(&of_user), &[], &settings);
    let others = ["NetworkPolicy/c-head", "NetworkPolicy/c-workers", "Ingress/rayclient-c"];
    assert_eq!(applied(&steps), others);
    // CodeFlare's objects have the cluster as an owner, and lack the label.
    let of_code_flare = ingress(json!([{"kind": "RayCluster", "name": "c", "uid": "u"}]));
    let steps = decide(&old_cluster(), &[of_code_flare], &[], &settings);
    assert!(applied(&steps).contains(&"Ingress/ray-dashboard-c".to_owned()), "adopted");

    let refused = RayAnswer::Refused(RayRefusal { code: 403, message: "no right".to_owned() });
    let steps = decide(&old_cluster(), &[of_user], &vec![refused; 9], &settings);
    let says = |step: &RayStep| match step {
        RayStep::Event(event) => {
            event.warning
                && event.message
                    == "Ingress ray-dashboard-c already exists and is not owned by this RayCluster"
        }
        _ => false,
    };
    assert!(steps.iter().any(says), "{steps:?}");
}

/// Without its label no watch shows an object of a user.
#[test]
fn ways_from_outside_are_looked_up_by_name() {
    let ways = |cluster: &Value, oauth, platform| -> Vec<String> {
        let inputs = PassInputs { now: Timestamp::UNIX_EPOCH, seed: [1; 32] };
        let settings = settings(oauth, false, platform);
        let targets = cluster::named_objects(cluster, &inputs, &settings);
        targets.into_iter().map(|it| format!("{}/{}", it.kind, it.name)).collect()
    };
    let cluster = old_cluster();
    let ingresses = ways(&cluster, false, ClusterPlatform::Kubernetes);
    assert_eq!(ingresses, ["Ingress/ray-dashboard-c", "Ingress/rayclient-c"]);
    let routes = ways(&cluster, true, ClusterPlatform::OpenShift);
    assert_eq!(routes, ["Route/ray-dashboard-c", "Route/rayclient-c"]);
    assert!(ways(&cluster, true, ClusterPlatform::Kubernetes).is_empty());
    let mut suspended = cluster;
    suspended["status"]["state"] = json!("suspended");
    assert!(ways(&suspended, true, ClusterPlatform::OpenShift).is_empty());
}
