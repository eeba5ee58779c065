//! RayServices and clusters of another operator, or of another version of ours.

use super::*;

#[test]
fn the_cluster_of_another_operator_is_taken_over_as_it_is() {
    let service = ray_service("ray:1", &active("rs-a"));
    let mut children = cluster("rs-a", "ray:1");
    let annotations = &mut children[0]["metadata"]["annotations"];
    annotations["ray.io/kuberay-version"] = json!("v1.7.0");
    annotations["ray.io/hash-without-replicas-and-workers-to-delete"] = json!("HASHOFANOTHER");
    let (orders, ends) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
    assert_eq!(new_clusters(&orders), 0);
    let is_deletion = |step: &RayStep| matches!(step, RayStep::Delete(_));
    assert!(!orders.iter().any(is_deletion), "{orders:?}");
    if let Some(status) = status(&ends) {
        assert_eq!(status["pendingServiceStatus"]["rayClusterName"], Value::Null);
    }
    let refreshed = orders.iter().find_map(|step| match step {
        RayStep::Patch { target, patch } if target.kind == "RayCluster" => Some(patch),
        _ => None,
    });
    let annotations = &refreshed.expect("a patch")["metadata"]["annotations"];
    assert_eq!(annotations["ray.io/kuberay-version"], OperatorSettings::default().version);
    assert_ne!(OperatorSettings::default().version, "v1.7.0", "the name of an official release");
}

#[test]
fn a_cluster_of_another_operator_keeps_its_scale_and_what_admission_added() {
    let mut service = ray_service("ray:1", &active("rs-a"));
    let container = "/headGroupSpec/template/spec/containers/0";
    let written = service["spec"]["rayClusterConfig"].pointer_mut(container).expect("a container");
    written["resources"] = json!({"limits": {"cpu": 2}, "requests": {"cpu": "0.5"}});
    written["args"] = json!([]);
    written["tty"] = json!(false);
    let mut children = cluster_of(service.clone(), "rs-a");
    children[0]["metadata"]["annotations"]["ray.io/kuberay-version"] = json!("v1.7.0");
    let spec = &mut children[0]["spec"];
    let by_another = spec.pointer_mut(container).expect("a container");
    by_another["resources"] = json!({"limits": {"cpu": "2"}, "requests": {"cpu": "500m"}});
    by_another
        .as_object_mut()
        .expect("a container")
        .retain(|name, _| name != "args" && name != "tty");
    spec["headGroupSpec"]["template"]["spec"]["tolerations"] = json!([{"key": "a"}]);
    spec["headGroupSpec"]["template"]["metadata"] = json!({});
    for group in spec["workerGroupSpecs"].as_array_mut().into_iter().flatten() {
        group["replicas"] = json!(7);
        group["scaleStrategy"] = json!({});
    }
    let (orders, _) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
    let patches = orders.iter().filter_map(|step| match step {
        RayStep::Patch { target, patch } if target.kind == "RayCluster" => Some(&patch["spec"]),
        _ => None,
    });
    assert_eq!(patches.collect::<Vec<_>>(), [&Value::Null], "annotations alone");
}

/// A service in an upgrade to its second spec, which another operator began, and its clusters.
fn upgrade_of_another(image: &str) -> (Value, Vec<Value>) {
    let mut state = active("rs-a");
    state["pendingServiceStatus"] = json!({"rayClusterName": "rs-b"});
    state["conditions"][1]["status"] = json!("True");
    let mut children = cluster("rs-a", "ray:1");
    children.extend(cluster("rs-b", "ray:2"));
    (ray_service(image, &state), children)
}

/// Lets another operator have made a cluster.
fn made_by_another(cluster: &mut Value) {
    let annotations = &mut cluster["metadata"]["annotations"];
    annotations["ray.io/kuberay-version"] = json!("v1.7.0");
    annotations["ray.io/hash-without-replicas-and-workers-to-delete"] = json!("HASHOFANOTHER");
}

/// The clusters that a pass changes.
fn patched_clusters<'a>(orders: &'a [RayStep]) -> Vec<&'a str> {
    let patched = |step: &'a RayStep| match step {
        RayStep::Patch { target, .. } if target.kind == "RayCluster" => Some(&*target.name),
        _ => None,
    };
    orders.iter().filter_map(patched).collect()
}

#[test]
fn an_upgrade_of_another_operator_goes_on_with_its_clusters() {
    let (service, mut children) = upgrade_of_another("ray:2");
    children.iter_mut().filter(|it| it["kind"] == "RayCluster").for_each(made_by_another);
    let (orders, _) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
    assert_eq!(new_clusters(&orders), 0);
    assert_eq!(patched_clusters(&orders), ["rs-b"], "the active one keeps its spec");
}

#[test]
fn a_third_spec_in_an_upgrade_of_another_operator_leaves_the_active_cluster_alone() {
    let pass_with = |image: &str| {
        let (service, mut children) = upgrade_of_another(image);
        made_by_another(&mut children[0]);
        let memory = ServiceMemory::default();
        let (orders, ends) = pass(&service, &children, &memory, head("DEPLOYING"));
        assert!(patched_clusters(&orders).is_empty(), "{orders:?}");
        let pending = &status(&ends).expect("a status")["pendingServiceStatus"]["rayClusterName"];
        pending.as_str().map(str::to_owned)
    };
    // Only a spec that is that of the active cluster goes back.
    assert_eq!(pass_with("ray:1"), None);
    let third = pass_with("ray:3").expect("a pending cluster");
    assert_ne!(third, "rs-b", "another cluster is made");
}
