//! The claim of a head's state that exists already.

use ray::{PassInputs, cluster, settings::OperatorSettings, step::RayStep};
use serde_json::{Value, json};

/// What is said of the claim of a cluster with these options, when it has this spec.
fn warnings(storage: &Value, claim: &str, present: &Value) -> Vec<String> {
    let template = json!({"spec": {"containers": [{"name": "ray", "image": "ray:1"}]}});
    let options = json!({"backend": "rocksdb", "storage": storage});
    let cluster = json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": {"name": "c", "namespace": "ns", "uid": "u"},
        "spec": {"gcsFaultToleranceOptions": options, "headGroupSpec": {"template": template}},
    });
    let labels = json!({"ray.io/cluster": "c", "ray.io/node-type": "head"});
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "c-head-svc", "uid": "s", "labels": labels},
    });
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim, "namespace": "ns"}, "spec": present,
    });
    let mut settings = OperatorSettings::default();
    settings.gates.embedded_storage = true;
    let inputs = PassInputs { now: "2026-01-01T00:00:00Z".parse().expect("a time"), seed: [1; 32] };
    let mut answers = Vec::new();
    loop {
        let steps = cluster::decide(&cluster, &[&service, &claim], &answers, &inputs, &settings);
        if !steps.iter().any(RayStep::is_order) {
            let events = steps.into_iter().filter_map(|step| match step {
                RayStep::Event(event) if event.warning => {
                    Some(format!("{}: {}", event.reason, event.message))
                }
                _ => None,
            });
            return events.collect();
        }
        for step in steps {
            let RayStep::Create(object) = step else { unreachable!("{step:?}") };
            answers.push(ray::step::RayAnswer::Done(object.into()));
        }
    }
}

fn volume(size: &str, modes: &[&str], class: &str) -> Value {
    json!({
        "accessModes": modes, "storageClassName": class,
        "resources": {"requests": {"storage": size}},
    })
}

#[test]
fn a_claim_that_is_not_as_the_spec_stays_with_a_warning() {
    let found = |storage: Value, present: &Value| warnings(&storage, "c-gcs-pvc", present);
    let text = |fields: &str| {
        vec![format!(
            "FailedToCreatePVC: GCS storage PVC ns/c-gcs-pvc has another {fields} than the spec and cannot be reconfigured in place"
        )]
    };
    let present = volume("1024Mi", &["ReadWriteOnce"], "fast");
    assert_eq!(found(json!({}), &present), Vec::<String>::new());
    assert_eq!(found(json!({"size": "2Gi"}), &present), text("size"));
    let other = json!({"accessModes": ["ReadWriteMany"], "storageClassName": "slow"});
    assert_eq!(found(other, &present), text("accessModes, storageClassName"));
}

#[test]
fn a_claim_of_the_user_may_be_of_any_size() {
    let present = volume("9Gi", &["ReadWriteMany"], "fast");
    assert_eq!(warnings(&json!({"claimName": "mine"}), "mine", &present), Vec::<String>::new());
}
