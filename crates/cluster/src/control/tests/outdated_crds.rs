//! A TrainJob on a cluster with a CRD from before its patches: the API server drops what a start writes.

use jiff::ToSpan;
use kube::core::DynamicObject;

use super::{
    dispatched::{done, orders},
    lookups::{manager_of_rendered, settings_of},
    *,
};

const SENTENCE: &str = "TrainJob CRD does not support the 'runtimePatches' field. This field is required by Kueue and was added \
                        in Kubeflow Trainer v2.2.0. Currently installed TrainJob CRD appears to be v2.1 or earlier. Please \
                        upgrade Kubeflow Trainer to v2.2.0 or later. See: \
                        https://github.com/kubeflow/trainer/releases/tag/v2.2.0";

/// The template of the entry of Kueue in the patches.
const TEMPLATE: &str =
    "/0/trainingRuntimeSpec/template/spec/replicatedJobs/0/template/spec/template";

fn train_job() -> Kind {
    let kind = Kinds::built_in().of_framework("trainer.kubeflow.org/trainjob");
    kind.expect("TrainJob").clone()
}

/// A TrainJob of this version and with these patches, as the API shows it.
fn shown(version: &str, suspend: bool, patches: &Value) -> Value {
    let mut object = json!({
        "metadata": {
            "name": "t", "namespace": "ns", "uid": "uid-t", "resourceVersion": version,
            "labels": {"kueue.x-k8s.io/queue-name": "lq"},
        },
        "spec": {"suspend": suspend, "runtimeRef": {"name": "r"}},
    });
    if !patches.is_null() {
        object["spec"]["runtimePatches"] = patches.clone();
    }
    object
}

/// A manager with a suspended TrainJob of which the Workload is admitted.
fn manager() -> ManagerControl {
    let kind = train_job();
    let runtime = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "r", "resourceVersion": "1"},
        "spec": {"template": {"spec": {"replicatedJobs": [
            {"name": "node", "template": {"spec": {"template": {"spec": {"containers": []}}}}},
        ]}}},
    });
    let runtime: Arc<DynamicObject> = Arc::new(serde_json::from_value(runtime).expect("an object"));
    let job = kind.decode(shown("30", true, &Value::Null)).expect("it decodes");
    let needed = job.needed_objects().pop().expect("a runtime");
    let mut found = ::jobs::lookups::FoundObjects::default();
    found.observe(needed.clone(), Some(Arc::clone(&runtime)));
    let sets = job.with_objects(&found).pod_sets(::jobs::JobGates::default());
    let mut admitted = workload();
    admitted["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "t", "uid": "uid-t",
        "controller": true,
    }]);
    admitted["spec"]["podSets"] = json!(sets);
    admitted["status"]["admission"]["podSetAssignments"] =
        json!([{"name": "node", "count": 1, "flavors": {}}]);

    let settings = settings_of(&kind);
    manager_of_rendered(settings, (&kind, job), &admitted, (needed.kind, &runtime))
}

/// The spec that a start writes, if it writes.
fn start(step: &Decisions) -> Option<Value> {
    let order = step.orders.iter().find(|one| one.ticket.purpose == Purpose::Start)?;
    let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
    Some(body["spec"].clone())
}

fn events(step: &Decisions) -> Vec<String> {
    let about = step.events.iter().filter(|event| event.regarding.key.name.as_ref() == "t");
    about.map(|event| format!("{} {}", event.reason, event.note)).collect()
}

#[test]
fn a_job_starts_when_its_patches_are_stored() {
    let mut control = manager();
    let step = control.decide(NOW);
    let spec = start(&step).expect("the patches");
    assert_eq!(spec.get("suspend"), None, "the switch stays: {:?}", orders(&step));
    let patches = spec["runtimePatches"].clone();
    done(&mut control, &step, "start", shown("31", true, &patches), NOW);
    let step = control.decide(NOW);
    assert_eq!(events(&step), [""; 0], "it has not started");
    assert_eq!(start(&step), Some(json!({"suspend": false})));
    done(&mut control, &step, "start", shown("32", false, &patches), NOW);
    assert_eq!(events(&control.decide(NOW)), ["Started Admitted by clusterQueue cq"]);
}

/// A webhook may add to the patches, as one with a time that differs in each answer.
#[test]
fn a_job_starts_with_further_patches() {
    let mut control = manager();
    let step = control.decide(NOW);
    let mut patches = start(&step).expect("the patches")["runtimePatches"].clone();
    let template = patches.pointer_mut(TEMPLATE).expect("a template");
    template["metadata"]["annotations"]["example.com/seen"] = json!("31");
    template["spec"]["tolerations"] = json!([{"key": "more"}]);
    done(&mut control, &step, "start", shown("31", true, &patches), NOW);
    let step = control.decide(NOW);
    assert_eq!(start(&step), Some(json!({"suspend": false})));
    assert_eq!(events(&step), [""; 0]);
    done(&mut control, &step, "start", shown("32", false, &patches), NOW);
    assert_eq!(events(&control.decide(NOW)), ["Started Admitted by clusterQueue cq"]);
}

/// A CRD, or a webhook, that takes a part of the patches away or holds the switch: each answer is another version of the job.
#[test]
fn a_job_whose_start_is_stored_in_part_says_so_once() {
    let at = "spec.runtimePatches[kueue.x-k8s.io/manager].trainingRuntimeSpec.template.spec.replicatedJobs[node].template.spec.template.metadata.labels.kueue.x-k8s.io/podset";
    for path in [at, "spec.suspend"] {
        let mut control = manager();
        let (mut n_writes, mut shown_events) = (0, Vec::new());
        let mut patches = Value::Null;
        let mut now = NOW;
        for turn in 0..2000 {
            now = NOW + (turn * 30).milliseconds();
            let step = control.decide(now);
            shown_events.extend(events(&step));
            let Some(spec) = start(&step) else { continue };
            n_writes += 1;
            if let Some(written) = spec.get("runtimePatches") {
                patches = written.clone();
            }
            let labels = patches.pointer_mut(TEMPLATE).map(|it| &mut it["metadata"]["labels"]);
            let labels = labels.and_then(Value::as_object_mut).expect("labels");
            let suspend = path == "spec.suspend" || spec.get("suspend").is_none();
            if path == at {
                labels.remove("kueue.x-k8s.io/podset");
            }
            let version = (30 + n_writes).to_string();
            done(&mut control, &step, "start", shown(&version, suspend, &patches), now);
        }
        let [event] = &shown_events[..] else { panic!("{shown_events:?}") };
        assert!(event.starts_with("StartNotStored ") && event.contains(path), "{event}");
        assert!((2..25).contains(&n_writes), "{path}: {n_writes} until {now}");
    }
}

#[test]
fn a_job_does_not_start_without_its_patches() {
    let mut control = manager();
    let step = control.decide(NOW);
    done(&mut control, &step, "start", shown("30", true, &Value::Null), NOW);
    let mut n_writes = 1;
    let mut shown_events = Vec::new();
    for second in 0..60 {
        let now = NOW + second.seconds();
        let step = control.decide(now);
        shown_events.extend(events(&step));
        let Some(spec) = start(&step) else { continue };
        assert_eq!(spec.get("suspend"), None);
        n_writes += 1;
        done(&mut control, &step, "start", shown("30", true, &Value::Null), now);
    }
    assert_eq!(shown_events, [format!("CRDOutdated {SENTENCE}")], "once");
    assert_eq!(n_writes, 9, "more and more slowly");
}
