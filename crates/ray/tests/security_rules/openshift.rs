//! Objects of clusters on OpenShift, and their end.

use ray::{
    security::ClusterPlatform,
    step::{RayAnswer, RayRefusal, RayStep},
};
use serde_json::{Value, json};

use crate::fixture::{applied, decide, object, old_cluster, settings};

/// The steps about a cluster on OpenShift that has its finalizer.
fn on_openshift(mut change: impl FnMut(&mut Value), children: &[Value]) -> Vec<RayStep> {
    let settings = settings(true, false, ClusterPlatform::OpenShift);
    let mut cluster = old_cluster();
    cluster["metadata"]["finalizers"] = json!(["ray.openshift.ai/oauth-finalizer"]);
    change(&mut cluster);
    decide(&cluster, children, &[], &settings)
}

#[test]
fn openshift_gets_routes_and_the_access_of_the_proxy() {
    let steps = on_openshift(|_| (), &[]);
    assert_eq!(
        applied(&steps),
        [
            "NetworkPolicy/c-head",
            "NetworkPolicy/c-workers",
            "ServiceAccount/c-oauth-proxy",
            "Secret/c-oauth-config",
            "Service/c-oauth",
            "ClusterRoleBinding/c-ns-auth",
            "Route/ray-dashboard-c",
            "Route/rayclient-c",
        ]
    );
    let route = object(&steps, "Route/ray-dashboard-c");
    assert_eq!(
        route["spec"],
        json!({
            "to": {"kind": "Service", "name": "c-oauth"},
            "port": {"targetPort": "oauth-proxy"},
            "tls": {"termination": "reencrypt", "insecureEdgeTerminationPolicy": "Redirect"},
        })
    );
    let client = object(&steps, "Route/rayclient-c");
    assert_eq!(client["spec"]["tls"], json!({"termination": "passthrough"}));
    assert_eq!(client["spec"]["to"]["name"], "c-head-svc");
    let service = object(&steps, "Service/c-oauth");
    let annotation = "service.beta.openshift.io/serving-cert-secret-name";
    assert_eq!(service["metadata"]["annotations"][annotation], "c-proxy-tls-secret");
    assert_eq!(service["spec"]["ports"][0]["port"], 443);
    let account = object(&steps, "ServiceAccount/c-oauth-proxy");
    let annotation = "serviceaccounts.openshift.io/oauth-redirectreference.first";
    let reference = account["metadata"]["annotations"][annotation].as_str().expect("a reference");
    let reference: Value = serde_json::from_str(reference).expect("JSON");
    assert_eq!(reference["reference"], json!({"kind": "Route", "name": "ray-dashboard-c"}));
    let binding = object(&steps, "ClusterRoleBinding/c-ns-auth");
    assert!(binding["metadata"]["namespace"].is_null());
    assert_eq!(binding["roleRef"]["name"], "system:auth-delegator");
    assert_eq!(binding["subjects"][0]["name"], "c-oauth-proxy");
    let cookie = &object(&steps, "Secret/c-oauth-config")["stringData"]["cookie_secret"];
    assert_eq!(cookie.as_str().map(str::len), Some(28), "base64 of a SHA-1");
}

#[test]
fn a_suspended_cluster_has_policies_only() {
    let steps = on_openshift(|cluster| cluster["status"]["state"] = json!("suspended"), &[]);
    assert_eq!(applied(&steps), ["NetworkPolicy/c-head", "NetworkPolicy/c-workers"]);
}

#[test]
fn a_cluster_at_rest_costs_no_write() {
    let stored = |mut object: Value| {
        object["metadata"]["uid"] = json!("x");
        // A default of the API server.
        if object["kind"] == "Service" {
            object["spec"]["ports"][0]["nodePort"] = json!(30_000);
        }
        object
    };
    let steps = on_openshift(|_| (), &[]);
    let mut children: Vec<Value> =
        applied(&steps).iter().map(|id| stored(object(&steps, id))).collect();
    assert!(applied(&on_openshift(|_| (), &children)).is_empty());
    children[0]["spec"]["ingress"] = json!([{}]);
    let steps = on_openshift(|_| (), &children);
    assert_eq!(applied(&steps), ["NetworkPolicy/c-head"], "a policy that was opened is closed");
}

#[test]
fn a_head_without_the_secrets_of_its_account_is_made_again() {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "c-oauth-proxy", "labels": {"ray.io/cluster": "c"}},
        "imagePullSecrets": [{"name": "pull"}],
    });
    let head = |secrets: Value| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "c-head-1", "uid": "p",
                "labels": {"ray.io/cluster": "c", "ray.io/node-type": "head"},
                "ownerReferences": [{"kind": "RayCluster", "uid": "u", "controller": true}],
            },
            "spec": {"serviceAccountName": "c-oauth-proxy", "imagePullSecrets": secrets},
        })
    };
    let deletes = |secrets: Value| {
        let steps = on_openshift(|_| (), &[account.clone(), head(secrets)]);
        steps.iter().any(|step| matches!(step, RayStep::Delete(it) if it.uid == "p"))
    };
    assert!(deletes(json!(null)) && !deletes(json!([{"name": "pull"}])));
}

#[test]
fn the_binding_goes_before_the_finalizer() {
    let binding = |namespace: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "c-ns-auth", "uid": namespace, "labels": {
                "ray.openshift.ai/cluster-name": "c",
                "ray.openshift.ai/cluster-namespace": namespace,
            }},
        })
    };
    let going =
        |cluster: &mut Value| cluster["metadata"]["deletionTimestamp"] = json!("2026-01-01");
    let steps = on_openshift(going, &[binding("ns"), binding("other")]);
    let [RayStep::Delete(target), RayStep::Patch { patch, .. }] = steps.as_slice() else {
        unreachable!("two writes: {steps:?}")
    };
    assert_eq!((target.kind.as_str(), target.uid.as_str()), ("ClusterRoleBinding", "ns"));
    assert_eq!(patch["metadata"]["finalizers"], json!([]));

    let mut cluster = old_cluster();
    cluster["metadata"]["finalizers"] = json!(["ray.openshift.ai/oauth-finalizer"]);
    going(&mut cluster);
    let refused = RayAnswer::Refused(RayRefusal { code: 403, message: "no right".to_owned() });
    let settings = settings(true, false, ClusterPlatform::OpenShift);
    let steps = decide(&cluster, &[binding("ns")], &[refused], &settings);
    let keeps = !steps.iter().any(RayStep::is_order);
    assert!(keeps, "the finalizer stays while the binding does: {steps:?}");
}
