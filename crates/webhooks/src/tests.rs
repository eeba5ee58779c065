use axum::body::Body;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::*;

async fn ask(path: &str, gates: WebhookGates, body: Value) -> Value {
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(Body::from(body.to_string()))
        .expect("a request");
    let response = router(gates, jobs::tests::unused()).oneshot(request).await.expect("a response");
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

async fn refusal(kind: &str, new: Value, old: Value, gates: WebhookGates) -> Option<String> {
    let path = format!("/validate-kueue-x-k8s-io-v1beta2-{}", kind.to_lowercase());
    let answer = ask(&path, gates, review(&new, &old)).await;
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
    let message = refusal(
        "ClusterQueue",
        object("ClusterQueue", &spec),
        Value::Null,
        WebhookGates::default(),
    )
    .await;
    let field = "spec.resourceGroups[0].flavors[0].resources[0]";
    let negative = "must be greater than or equal to 0";
    assert_eq!(
        message.as_deref(),
        Some(format!(
            "[{field}.nominalQuota: Invalid value: \"-1\": {negative}, {field}.borrowingLimit: Invalid value: \"-2\": {negative}]"
        ).as_str())
    );
}

/// Errors come in the order of upstream, which is not the same for both limits.
#[tokio::test]
async fn a_limit_without_a_parent_is_reported_before_or_after_its_sign() {
    let spec = json!({"resourceGroups": [{
        "coveredResources": ["cpu"],
        "flavors": [{"name": "f", "resources": [
            {"name": "cpu", "nominalQuota": "1", "borrowingLimit": "-2", "lendingLimit": "-3"},
        ]}],
    }]});
    for (kind, parent) in [("ClusterQueue", "cohort"), ("Cohort", "parent")] {
        let message =
            refusal(kind, object(kind, &spec), Value::Null, WebhookGates::default()).await;
        let field = "spec.resourceGroups[0].flavors[0].resources[0]";
        let negative = "must be greater than or equal to 0";
        let alone = format!("must be nil when {parent} is empty");
        let expected = format!(
            "[{field}.borrowingLimit: Invalid value: \"-2\": {alone}, {field}.borrowingLimit: Invalid value: \"-2\": {negative}, \
             {field}.lendingLimit: Invalid value: \"-3\": {negative}, {field}.lendingLimit: Invalid value: \"-3\": {alone}]"
        );
        assert_eq!(message, Some(expected), "{kind}");
    }
}

#[tokio::test]
async fn totals_of_a_cluster_queue_are_reported_after_its_other_fields() {
    let groups: Vec<Value> = (0..5)
        .map(|group| {
            let flavors =
                (0..52).map(|at| json!({"name": format!("f{group}-{at}"), "resources": []}));
            json!({"coveredResources": [], "flavors": flavors.collect::<Vec<_>>()})
        })
        .collect();
    let spec = json!({"resourceGroups": groups, "namespaceSelector": {"matchLabels": {"/": "a"}},
        "fairSharing": {"weight": "-1"}});
    let message = refusal(
        "ClusterQueue",
        object("ClusterQueue", &spec),
        Value::Null,
        WebhookGates::default(),
    )
    .await;
    let message = message.expect("it is refused");
    let at = |part: &str| message.find(part).unwrap_or_else(|| panic!("{part}: {message}"));
    let order =
        [at("spec.namespaceSelector"), at("spec.fairSharing"), at("total number of flavors")];
    assert!(order.is_sorted(), "{message}");
}

#[tokio::test]
async fn a_feature_gate_selects_the_rules() {
    let spec = json!({"queueingStrategy": "StrictFIFO", "concurrentAdmissionPolicy": {"migration": {"mode": "TryPreferredFlavors"}}});
    let queue = object("ClusterQueue", &spec);
    assert_eq!(
        refusal("ClusterQueue", queue.clone(), Value::Null, WebhookGates::default()).await,
        None
    );
    let gates = WebhookGates { concurrent_admission: true, ..WebhookGates::default() };
    assert!(refusal("ClusterQueue", queue, Value::Null, gates).await.is_some());
}

#[tokio::test]
async fn an_undecodable_object_is_a_bad_request_that_names_the_field() {
    let path = "/mutate-kueue-x-k8s-io-v1beta2-clusterqueue";
    let queue = object("ClusterQueue", &json!({"stopPolicy": 1}));
    let answer = ask(path, WebhookGates::default(), review(&queue, &Value::Null)).await;
    let status = &answer["response"]["status"];
    assert_eq!(status["code"], 400);
    let message = status["message"].as_str().expect("a message");
    assert!(message.starts_with("spec.stopPolicy: must be text, not a number"), "{message}");
}

#[tokio::test]
async fn the_finalizer_is_added_once() {
    let path = "/mutate-kueue-x-k8s-io-v1beta2-resourceflavor";
    let mut flavor = object("ResourceFlavor", &json!({}));
    let answer = ask(path, WebhookGates::default(), review(&flavor, &Value::Null)).await;
    assert_eq!(answer["response"]["patchType"], "JSONPatch");
    flavor["metadata"]["finalizers"] = json!(["kueue.x-k8s.io/resource-in-use"]);
    let answer = ask(path, WebhookGates::default(), review(&flavor, &Value::Null)).await;
    assert_eq!(answer["response"], json!({"uid": "u", "allowed": true}));
}

#[tokio::test]
async fn a_conversion_converts_all_objects_or_none() {
    let queue = object("LocalQueue", &json!({"clusterQueue": "cq"}));
    let ask_for = |objects: Value| {
        let request =
            json!({"uid": "u", "desiredAPIVersion": "kueue.x-k8s.io/v1beta1", "objects": objects});
        let review = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request});
        ask("/convert", WebhookGates::default(), review)
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

/// A Workload with this status, of one pod set of three pods with these fields.
fn workload(pod_set: &Value, annotations: &Value, status: &Value) -> Value {
    let mut set = json!({"name": "main", "count": 3, "template": {"spec": {"containers": []}}});
    for (name, value) in pod_set.as_object().expect("fields") {
        set[name] = value.clone();
    }
    let mut workload = object("Workload", &json!({"podSets": [set]}));
    workload["metadata"]["annotations"] = annotations.clone();
    workload["status"] = status.clone();
    workload
}

async fn workload_refusal(new: Value, old: Value) -> Option<String> {
    refusal("Workload", new, old, WebhookGates::default()).await
}

#[tokio::test]
async fn limits_of_a_template_have_the_rules_of_requests() {
    let limits = json!({"limits": {"pods": "1", "cpu": "-1"}});
    let container = json!([{"name": "c", "image": "i", "resources": limits}]);
    for (spec, field) in [
        (json!({"containers": container}), "containers[0].resources"),
        (json!({"containers": [], "initContainers": container}), "initContainers[0].resources"),
        (json!({"containers": [], "resources": limits}), "resources"),
    ] {
        let sets = json!({"template": {"spec": spec}});
        let message = workload_refusal(workload(&sets, &json!({}), &json!({})), Value::Null).await;
        let limits = format!("spec.podSets[0].template.spec.{field}.limits");
        let wanted = format!(
            "[{limits}[cpu]: Invalid value: \"-1\": must be greater than or equal to 0, {limits}[pods]: Invalid value: \"pods\": the key is reserved for internal kueue use]"
        );
        assert_eq!(message, Some(wanted));
    }
}

#[tokio::test]
async fn slices_have_a_topology_and_a_size_and_layers_that_divide() {
    let request = |request: Value| {
        workload_refusal(
            workload(&json!({"topologyRequest": request}), &json!({}), &json!({})),
            Value::Null,
        )
    };
    let field = "spec.podSets[0].topologyRequest";
    assert_eq!(
        request(json!({"podSetSliceRequiredTopology": "rack"})).await,
        Some(format!(
            "{field}.podSetSliceSize: Required value: must be set when podSetSliceRequiredTopology is specified"
        ))
    );
    let layers = |sizes: &[(&str, i32)]| {
        let one = |(topology, size): &(&str, i32)| json!({"topology": topology, "size": size});
        let all: Vec<Value> = sizes.iter().map(one).collect();
        request(json!({"podsetSliceRequiredTopologyConstraints": all}))
    };
    assert_eq!(layers(&[("block", 4), ("rack", 2)]).await, None);
    assert!(layers(&[("block", 4), ("block", 2)]).await.is_some());
    assert!(layers(&[("block", 4), ("rack", 3)]).await.is_some());
}

#[tokio::test]
async fn partial_admission_of_an_elastic_workload_is_an_invalid_value() {
    let elastic = json!({"kueue.x-k8s.io/elastic-job": "true"});
    let workload = workload(&json!({"minCount": 1}), &elastic, &json!({}));
    assert_eq!(
        workload_refusal(workload, Value::Null).await.as_deref(),
        Some(
            "spec.podSets: Invalid value: 1: partial admission and elastic job cannot be used together"
        )
    );
}

fn condition(time: &str) -> Value {
    json!({"type": "QuotaReserved", "status": "True", "reason": "R", "message": "", "lastTransitionTime": time})
}

/// A Workload of three pods with quota, of which so many are reclaimable; now it asks for `count`.
fn with_quota(count: usize, elastic: bool, reclaimable: Option<usize>) -> Value {
    let elastic = json!({"kueue.x-k8s.io/elastic-job": elastic.to_string()});
    let pods: Vec<Value> =
        reclaimable.iter().map(|count| json!({"name": "main", "count": count})).collect();
    let reserved = condition("2026-01-02T03:04:05Z");
    let assignment = json!({"name": "main", "count": 3, "resourceUsage": {"cpu": "3"}});
    let status = json!({
        "conditions": [reserved], "reclaimablePods": pods,
        "admission": {"clusterQueue": "cq", "podSetAssignments": [assignment]},
    });
    workload(&json!({"count": count}), &elastic, &status)
}

#[tokio::test]
async fn a_workload_with_quota_may_shrink_and_reclaimable_pods_of_an_elastic_one_may_go_then() {
    let update = |new: (usize, bool, Option<usize>), old: (usize, bool, Option<usize>)| {
        workload_refusal(with_quota(new.0, new.1, new.2), with_quota(old.0, old.1, old.2))
    };
    for elastic in [true, false] {
        assert_eq!(update((2, elastic, None), (3, elastic, None)).await, None);
        let no_slices = WebhookGates { elastic_jobs: false, ..WebhookGates::default() };
        let (new, old) = (with_quota(2, elastic, None), with_quota(3, elastic, None));
        let refused = refusal("Workload", new, old, no_slices).await.expect("a refusal");
        assert!(refused.starts_with("spec.podSets.0: Invalid value: "), "{refused}");
    }
    // The scale-down keeps the status, which has too many now; a later write corrects it.
    assert_eq!(update((1, true, Some(2)), (3, true, Some(2))).await, None);
    assert_eq!(update((1, true, None), (1, true, Some(2))).await, None);
    let removed = update((3, true, None), (3, true, Some(2))).await;
    assert_eq!(
        removed.as_deref(),
        Some("status.reclaimablePods[main]: Required value: cannot be removed")
    );
}

/// As for the manager: the default of the API.
#[tokio::test]
async fn a_pod_set_without_a_count_has_one_pod() {
    let at = |reclaimable: Option<usize>| {
        let mut workload = with_quota(1, true, reclaimable);
        workload["spec"]["podSets"][0]["count"] = Value::Null;
        let assignment = json!({"name": "main", "count": 1, "resourceUsage": {"cpu": "1"}});
        workload["status"]["admission"]["podSetAssignments"] = json!([assignment]);
        workload
    };
    assert_eq!(workload_refusal(at(Some(1)), at(None)).await, None);
    assert_eq!(
        workload_refusal(at(None), at(Some(1))).await.as_deref(),
        Some("status.reclaimablePods[main]: Required value: cannot be removed"),
        "it has not shrunk"
    );
}

/// The Workload without its quota.
fn pending(mut workload: Value) -> Value {
    workload["status"]["conditions"] = json!([]);
    workload["status"]["admission"] = Value::Null;
    workload
}

#[tokio::test]
async fn an_admission_is_checked_while_quota_is_reserved() {
    let admitted = |assignment: Value| {
        let mut workload = with_quota(3, false, None);
        workload["status"]["admission"]["podSetAssignments"] = json!([assignment]);
        workload
    };
    for (assignment, refused) in [
        (json!({"name": "zz", "count": 3}), "[0].name: Not found: \"zz\""),
        (
            json!({"name": "main", "count": 3, "resourceUsage": {"cpu": "4"}}),
            "[0].resourceUsage[cpu]: Invalid value: \"4\": is not a multiple of 3",
        ),
    ] {
        let reserved = admitted(assignment);
        let mut unreserved = reserved.clone();
        unreserved["status"]["conditions"] = json!([]);
        let refused = format!("status.admission.podSetAssignments{refused}");
        assert_eq!(workload_refusal(reserved, Value::Null).await, Some(refused));
        assert_eq!(workload_refusal(unreserved, Value::Null).await, None);
    }
}

#[tokio::test]
async fn reclaimable_pods_fit_their_pod_set_with_and_without_quota() {
    let too_many =
        "status.reclaimablePods[main].count: Invalid value: 4: should be less or equal to 3";
    for at in [with_quota, |count, elastic, pods| pending(with_quota(count, elastic, pods))] {
        let refused = workload_refusal(at(3, false, Some(4)), at(3, false, None)).await;
        assert_eq!(refused.as_deref(), Some(too_many));
        let mut unknown = at(3, false, Some(1));
        unknown["status"]["reclaimablePods"][0]["name"] = json!("ps2");
        let refused = workload_refusal(unknown, at(3, false, None)).await;
        assert_eq!(
            refused.as_deref(),
            Some(
                "status.reclaimablePods[ps2].name: Unsupported value: \"ps2\": supported values: \"main\""
            )
        );
        // Such an entry that is stored already blocks no other change.
        assert_eq!(workload_refusal(at(3, false, Some(4)), at(3, false, Some(4))).await, None);
        assert!(workload_refusal(at(3, false, Some(5)), at(3, false, Some(4))).await.is_some());
    }
}

#[tokio::test]
async fn only_an_elastic_workload_keeps_reclaimable_pods_above_its_lowered_count() {
    let no_count = |count, elastic| {
        let mut workload = with_quota(count, elastic, Some(2));
        workload["status"]["admission"]["podSetAssignments"][0]["count"] = Value::Null;
        workload
    };
    for (elastic, refused) in [(true, false), (false, true)] {
        let (new, old) = (with_quota(1, elastic, Some(2)), with_quota(3, elastic, Some(2)));
        assert_eq!(workload_refusal(new, old).await.is_some(), refused);
        // The count of an assignment is optional.
        let refusal = workload_refusal(no_count(1, elastic), no_count(3, elastic)).await;
        assert_eq!(refusal.is_some(), refused);
    }
}

#[tokio::test]
async fn a_condition_has_a_time() {
    let zero = json!({"conditions": [condition("0001-01-01T00:00:00Z")]});
    let mut workload = workload(&json!({}), &json!({}), &zero);
    workload["status"]["conditions"][0]["status"] = json!("False");
    assert_eq!(
        workload_refusal(workload, Value::Null).await.as_deref(),
        Some("status.conditions[0].lastTransitionTime: Required value")
    );
}

#[tokio::test]
async fn a_reserved_workload_accepts_another_form_of_its_pod_template() {
    let with = |spec: &Value| {
        let mut workload = with_quota(3, false, None);
        workload["spec"]["podSets"][0]["template"]["spec"] = spec.clone();
        workload
    };
    let one = json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "1000m"}}}]});
    let other = json!({"hostNetwork": false, "volumes": [], "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]});
    assert_eq!(workload_refusal(with(&other), with(&one)).await, None);
    let changed = json!({"hostNetwork": true, "containers": one["containers"]});
    assert!(workload_refusal(with(&changed), with(&one)).await.is_some());
}

#[tokio::test]
async fn only_a_cluster_queue_has_a_limit_of_flavors() {
    let flavor = |at: usize| json!({"name": format!("f{at}"), "resources": []});
    let groups: Vec<Value> = (0..5)
        .map(|group| {
            let flavors: Vec<Value> = (0..60).map(|at| flavor(group * 60 + at)).collect();
            json!({"coveredResources": [], "flavors": flavors})
        })
        .collect();
    let spec = json!({"resourceGroups": groups});
    for (kind, refused) in [("Cohort", false), ("ClusterQueue", true)] {
        let refusal =
            refusal(kind, object(kind, &spec), Value::Null, WebhookGates::default()).await;
        assert_eq!(refusal.is_some(), refused, "{kind}");
    }
}

#[tokio::test]
async fn a_check_on_an_unknown_flavor_that_is_stored_already_blocks_no_other_change() {
    let queue = |flavors: &[&str], finalizers: &[&str], deleted: bool| {
        let checks = json!({"admissionChecks": [{"name": "c", "onFlavors": flavors}]});
        let mut queue = object("ClusterQueue", &json!({"admissionChecksStrategy": checks}));
        queue["metadata"]["finalizers"] = json!(finalizers);
        queue["metadata"]["deletionTimestamp"] =
            if deleted { json!("2026-01-01T00:00:00Z") } else { Value::Null };
        queue
    };
    let finalizer = "kueue.x-k8s.io/resource-in-use";
    let strict = WebhookGates { reject_invalid_on_flavors: true, ..WebhookGates::default() };
    for (new, old, gates, refused) in [
        (
            queue(&["gone"], &[], false),
            queue(&["gone"], &[finalizer], false),
            WebhookGates::default(),
            false,
        ),
        (
            queue(&["gone", "new"], &[], false),
            queue(&["gone"], &[], false),
            WebhookGates::default(),
            true,
        ),
        (queue(&["gone"], &[], false), queue(&["gone"], &[finalizer], false), strict, true),
        (queue(&["gone"], &[], true), queue(&["gone"], &[finalizer], true), strict, false),
    ] {
        let refusal = refusal("ClusterQueue", new.clone(), old, gates).await;
        assert_eq!(refusal.is_some(), refused, "{new}");
    }
}

#[tokio::test]
async fn a_stored_check_on_an_unknown_flavor_counts_again_once_flavors_change() {
    let queue = |flavors: &[&str], on_flavors: &[&str]| {
        let flavor = |name: &&str| json!({"name": name, "resources": [{"name": "cpu", "nominalQuota": "1"}]});
        let flavors: Vec<Value> = flavors.iter().map(flavor).collect();
        let spec = json!({
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}],
            "admissionChecksStrategy": {"admissionChecks": [{"name": "c", "onFlavors": on_flavors}]},
        });
        object("ClusterQueue", &spec)
    };
    let old = queue(&["a", "b"], &["a", "gone", "lost"]);
    for (new, refused) in [
        (queue(&["b", "a"], &["lost", "gone", "a"]), vec![]),
        (queue(&["a"], &["a", "gone", "lost"]), vec![1, 2]),
        (queue(&["a", "b", "c"], &["a", "gone", "lost"]), vec![1, 2]),
        (queue(&["a", "b"], &["gone", "lost"]), vec![0, 1]),
        (queue(&["a", "b"], &["a", "b"]), vec![]),
    ] {
        let refusal =
            refusal("ClusterQueue", new.clone(), old.clone(), WebhookGates::default()).await;
        let text = refusal.unwrap_or_default();
        for at in 0..3 {
            let field = format!("admissionChecks[0].onFlavors[{at}]: Unsupported value");
            assert_eq!(text.contains(&field), refused.contains(&at), "{new}: {text}");
        }
    }
}

#[tokio::test]
async fn a_body_that_is_no_review_is_a_bad_request() {
    for (body, answer) in [
        ("{\"apiVersion\"".to_owned(), 400),
        (json!({"kind": "AdmissionReview"}).to_string(), 400),
        (" ".repeat(BODY_LIMIT + 1), 413),
    ] {
        let request = http::Request::post("/mutate-kueue-x-k8s-io-v1beta2-workload")
            .body(Body::from(body))
            .expect("a request");
        let router = router(WebhookGates::default(), jobs::tests::unused());
        assert_eq!(router.oneshot(request).await.expect("a response").status(), answer);
    }
}
