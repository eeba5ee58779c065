use serde_json::Value;

use super::*;

const BASE: &str = "/apis/visibility.kueue.x-k8s.io";

type Page = Result<Vec<PendingWorkload>, PageFailure>;

fn request<'a>(method: &'a Method, path: &'a str) -> VisibilityRequest<'a> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    VisibilityRequest {
        method,
        path,
        query,
        accept: None,
        if_none_match: None,
        program_version: "v1",
    }
}

fn get(path: &str, page: Page) -> VisibilityAnswer {
    answer(&request(&Method::GET, path), |_, _| page)
}

fn body(answer: &VisibilityAnswer) -> Value {
    serde_json::from_slice(&answer.body).expect("JSON")
}

#[test]
fn a_list_has_the_version_that_was_asked_for() {
    for version in ["v1beta1", "v1beta2"] {
        let path = format!("{BASE}/{version}/clusterqueues/q/pendingworkloads");
        let list = body(&get(&path, Ok(Vec::new())));
        let expected = json!({
            "kind": "PendingWorkloadsSummary", "metadata": {}, "items": [],
            "apiVersion": format!("visibility.kueue.x-k8s.io/{version}"),
        });
        assert_eq!(list, expected);
    }
}

#[test]
fn the_page_of_the_query_is_read() {
    let path =
        format!("{BASE}/v1beta2/namespaces/n/localqueues/q/pendingworkloads?offset=2&limit=3");
    let mut asked = None;
    let answer = answer(&request(&Method::GET, &path), |queue, page| {
        asked = Some((format!("{queue:?}"), page));
        Ok(Vec::new())
    });
    assert_eq!(answer.status, 200);
    let expected = ("LocalQueue(\"n\", \"q\")".to_owned(), PendingPage { offset: 2, limit: 3 });
    assert_eq!(asked, Some(expected));
}

#[test]
fn refusals_are_statuses_with_the_texts_of_upstream() {
    let lists = |end: &str| format!("{BASE}/v1beta2/clusterqueues/q/pendingworkloads{end}");
    for (path, page, code, reason, message) in [
        (
            lists(""),
            Err(PageFailure::UnknownQueue),
            404,
            "NotFound",
            "clusterqueue.visibility.kueue.x-k8s.io \"q\" not found",
        ),
        (
            format!("{BASE}/v1beta1/namespaces/n/localqueues/l/pendingworkloads"),
            Err(PageFailure::UnknownQueue),
            404,
            "NotFound",
            "localqueue.visibility.kueue.x-k8s.io \"l\" not found",
        ),
        (
            lists("?limit=x"),
            Ok(Vec::new()),
            400,
            "BadRequest",
            "strconv.ParseInt: parsing \"x\": invalid syntax",
        ),
        (
            lists(""),
            Err(PageFailure::NotReady),
            503,
            "ServiceUnavailable",
            "the queues were not listed yet",
        ),
        (
            format!("{BASE}/v1beta2/clusterqueues"),
            Ok(Vec::new()),
            404,
            "NotFound",
            "the server could not find the requested resource",
        ),
    ] {
        let answer = get(&path, page);
        let status = body(&answer);
        assert_eq!(answer.status.as_u16(), code, "{path}");
        assert_eq!((&status["reason"], &status["message"]), (&json!(reason), &json!(message)));
    }
    let path = lists("");
    let posted = answer(&request(&Method::POST, &path), |_, _| Ok(Vec::new()));
    assert_eq!(
        (posted.status.as_u16(), &body(&posted)["reason"]),
        (405, &json!("MethodNotAllowed"))
    );
    let protobuf = Some("application/vnd.kubernetes.protobuf");
    let wanted = VisibilityRequest { accept: protobuf, ..request(&Method::GET, &path) };
    assert_eq!(answer(&wanted, |_, _| Ok(Vec::new())).status, 406);
}

#[test]
fn discovery_names_both_versions_and_the_lists() {
    let group = body(&get(BASE, Ok(Vec::new())));
    assert_eq!(group["preferredVersion"]["version"], "v1beta2");
    assert_eq!(body(&get("/apis", Ok(Vec::new())))["groups"][0]["versions"], group["versions"]);
    let resources = body(&get(&format!("{BASE}/v1beta1"), Ok(Vec::new())));
    assert_eq!(resources["groupVersion"], "visibility.kueue.x-k8s.io/v1beta1");
    let lines: Vec<String> = resources["resources"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| {
            format!("{} {} {} {}", one["name"], one["namespaced"], one["kind"], one["verbs"])
        })
        .collect();
    assert_eq!(
        lines,
        [
            r#""clusterqueues" false "ClusterQueue" []"#,
            r#""clusterqueues/pendingworkloads" false "PendingWorkloadsSummary" ["get"]"#,
            r#""localqueues" true "LocalQueue" []"#,
            r#""localqueues/pendingworkloads" true "PendingWorkloadsSummary" ["get"]"#,
        ]
    );
}

#[test]
fn discovery_names_the_pods_and_logs_of_workloads_in_a_group_of_their_own() {
    let base = "/apis/visibility.sluice.dev";
    let group = body(&get(base, Ok(Vec::new())));
    assert_eq!(group["preferredVersion"]["groupVersion"], "visibility.sluice.dev/v1alpha1");
    let groups = body(&get("/apis", Ok(Vec::new())));
    assert_eq!(groups["groups"][1]["name"], "visibility.sluice.dev");
    let resources = body(&get(&format!("{base}/v1alpha1"), Ok(Vec::new())));
    let names = resources["resources"].as_array().into_iter().flatten();
    let names: Vec<&Value> = names.map(|one| &one["name"]).collect();
    assert_eq!(names, ["workloads", "workloads/log", "workloads/pods"]);
}

#[test]
fn aggregated_discovery_is_served_where_it_is_accepted() {
    let accept =
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let wanted = VisibilityRequest { accept: Some(accept), ..request(&Method::GET, "/apis") };
    let found = answer(&wanted, |_, _| Ok(Vec::new()));
    assert!(found.content_type.ends_with("as=APIGroupDiscoveryList"), "{}", found.content_type);
    let item = &body(&found)["items"][0];
    assert_eq!(item["versions"][0]["resources"][1]["subresources"][0]["verbs"], json!(["get"]));
    let own = &body(&found)["items"][1];
    assert_eq!(own["metadata"]["name"], "visibility.sluice.dev");
    assert_eq!(own["versions"][0]["resources"][0]["subresources"][1]["subresource"], "pods");
}

#[test]
fn a_document_that_the_client_has_is_not_sent_again() {
    for path in ["/openapi/v2", "/openapi/v3", &format!("/openapi/v3{BASE}/v1beta2")] {
        let first = get(path, Ok(Vec::new()));
        let etag = first.etag.clone().expect("a tag");
        let again = VisibilityRequest { if_none_match: Some(&etag), ..request(&Method::GET, path) };
        let again = answer(&again, |_, _| Ok(Vec::new()));
        assert_eq!((again.status.as_u16(), again.body.len()), (304, 0), "{path}");
        assert!(!first.body.is_empty());
    }
}

#[test]
fn probes_need_no_authorization() {
    for path in ["/healthz", "/livez", "/readyz"] {
        assert!(is_probe(path));
        let answer = get(path, Err(PageFailure::NotReady));
        assert_eq!((answer.status.as_u16(), &*answer.body), (200, b"ok".as_slice()));
    }
    assert!(!is_probe("/apis") && !is_probe("/healthz/x"));
}
