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
