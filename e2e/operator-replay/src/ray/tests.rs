//! The objects that clusters and RayJobs get, one by one, and specs of any shape.

use proptest::prelude::*;
use ray::{job::JobAttempt, settings::OperatorSettings};
use serde_json::{Value, json};

use super::{profile::settings, world::RayWorld};
use crate::{
    normal,
    odd_values::{odd_value, places},
    tests::cases,
    value_difference::different,
};

/// The pods and Services of a cluster that a RayJob or a RayService made, against those that we make for the same cluster.
fn compare_made(case: &Value, step: &Value, n_compared: &mut usize) -> Vec<String> {
    let put = step["put"].as_object().expect("objects");
    let mut found = Vec::new();
    for (id, cluster) in put.iter().filter(|(id, _)| id.starts_with("RayCluster/")) {
        let uid = format!("<uid of {id}>");
        let is_made = |object: &&Value| {
            object["metadata"]["ownerReferences"][0]["uid"] == *uid
                && ["Pod", "Service"].iter().any(|kind| object["kind"] == *kind)
                // The RayService itself makes the serve service of an incremental upgrade.
                && object["metadata"]["labels"]["ray.io/originated-from-crd"] != "RayService"
        };
        let mut theirs: Vec<Value> = put.values().filter(is_made).map(made).collect();
        // A suspended cluster has no pods, and one that was changed has pods of the older spec.
        let heads =
            theirs.iter().filter(|object| object["name"].to_string().contains("-head-")).count();
        if cluster["metadata"]["generation"] != 1 || heads < 2 {
            continue;
        }
        let mut world = RayWorld::new(settings(case["profile"].as_str().unwrap_or_default()));
        let mut cluster = cluster.clone();
        cluster["status"] = Value::Null;
        // Its owner is not in this world.
        cluster["metadata"]["ownerReferences"] = Value::Null;
        let _ = world.create(cluster);
        world.settle();
        let mut ours: Vec<Value> = world.objects.values().filter(is_made).map(made).collect();
        theirs.sort_by_key(Value::to_string);
        ours.sort_by_key(Value::to_string);
        found.extend(different(&Value::from(ours), &Value::from(theirs)));
        *n_compared += 1;
    }
    found
}

/// An object without its random name, what happens to it later, and the hash.
fn made(object: &Value) -> Value {
    let mut object = normal::normal(object);
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let generated = object["metadata"]["generateName"].as_str().unwrap_or(name).to_owned();
    object["metadata"]["name"] = Value::Null;
    object["metadata"]["labels"]["ray.io/serve"] = Value::Null;
    object["status"] = Value::Null;
    json!({"name": generated, "object": object})
}

/// The recording writes random parts of names as `<r1>`, and a cluster may not be named so.
pub(super) fn with_plain_names(case: &Value) -> Value {
    let mut text = case.to_string();
    for number in 1..100 {
        let plain = format!("r{number}q");
        text = text.replace(&format!("<r{number}>"), &plain);
        for length in 1..plain.len() {
            text = text.replace(&format!("<r{number} cut to {length}>"), &plain[..length]);
        }
    }
    serde_json::from_str(&text).expect("a case")
}

