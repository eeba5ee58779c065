//! Clusters of RayServices that are changed in place, and clusters that cannot be made or changed, for example because of a webhook.

use super::*;

/// Runs a pass in which every write of a RayCluster is refused, and returns what it leaves.
fn pass_without_clusters(service: &Value, children: &[Value]) -> (Vec<RayStep>, Vec<RayStep>) {
    let (mut orders, mut answers) = (Vec::new(), Vec::new());
    loop {
        let steps = decide(service, children, &ServiceMemory::default(), &answers);
        if !steps.iter().any(RayStep::is_order) {
            return (orders, steps);
        }
        for step in steps {
            let refusal = RayRefusal { code: 403, message: "no".to_owned() };
            answers.push(match &step {
                RayStep::Create(object) if object["kind"] == "RayCluster" => {
                    RayAnswer::Refused(refusal)
                }
                RayStep::Patch { target, .. } if target.kind == "RayCluster" => {
                    RayAnswer::Refused(refusal)
                }
                RayStep::Create(object) => RayAnswer::Done(object.clone().into()),
                RayStep::Ask(request) => RayAnswer::Head(head("RUNNING")(request)),
                _ => RayAnswer::Done(Value::Null.into()),
            });
            orders.push(step);
        }
    }
}

fn reasons(steps: &[RayStep]) -> Vec<&'static str> {
    let reasons = steps.iter().filter_map(|step| match step {
        RayStep::Event(event) => Some(event.reason),
        _ => None,
    });
    reasons.collect()
}

fn is_repeated(steps: &[RayStep]) -> bool {
    steps.iter().any(|step| matches!(step, RayStep::RequeueAfter(_)))
}

fn with_another_group(mut service: Value) -> Value {
    let template = json!({"spec": {"containers": [{"name": "ray", "image": "ray:1"}]}});
    service["spec"]["rayClusterConfig"]["workerGroupSpecs"] =
        json!([{"groupName": "more", "minReplicas": 0, "maxReplicas": 1, "template": template}]);
    service
}

/// The spec of the cluster may have an empty list of groups or none.
#[test]
fn a_first_worker_group_is_appended_in_place() {
    for groups in [Value::Null, json!([])] {
        let mut service = ray_service("ray:1", &active("rs-a"));
        if !groups.is_null() {
            service["spec"]["rayClusterConfig"]["workerGroupSpecs"] = groups.clone();
        }
        let children = cluster_of(service.clone(), "rs-a");
        let service = with_another_group(service);
        let (orders, ends) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
        let is_changed =
            |step: &RayStep| matches!(step, RayStep::Patch { target, .. } if target.name == "rs-a");
        assert!(orders.iter().any(is_changed), "{groups}: {orders:?}");
        let pending = &status(&ends).expect("a status")["pendingServiceStatus"];
        assert_eq!(pending["rayClusterName"], Value::Null, "{groups}");
    }
}

#[test]
fn a_cluster_that_cannot_be_changed_holds_up_no_status() {
    let mut service = with_another_group(ray_service("ray:1", &active("rs-a")));
    service["status"]["observedGeneration"] = json!(2);
    let mut children = cluster("rs-a", "ray:1");
    children[1]["status"]["conditions"][0]["status"] = json!("False");
    let (orders, ends) = pass_without_clusters(&service, &children);
    assert!(reasons(&ends).contains(&"FailedToUpdateRayCluster"), "{ends:?}");
    let is_service =
        |step: &&RayStep| matches!(step, RayStep::Create(it) if it["kind"] == "Service");
    assert_eq!(orders.iter().filter(is_service).count(), 2, "the Services follow: {orders:?}");
    let status = status(&ends).expect("a status");
    let ready = &status["conditions"][0];
    assert_eq!(
        (&ready["status"], &ready["reason"]),
        (&json!("False"), &json!("ZeroServeEndpoints"))
    );
    assert_eq!(status["observedGeneration"], 2, "the spec is not carried out");
    assert!(is_repeated(&ends), "{ends:?}");
}

fn initializing(pending: &str) -> Value {
    let mut status = active("");
    status["conditions"][0]["status"] = json!("False");
    status["conditions"][0]["reason"] = json!("Initializing");
    status["conditions"][0]["lastTransitionTime"] = json!("2026-01-01T23:50:00Z");
    status["pendingServiceStatus"] = json!({"rayClusterName": pending});
    let mut service = ray_service("ray:1", &status);
    service["metadata"]["annotations"] = json!({"ray.io/initializing-timeout": "5m"});
    service
}

#[test]
fn a_service_is_given_up_although_its_first_cluster_cannot_be_made() {
    let (_, ends) = pass_without_clusters(&initializing("rs-a"), &[]);
    assert_eq!(reasons(&ends), ["FailedToCreateRayCluster", "RayServiceInitializingTimeout"]);
    let status = status(&ends).expect("a status");
    assert_eq!(status["conditions"][0]["reason"], "InitializingTimeout");
    assert_eq!(status["pendingServiceStatus"]["rayClusterName"], Value::Null);
}

/// The pending cluster keeps its name, and the active one its configuration.
#[test]
fn a_new_cluster_that_cannot_be_made_changes_nothing_but_the_endpoints() {
    let mut service = ray_service("ray:2", &active("rs-a"));
    service["status"]["pendingServiceStatus"] = json!({"rayClusterName": "rs-b"});
    service["status"]["numServeEndpoints"] = json!(1);
    let children = cluster("rs-a", "ray:1");
    let (orders, ends) = pass_without_clusters(&service, &children);
    assert!(matches!(&orders[..], [RayStep::Create(_)]), "no head is asked: {orders:?}");
    let status = status(&ends).expect("a status");
    assert_eq!(status["activeServiceStatus"]["rayClusterName"], "rs-a");
    assert_eq!(status["pendingServiceStatus"]["rayClusterName"], "rs-b");
    assert_eq!(status["numServeEndpoints"], Value::Null);
    assert_eq!(status["conditions"][0]["reason"], "ZeroServeEndpoints");
    service["status"] = status.clone();
    let (_, ends) = pass_without_clusters(&service, &children);
    assert!(super::status(&ends).is_none(), "the next pass writes nothing: {ends:?}");
    assert!(is_repeated(&ends), "{ends:?}");
}
