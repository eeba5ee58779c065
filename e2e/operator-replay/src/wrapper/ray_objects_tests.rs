//! AppWrappers of Ray in the played namespace.

use appwrapper::settings::WrapperSettings;
use serde_json::{Value, json};

use super::world::WrapperWorld;

fn group(fields: &Value) -> Value {
    let mut group = json!({
        "groupName": "g", "replicas": 2, "template": {"spec": {"containers": [{"name": "w"}]}},
    });
    json_patch::merge(&mut group, fields);
    group
}

fn cluster_spec(group: &Value) -> Value {
    let template = json!({"spec": {"containers": [{"name": "h"}]}});
    json!({"headGroupSpec": {"template": template}, "workerGroupSpecs": [group]})
}

fn world(kind: &str, spec: &Value) -> WrapperWorld {
    let template = json!({
        "apiVersion": "ray.io/v1", "kind": kind, "metadata": {"name": "r"}, "spec": spec,
    });
    let mut world = WrapperWorld::new(WrapperSettings::default(), 0);
    let _ = world.create(json!({
        "apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper",
        "metadata": {"name": "aw1"}, "spec": {"components": [{"template": template}]},
    }));
    world.begin();
    world.settle();
    world
}

fn pods(world: &WrapperWorld) -> usize {
    world.objects.values().filter(|object| object["kind"] == "Pod").count()
}

#[test]
fn a_group_has_one_pod_per_host_of_its_replicas_within_its_bounds() {
    for (fields, count) in [
        (json!({}), 3),
        (json!({"numOfHosts": 3}), 7),
        (json!({"maxReplicas": 1}), 2),
        (json!({"minReplicas": 4}), 5),
    ] {
        assert_eq!(pods(&world("RayCluster", &cluster_spec(&group(&fields)))), count);
    }
    let mut suspended = cluster_spec(&group(&json!({})));
    suspended["suspend"] = json!(true);
    assert_eq!(pods(&world("RayCluster", &suspended)), 0);
}

#[test]
fn a_ray_job_has_a_cluster_until_its_head_reports_the_end() {
    let spec = cluster_spec(&group(&json!({})));
    let spec = json!({"rayClusterSpec": spec, "shutdownAfterJobFinishes": true});
    let mut world = world("RayJob", &spec);
    let phase = |world: &WrapperWorld| world.objects["AppWrapper/aw1"]["status"]["phase"].clone();
    assert_eq!((pods(&world), phase(&world)), (3, json!("Running")));
    world.head = json!({"job": {"status": "SUCCEEDED"}});
    for _ in 0..70 {
        world.second();
    }
    assert_eq!(world.objects["RayJob/r"]["status"]["jobDeploymentStatus"], "Complete");
    assert_eq!((pods(&world), phase(&world)), (0, json!("Succeeded")));
}