#[test]
fn clusters_of_ray_jobs_and_ray_services_get_the_same_objects() {
    let (mut wrong, mut n_compared) = (Vec::new(), 0);
    for file in ["rayjob", "rayservice"] {
        for case in cases("ray", file) {
            let case = with_plain_names(&case);
            for step in case["steps"].as_array().into_iter().flatten() {
                let found = compare_made(&case, step, &mut n_compared);
                if !found.is_empty() {
                    wrong.push(format!("{}\n    {}", case["name"], found.join("\n    ")));
                }
            }
        }
    }
    assert!(n_compared > 100, "only {n_compared} clusters compared");
    assert!(
        wrong.is_empty(),
        "{} steps of {n_compared} clusters differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn recorded_ray_jobs_get_the_same_objects() {
    let (mut wrong, mut n_compared) = (Vec::new(), 0);
    for case in cases("ray", "rayjob") {
        let mut seen = RayWorld::new(settings(case["profile"].as_str().unwrap_or_default()));
        for step in case["steps"].as_array().into_iter().flatten() {
            let found = compare_children(&mut seen, step, &mut n_compared);
            if !found.is_empty() {
                wrong.push(format!("{}\n    {}", case["name"], found.join("\n    ")));
            }
        }
    }
    assert!(n_compared > 100, "only {n_compared} objects compared");
    assert!(
        wrong.is_empty(),
        "{} steps of {n_compared} objects differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// The objects that appear in a step and belong to its RayJob, against those that we make for it. `seen` has those of earlier steps.
fn compare_children(seen: &mut RayWorld, step: &Value, n_compared: &mut usize) -> Vec<String> {
    let mut found = Vec::new();
    let objects = |name: &str| step[name].as_object().into_iter().flatten();
    let mut children = Vec::new();
    for (id, object) in objects("passed").chain(objects("put")) {
        let mut object = object.clone();
        object["metadata"]["namespace"] = json!("<ns>");
        object["metadata"]["uid"] = json!(format!("<uid of {id}>"));
        let is_new = seen.objects.insert(id.clone(), object.clone()).is_none();
        if is_new && object["metadata"]["ownerReferences"][0]["kind"] == "RayJob" {
            children.push(object);
        }
    }
    for theirs in children {
        let owner = &theirs["metadata"]["ownerReferences"][0]["name"];
        let owner = format!("RayJob/{}", owner.as_str().unwrap_or_default());
        let Some(job) = seen.objects.get(&owner) else { continue };
        if let Some(ours) = child_of(seen, job, &theirs) {
            *n_compared += 1;
            let (ours, theirs) = (bare(&ours), bare(&theirs));
            found.extend(different(&ours, &theirs));
        }
    }
    found
}

/// What we make in place of an object of a RayJob. Names of the attempt are taken from that object.
fn child_of(seen: &RayWorld, job: &Value, theirs: &Value) -> Option<Value> {
    let spec = serde_json::from_value(job["spec"].clone()).expect("a spec decodes");
    let pod = match theirs["kind"].as_str()? {
        "Job" => &theirs["spec"]["template"]["spec"],
        _ => &theirs["spec"]["headGroupSpec"]["template"]["spec"],
    };
    let containers = pod["containers"].as_array().into_iter().flatten();
    let env = containers.flat_map(|container| container["env"].as_array().into_iter().flatten());
    let mut id = env.filter(|variable| variable["name"] == "RAY_JOB_SUBMISSION_ID");
    let job_id = id.next_back().and_then(|variable| variable["value"].as_str()).unwrap_or_default();
    let text = theirs.to_string();
    let mut clusters = seen.objects.values().filter(|object| object["kind"] == "RayCluster");
    let cluster = clusters
        .rfind(|cluster| text.contains(cluster["metadata"]["name"].as_str().unwrap_or_default()))?;
    let cluster_name = cluster["metadata"]["name"].as_str()?;
    let attempt = JobAttempt {
        job,
        spec: &spec,
        cluster_name,
        job_id,
        dashboard_url: "",
        settings: &seen.settings,
    };
    match theirs["kind"].as_str()? {
        "RayCluster" => Some(attempt.ray_cluster()),
        "Job" => Some(attempt.submitter_job(cluster).expect("a spec decodes")),
        "Service" => Some(attempt.head_service(cluster).expect("a spec decodes")),
        _ => None,
    }
}

/// An object as it is made.
fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    object["status"] = Value::Null;
    object["metadata"]["finalizers"] = Value::Null;
    if object["kind"] == "Service" && object["spec"]["clusterIP"].is_null() {
        object["spec"]["clusterIP"] = json!("<ip>");
    }
    normal::normal(&object)
}

pub(super) fn sample() -> Value {
    let container = json!({
        "name": "ray",
        "image": "ray:1",
        "resources": {"limits": {"cpu": "1", "memory": "2Gi", "nvidia.com/gpu": "1"}},
        "env": [{"name": "A", "value": "b"}],
        "ports": [{"name": "dashboard", "containerPort": 8265}],
    });
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}});
    json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "c1", "annotations": {"ray.io/enable-serve-service": "true"}},
        "spec": {
            "rayVersion": "2.53.0",
            "enableInTreeAutoscaling": true,
            "autoscalerOptions": {"version": "v1", "env": [{"name": "x", "value": "y"}]},
            "authOptions": {"mode": "token"},
            "gcsFaultToleranceOptions": {"redisAddress": "r:1", "redisPassword": {"value": "p"}},
            "headGroupSpec": {
                "enableIngress": true,
                "rayStartParams": {"port": "7000"},
                "headService": {"spec": {"ports": [{"name": "x", "port": 1}]}},
                "template": template,
            },
            "workerGroupSpecs": [
                {
                    "groupName": "one", "replicas": 2, "minReplicas": 0, "maxReplicas": 3,
                    "labels": {"c": "d"}, "template": template,
                    "scaleStrategy": {"workersToDelete": ["x"]},
                },
                {
                    "groupName": "many", "replicas": 1, "minReplicas": 0, "maxReplicas": 2,
                    "numOfHosts": 2, "template": template,
                },
            ],
        },
    })
}

