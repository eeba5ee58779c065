//! Ways from outside that earlier versions made with a hash in their names.

use ray::{security::ClusterPlatform, step::RayStep};
use serde_json::{Value, json};

use crate::fixture::{decide, mutated, settings};

const FORMER: [&str; 2] = ["ray-dashboard-c-76bc3262", "rayclient-c-ac4f0606"];
const PRESENT: [&str; 2] = ["ray-dashboard-c", "rayclient-c"];

/// Ingresses of the cluster with this uid.
fn ingresses(names: &[&str], uid: &str) -> Vec<Value> {
    let ingress = |name: &&str| {
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "spec": {},
            "metadata": {
                "name": name, "namespace": "ns", "uid": name,
                "labels": {"ray.io/cluster": "c", "ray.openshift.ai/cluster-name": "c"},
                "ownerReferences": [{"kind": "RayCluster", "name": "c", "uid": uid}],
            },
        })
    };
    names.iter().map(ingress).collect()
}

fn terminating(mut ingresses: Vec<Value>) -> Vec<Value> {
    for ingress in &mut ingresses {
        ingress["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    ingresses
}

/// The names of what is deleted.
fn removed(cluster: &Value, mtls: bool, children: &[Value]) -> Vec<String> {
    let settings = settings(false, mtls, ClusterPlatform::Kubernetes);
    let steps = decide(cluster, children, &[], &settings);
    let removed = steps.into_iter().filter_map(|step| match step {
        RayStep::Delete(target) => Some(target.name),
        _ => None,
    });
    removed.collect()
}

#[test]
fn the_former_way_of_a_cluster_is_removed_once_the_present_one_is_there() {
    let cluster = mutated(false, false);
    let removed = |children: &[Value]| removed(&cluster, false, children);
    let (present, former) = (ingresses(&PRESENT, "u"), ingresses(&FORMER, "u"));
    assert_eq!(removed(&former), [""; 0], "nothing else leads to the head yet");
    let both = |present: &[Value], former: &[Value]| [present, former].concat();
    assert_eq!(removed(&both(&present, &former)), FORMER);
    assert_eq!(removed(&both(&ingresses(&PRESENT, "other"), &former)), [""; 0]);
    assert_eq!(removed(&both(&present, &ingresses(&FORMER, "other"))), [""; 0]);
    assert_eq!(removed(&both(&present, &terminating(former.clone()))), [""; 0]);
    assert_eq!(removed(&both(&terminating(present), &former)), [""; 0], "it is about to go");
}

/// The certificate of the head is made by a container that stays as it was.
#[test]
fn the_former_way_of_clients_stays_while_the_certificate_has_its_host_only() {
    let children = [ingresses(&PRESENT, "u"), ingresses(&FORMER, "u")].concat();
    let mut cluster = mutated(false, true);
    assert_eq!(removed(&cluster, true, &children), FORMER);
    let create_cert = "/spec/headGroupSpec/template/spec/initContainers/0";
    let variables = &mut cluster.pointer_mut(create_cert).expect("a container")["env"];
    variables[1]["value"] = json!(",DNS:c-head-svc.ns.svc,DNS:rayclient-c-ac4f0606-ns.example.com");
    assert_eq!(removed(&cluster, true, &children), FORMER[..1]);
    // What was added stays when the settings change.
    assert_eq!(removed(&cluster, false, &children), FORMER[..1]);
    let create_cert = cluster.pointer_mut(create_cert).expect("a container");
    create_cert["env"] = json!([]);
    assert_eq!(removed(&cluster, true, &children), FORMER[..1], "the names are not known");
}
