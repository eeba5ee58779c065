//! Two workers of one place: a create without an answer was repeated after its RayCluster had changed.

use jiff::Timestamp;
use ray::{
    PassInputs, cluster,
    settings::OperatorSettings,
    step::{RayAnswer, RayStep},
};
use serde_json::{Value, json};

fn cluster(hosts: i32) -> Value {
    let template = json!({"spec": {"containers": [{"name": "ray", "image": "ray:1"}]}});
    json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {
            "name": "c1", "namespace": "default", "uid": "u1", "generation": 1,
            "resourceVersion": "7",
        },
        "spec": {
            "enableInTreeAutoscaling": true,
            "headGroupSpec": {"template": template},
            "workerGroupSpecs": [{
                "groupName": "w", "replicas": 2, "minReplicas": 0, "maxReplicas": 9,
                "numOfHosts": hosts, "template": template,
            }],
        },
    })
}

/// The orders of a pass in which every write is done.
fn orders(cluster: &Value, children: &[Value]) -> Vec<RayStep> {
    let inputs = PassInputs { now: Timestamp::UNIX_EPOCH, seed: [1; 32] };
    let (mut orders, mut answers) = (Vec::new(), Vec::new());
    loop {
        let children: Vec<&Value> = children.iter().collect();
        let settings = OperatorSettings::default();
        let steps = cluster::decide(cluster, &children, &answers, &inputs, &settings);
        if !steps.iter().any(RayStep::is_order) {
            return orders;
        }
        for step in steps {
            let stored = match &step {
                RayStep::Create(object) => object.clone(),
                _ => Value::Null,
            };
            answers.push(RayAnswer::Done(stored.into()));
            orders.push(step);
        }
    }
}

/// The pods that a pass makes, as the API server stores them at a second.
fn made(cluster: &Value, second: u32) -> Vec<Value> {
    let pods = orders(cluster, &[]).into_iter().filter_map(|step| match step {
        RayStep::Create(pod) if pod["kind"] == "Pod" => Some(pod),
        _ => None,
    });
    let stored = pods.map(|mut pod| {
        pod["metadata"]["uid"] = pod["metadata"]["name"].clone();
        pod["metadata"]["creationTimestamp"] = json!(format!("2026-01-01T00:00:{second:02}Z"));
        pod
    });
    stored.collect()
}

fn deleted(cluster: &Value, children: &[Value]) -> Vec<String> {
    let deleted = orders(cluster, children).into_iter().filter_map(|step| match step {
        RayStep::Delete(target) if target.kind == "Pod" => Some(target.name),
        _ => None,
    });
    let mut names: Vec<String> = deleted.collect();
    names.sort();
    names
}

fn names(pods: &[Value]) -> Vec<String> {
    let names = pods.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap_or_default());
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort();
    names
}

#[test]
fn of_two_workers_of_one_place_the_younger_one_goes() {
    for hosts in [1, 2] {
        let mut cluster = cluster(hosts);
        let first = made(&cluster, 1);
        cluster["metadata"]["resourceVersion"] = json!("8");
        let second = made(&cluster, 2);
        assert_eq!(deleted(&cluster, &first), [""; 0], "{hosts} hosts");
        let n_hosts = usize::try_from(hosts).expect("a count");
        // The head, and the worker or the replica at the first index.
        let duplicates = second[1..=n_hosts].to_vec();
        let mut all = [first.clone(), duplicates.clone()].concat();
        assert_eq!(deleted(&cluster, &all), names(&duplicates), "{hosts} hosts");
        // While it ends, no other one goes.
        for pod in all.iter_mut().skip(first.len()) {
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:03Z");
        }
        assert_eq!(deleted(&cluster, &all), [""; 0], "{hosts} hosts");
    }
}