fn sample_service() -> Value {
    let options = json!({
        "gatewayClassName": "g", "maxSurgePercent": 50, "stepSizePercent": 25, "intervalSeconds": 1,
    });
    let mut spec = sample()["spec"].clone();
    spec["autoscalerOptions"] = json!({});
    json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": {"name": "s1", "annotations": {"ray.io/initializing-timeout": "5m"}},
        "spec": {
            "rayClusterConfig": spec,
            "serveConfigV2": "applications:\n- name: one\n",
            "serveService": {"metadata": {"name": "x"}, "spec": {"ports": [{"name": "serve", "port": 1}]}},
            "upgradeStrategy": {
                "type": "NewClusterWithIncrementalUpgrade", "clusterUpgradeOptions": options,
            },
        },
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_service_makes_the_operator_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), odd_value()), 1..4),
        of_status in any::<bool>(),
    ) {
        let mut world = RayWorld::new(OperatorSettings::default());
        let _ = world.create(sample_service());
        world.rounds(8);
        let part = if of_status { "status" } else { "spec" };
        let service = world.objects.get_mut("RayService/s1").expect("a service");
        for (index, value) in changes {
            let mut found = Vec::new();
            places(&service[part], &format!("/{part}"), &mut found);
            let place = service.pointer_mut(index.get(&found[..]).as_str()).expect("a place");
            *place = value;
        }
        world.rounds(8);
        world.delete("RayService/s1");
        world.rounds(8);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_spec_makes_the_operator_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), odd_value()), 1..4),
        suspend in any::<bool>(),
    ) {
        let mut cluster = sample();
        for (index, value) in changes {
            let mut found = Vec::new();
            places(&cluster["spec"], "/spec", &mut found);
            let place = cluster.pointer_mut(index.get(&found[..]).as_str()).expect("a place");
            *place = value;
        }
        let mut world = RayWorld::new(OperatorSettings::default());
        let _ = world.create(cluster);
        world.rounds(3);
        let spec = world.objects.get_mut("RayCluster/c1").map(|cluster| &mut cluster["spec"]);
        if let Some(Value::Object(spec)) = spec {
            spec.insert("suspend".to_owned(), suspend.into());
        }
        world.rounds(3);
        world.delete("RayCluster/c1");
        world.rounds(3);
    }
}
