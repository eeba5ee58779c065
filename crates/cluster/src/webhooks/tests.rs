use axum::body::Body;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::*;

async fn ask(path: &str, rules: Rules, body: Value) -> Value {
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(Body::from(body.to_string()))
        .expect("a request");
    let response = router(rules, jobs::tests::unused()).oneshot(request).await.expect("a response");
    assert_eq!(response.status(), 200);
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    serde_json::from_slice(&bytes).expect("JSON")
}

fn review(object: &Value, old: &Value) -> Value {
    let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "u", "operation": operation, "object": object, "oldObject": old},
    })
}

fn object(kind: &str, spec: &Value) -> Value {
    json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": "x"}, "spec": spec})
}

async fn refusal(kind: &str, new: Value, old: Value, rules: Rules) -> Option<String> {
    let path = format!("/validate-kueue-x-k8s-io-v1beta2-{}", kind.to_lowercase());
    let answer = ask(&path, rules, review(&new, &old)).await;
    assert_eq!(answer["response"]["uid"], "u");
    let message = answer["response"]["status"]["message"].as_str().map(str::to_owned);
    assert_eq!(answer["response"]["allowed"], message.is_none());
    message
}

#[tokio::test]
async fn several_errors_are_listed_in_brackets() {
    let spec = json!({"cohortName": "c", "resourceGroups": [{
        "coveredResources": ["cpu"],
        "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": "-1", "borrowingLimit": "-2"}]}],
    }]});
    let message =
        refusal("ClusterQueue", object("ClusterQueue", &spec), Value::Null, Rules::default()).await;
    let field = "spec.resourceGroups[0].flavors[0].resources[0]";
    let negative = "must be greater than or equal to 0";
    assert_eq!(
        message.as_deref(),
        Some(format!(
            "[{field}.nominalQuota: Invalid value: \"-1\": {negative}, {field}.borrowingLimit: Invalid value: \"-2\": {negative}]"
        ).as_str())
    );
}

#[tokio::test]
async fn a_feature_gate_selects_the_rules() {
    let spec = json!({"queueingStrategy": "StrictFIFO", "concurrentAdmissionPolicy": {"migration": {"mode": "TryPreferredFlavors"}}});
    let queue = object("ClusterQueue", &spec);
    assert_eq!(refusal("ClusterQueue", queue.clone(), Value::Null, Rules::default()).await, None);
    let rules = Rules { concurrent_admission: true, ..Rules::default() };
    assert!(refusal("ClusterQueue", queue, Value::Null, rules).await.is_some());
}

#[tokio::test]
async fn an_undecodable_object_is_a_bad_request_that_names_the_field() {
    let path = "/mutate-kueue-x-k8s-io-v1beta2-clusterqueue";
    let queue = object("ClusterQueue", &json!({"stopPolicy": 1}));
    let answer = ask(path, Rules::default(), review(&queue, &Value::Null)).await;
    let status = &answer["response"]["status"];
    assert_eq!(status["code"], 400);
    let message = status["message"].as_str().expect("a message");
    assert!(message.starts_with("spec.stopPolicy: must be text, not a number"), "{message}");
}

#[tokio::test]
async fn the_finalizer_is_added_once() {
    let path = "/mutate-kueue-x-k8s-io-v1beta2-resourceflavor";
    let mut flavor = object("ResourceFlavor", &json!({}));
    let answer = ask(path, Rules::default(), review(&flavor, &Value::Null)).await;
    assert_eq!(answer["response"]["patchType"], "JSONPatch");
    flavor["metadata"]["finalizers"] = json!(["kueue.x-k8s.io/resource-in-use"]);
    let answer = ask(path, Rules::default(), review(&flavor, &Value::Null)).await;
    assert_eq!(answer["response"], json!({"uid": "u", "allowed": true}));
}

#[tokio::test]
async fn a_conversion_converts_all_objects_or_none() {
    let queue = object("LocalQueue", &json!({"clusterQueue": "cq"}));
    let ask_for = |objects: Value| {
        let request =
            json!({"uid": "u", "desiredAPIVersion": "kueue.x-k8s.io/v1beta1", "objects": objects});
        let review = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request});
        ask("/convert", Rules::default(), review)
    };
    let answer = ask_for(json!([queue])).await;
    assert_eq!(answer["response"]["result"]["status"], "Success");
    assert_eq!(answer["response"]["convertedObjects"][0]["apiVersion"], "kueue.x-k8s.io/v1beta1");
    let broken = object("LocalQueue", &json!({"clusterQueue": 1}));
    let answer = ask_for(json!([queue, broken])).await;
    assert_eq!(answer["response"]["result"]["status"], "Failure");
    let message = answer["response"]["result"]["message"].as_str().expect("a message");
    assert!(message.contains("LocalQueue \"x\""), "{message}");
}
