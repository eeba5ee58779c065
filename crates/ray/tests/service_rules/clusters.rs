//! Clusters of RayServices that are changed in place.

use super::*;

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
