//! Incremental upgrades, where they differ from the official operator's.

use super::*;

#[test]
fn a_group_appended_to_the_active_cluster_keeps_the_replicas_of_the_spec() {
    let (mut service, _) = upgrade();
    service["status"] = active("rs-a");
    let template = json!({"spec": {"containers": [{"name": "ray", "image": "ray:1"}]}});
    let group = |name: &str, replicas: u8| {
        json!({
            "groupName": name, "replicas": replicas, "minReplicas": 0, "maxReplicas": 9,
            "template": template,
        })
    };
    let groups = "workerGroupSpecs";
    service["spec"]["rayClusterConfig"][groups] = json!([group("a", 2)]);
    let children = cluster_of(service.clone(), "rs-a");
    service["spec"]["rayClusterConfig"][groups] = json!([group("a", 2), group("b", 3)]);
    let (orders, _) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
    let patch = orders.iter().find_map(|step| match step {
        RayStep::Patch { target, patch } if target.kind == "RayCluster" => Some(patch),
        _ => None,
    });
    let stored = patch.expect("a patch")["spec"][groups].as_array().expect("groups");
    let replicas: Vec<&Value> = stored.iter().map(|group| &group["replicas"]).collect();
    assert_eq!(replicas, [2, 3]);
}

#[test]
fn a_capacity_that_the_configuration_has_already_is_sent_and_noted() {
    let (mut service, children) = upgrade();
    service["spec"]["serveConfigV2"] = json!("applications:\n- name: one\ntarget_capacity: 50\n");
    let (orders, ends) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
    let sent = orders.iter().filter_map(|step| match step {
        RayStep::Ask(it) if it.method == HeadMethod::Put && it.url.starts_with("http://rs-a-") => {
            it.body.as_ref().map(|body| body["target_capacity"].clone())
        }
        _ => None,
    });
    assert_eq!(sent.collect::<Vec<_>>(), [50]);
    let status = status(&ends).expect("a status");
    assert_eq!(status["activeServiceStatus"]["targetCapacity"], 50);
}
