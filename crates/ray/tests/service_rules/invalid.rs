//! RayServices with a spec that became invalid.

use super::*;

/// A spec that became invalid must not keep the quota of a replaced cluster.
#[test]
fn a_replaced_cluster_is_removed_although_the_spec_became_invalid() {
    let mut service = ray_service("ray:1", &active("rs-a"));
    let mut children = cluster("rs-a", "ray:1");
    children.extend(cluster("rs-old", "ray:0"));
    service["spec"]["upgradeStrategy"] = json!({"type": "nonsense"});
    let (orders, ends) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
    assert_eq!(orders, []);
    let status = status(&ends).expect("a status");
    assert_eq!(status["conditions"][0]["reason"], "ValidationFailed");
    assert!(ends.iter().any(|step| matches!(step, RayStep::RequeueAfter(_))), "{ends:?}");
    let memory = remembered(&ends).expect("a memory").clone();
    let settings = OperatorSettings::default();
    let family: Vec<&Value> = children.iter().collect();
    for (time, is_removed) in [("2026-01-02T00:00:59Z", false), ("2026-01-02T00:01:00Z", true)] {
        let later = PassInputs { now: time.parse().expect("a time"), seed: [1; 32] };
        let steps = service::decide(&service, &family, &memory, &[], &later, &settings);
        let removes = |step: &RayStep| matches!(step, RayStep::Delete(it) if it.name == "rs-old");
        assert_eq!(steps.iter().any(removes), is_removed, "{time}");
    }
    // With the last replaced cluster the repetition ends.
    service["status"] = status.clone();
    let (_, ends) = pass(&service, &children[..2], &memory, head("RUNNING"));
    assert!(!ends.iter().any(|step| matches!(step, RayStep::RequeueAfter(_))), "{ends:?}");
}

#[test]
fn an_invalid_spec_is_reported_although_a_replaced_cluster_cannot_be_deleted() {
    let mut service = ray_service("ray:1", &active("rs-a"));
    service["spec"]["upgradeStrategy"] = json!({"type": "nonsense"});
    service["spec"]["rayClusterDeletionDelaySeconds"] = json!(0);
    let mut children = cluster("rs-a", "ray:1");
    children.extend(cluster("rs-old", "ray:0"));
    let refusal = RayRefusal { code: 403, message: "no".to_owned() };
    let refused = [RayAnswer::Refused(refusal)];
    let memory = ServiceMemory::default();
    let steps = decide(&service, &children, &memory, &refused);
    let reasons = |steps: &[RayStep]| -> Vec<&'static str> {
        let reasons = steps.iter().filter_map(|step| match step {
            RayStep::Event(event) => Some(event.reason),
            _ => None,
        });
        reasons.collect()
    };
    let refusal = "FailedToDeleteRayCluster";
    assert_eq!(reasons(&steps), [refusal, "InvalidRayServiceSpec"]);
    let status = status(&steps).expect("a status").clone();
    assert_eq!(status["conditions"][0]["reason"], "ValidationFailed");
    assert!(steps.iter().any(|step| matches!(step, RayStep::RequeueAfter(_))), "{steps:?}");
    service["status"] = status;
    let steps = decide(&service, &children, &memory, &refused);
    assert_eq!(reasons(&steps), [refusal], "the invalid spec is reported once");
    assert!(steps.iter().any(|step| matches!(step, RayStep::RequeueAfter(_))), "{steps:?}");
}

/// A webhook may protect one of them.
#[test]
fn a_replaced_cluster_that_cannot_be_deleted_holds_up_nothing_else() {
    let mut service = ray_service("ray:1", &active("rs-a"));
    service["spec"]["rayClusterDeletionDelaySeconds"] = json!(0);
    let mut children = cluster("rs-a", "ray:1");
    children.extend(cluster("rs-old", "ray:0"));
    children.extend(cluster("rs-older", "ray:0"));
    let run = |service: &Value| {
        let (mut deleted, mut answers) = (Vec::new(), Vec::new());
        loop {
            let steps = decide(service, &children, &ServiceMemory::default(), &answers);
            if !steps.iter().any(RayStep::is_order) {
                return (deleted, steps);
            }
            for step in &steps {
                answers.push(match step {
                    RayStep::Delete(target) => {
                        deleted.push(target.name.clone());
                        refused(403)
                    }
                    RayStep::Ask(request) => RayAnswer::Head(head("RUNNING")(request)),
                    RayStep::Create(object) => RayAnswer::Done(object.clone().into()),
                    _ => RayAnswer::Done(Value::Null.into()),
                });
            }
        }
    };
    let (deleted, ends) = run(&service);
    assert_eq!(deleted, ["rs-old", "rs-older"]);
    assert!(status(&ends).is_some(), "the active cluster is looked at: {ends:?}");
    assert!(ends.iter().any(|step| matches!(step, RayStep::RequeueAfter(_))), "{ends:?}");
    service["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let (deleted, _) = run(&service);
    assert_eq!(deleted, ["rs-a", "rs-old", "rs-older"]);
    service["metadata"].as_object_mut().expect("metadata").remove("deletionTimestamp");
    service["spec"]["suspend"] = json!(true);
    service["spec"]["rayClusterDeletionDelaySeconds"] = json!(60);
    service["status"]["conditions"]
        .as_array_mut()
        .expect("conditions")
        .push(json!({"type": "Suspending", "status": "True"}));
    let (deleted, ends) = run(&service);
    assert_eq!(deleted, ["rs-a", "rs-old", "rs-older"]);
    let conditions = status(&ends).expect("a status")["conditions"].to_string();
    assert!(conditions.contains("Owned resources are being deleted."), "{conditions}");
}

fn refused(code: u16) -> RayAnswer {
    RayAnswer::Refused(RayRefusal { code, message: "no".to_owned() })
}

/// The finalizers may be taken away by hand, and their return be refused by a webhook.
#[test]
fn a_finalizer_that_is_refused_is_an_event_and_holds_up_no_service_that_runs() {
    let reasons = |steps: &[RayStep]| -> Vec<&'static str> {
        let reasons = steps.iter().filter_map(|step| match step {
            RayStep::Event(event) => Some(event.reason),
            _ => None,
        });
        reasons.collect()
    };
    let mut service = ray_service("ray:1", &active("rs-a"));
    service["metadata"]["finalizers"] = json!([]);
    let memory = ServiceMemory::default();
    let children = cluster("rs-a", "ray:1");
    let steps = decide(&service, &children, &memory, &[refused(403)]);
    assert!(matches!(&steps[..], [RayStep::Ask(_)]), "the head is asked: {steps:?}");
    // The object has changed or is gone: another pass follows, or none.
    for code in [409, 404] {
        let steps = decide(&service, &children, &memory, &[refused(code)]);
        assert!(matches!(&steps[..], [RayStep::RequeueAfter(_)]), "{code} {steps:?}");
    }
    // A new one would leave its clusters without the finalizer.
    let mut new = ray_service("ray:1", &Value::Null);
    new["metadata"]["finalizers"] = json!([]);
    let steps = decide(&new, &[], &memory, &[refused(403)]);
    assert_eq!(reasons(&steps), ["FailedToUpdateRayService"]);
    assert!(matches!(&steps[..], [RayStep::RequeueAfter(_), RayStep::Event(_)]), "{steps:?}");
    service["metadata"]["finalizers"] = json!(["ray.io/rayservice-finalizer"]);
    service["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let steps = decide(&service, &[], &memory, &[refused(403)]);
    assert_eq!(reasons(&steps), ["FailedToUpdateRayService"]);
}

#[test]
fn a_suspension_whose_clusters_are_gone_ends_although_the_finalizer_is_refused() {
    let mut service = ray_service("ray:1", &active("rs-a"));
    service["metadata"]["finalizers"] = json!([]);
    service["spec"]["suspend"] = json!(true);
    service["status"]["conditions"]
        .as_array_mut()
        .expect("conditions")
        .push(json!({"type": "Suspending", "status": "True"}));
    let steps = decide(&service, &[], &ServiceMemory::default(), &[refused(403)]);
    let conditions = status(&steps).expect("a status")["conditions"].as_array();
    let suspended = conditions.into_iter().flatten().find(|it| it["type"] == "Suspended");
    assert_eq!(suspended.expect("a condition")["status"], "True");
}
