//! Objects with fields of wrong types: of every kind a recorded job in which one field after the other is something else. No
//! decision may panic, and what cannot be read is an error that names a field, or counts as absent.

use jobs::{
    GenericJob, JobObject, Kind, Kinds, generic_job::Stop, pod_set_info::PodSetInfo, validate,
};
use serde_json::{Value, json};

use crate::{
    KINDS, MARK_PODS, SETS, decode, found, gates, kinds_recording::cases, runtime, runtimes,
};

/// Pointers to all fields of an object below `spec` and `status`.
fn fields(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields_of) => {
            for (key, value) in fields_of {
                let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                found.push(at.clone());
                fields(value, &at, found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                let at = format!("{at}/{index}");
                found.push(at.clone());
                fields(value, &at, found);
            }
        }
        _ => {}
    }
}

/// Values of every type.
fn wrong() -> [Value; 7] {
    [json!(null), json!("x"), json!(7), json!(-1.5), json!([1]), json!({ "x": 1 }), json!(true)]
}

/// Asks everything that webhooks and reconciliation ask.
fn ask_all(job: &JobObject, before: &JobObject) {
    let gates = gates();
    let job = job.with_objects(&runtimes());
    let sets = job.pod_sets(gates);
    let _ = (job.templates().len(), job.is_active(), job.pods_ready(), job.has_started());
    let _ = (job.finished(), job.reclaimable_pods(), job.priority_class(), job.is_skipped());
    let _ = (validate::create(&job, gates), validate::update(&job, before, false, gates));
    let _ = (job.defaults(gates), job.with_idle_status(), job.set_size(), job.needed_objects());
    let infos: Vec<PodSetInfo> = sets.iter().map(PodSetInfo::of).collect();
    let mut started = job.clone();
    let _ = started.run_with_pod_sets_info(&infos, gates);
    let _ = started.next_stop_write(&Stop { infos: &infos, ..Stop::default() }, gates);
    let copy = job.remote_job(&sets, gates);
    let _ = (job.with_remote_status(&copy), job.has_status_of(&copy), copy.to_create());
}

#[test]
fn a_field_of_a_wrong_type_is_an_error_or_counts_as_absent() {
    let mut n_asked = 0;
    for (file, api_version, kind) in KINDS.iter().chain([&SETS]).chain(&MARK_PODS) {
        let kind = Kinds::built_in().find(api_version, kind).expect("a built-in kind");
        // The last state of a life has a status; the longest one has most fields.
        let states: Vec<Value> = cases(file)
            .iter()
            .flat_map(|case| {
                case.all_steps()
                    .iter()
                    .flat_map(|step| {
                        step.changed(kind.name()).into_iter().cloned().collect::<Vec<_>>()
                    })
                    .collect::<Vec<_>>()
            })
            .filter(|object| !object.to_string().contains("<varies>"))
            .collect();
        for state in &states {
            let job = kind.decode(state.clone()).expect("it decodes");
            assert_eq!(job.unreadable_status(), None, "{state}");
        }
        let object = states.iter().max_by_key(|object| object.to_string().len()).expect("a state");
        let whole = kind.decode(object.clone()).expect("it decodes");
        let mut pointers = Vec::new();
        for part in ["spec", "status"].into_iter().filter(|part| object[part].is_object()) {
            pointers.push(format!("/{part}"));
            fields(&object[part], &format!("/{part}"), &mut pointers);
        }
        for pointer in pointers {
            for wrong in wrong() {
                let mut object = object.clone();
                *object.pointer_mut(&pointer).expect("the field") = wrong;
                n_asked += 1;
                match kind.decode(object) {
                    Ok(job) => ask_all(&job, &whole),
                    Err(error) => assert!(!error.is_empty(), "{} {pointer}", kind.name()),
                }
            }
        }
    }
    assert!(n_asked > 5_000, "{n_asked} objects");
}

#[test]
fn a_runtime_with_a_field_of_a_wrong_type_is_named_or_makes_other_pod_sets() {
    let job = json!({
        "metadata": { "name": "t" },
        "spec": { "runtimeRef": { "name": "plain-runtime" }, "trainer": {
            "image": "i", "numNodes": 2, "env": [{ "name": "A" }],
            "resourcesPerNode": { "requests": { "cpu": "1" } },
        } },
    });
    let job = decode("trainer.kubeflow.org/v1alpha1", "TrainJob", &job);
    let mut pointers = Vec::new();
    fields(&runtime()["spec"], "/spec", &mut pointers);
    for pointer in pointers {
        for wrong in wrong() {
            let mut runtime = runtime();
            *runtime.pointer_mut(&pointer).expect("the field") = wrong;
            let job = job.with_objects(&found(runtime));
            let known = job.unresolved().is_none() || job.pod_sets(gates()).is_empty();
            assert!(known, "{pointer}");
        }
    }
}

/// A configured kind of which no schema is known.
const CREW: &str = "
framework: example.com/crew
group: example.com
version: v1
kind: Crew
plural: crews
suspend: /spec/suspend
fields:
  podSets:
  - name: { fixed: lead }
    within: /spec/lead
    template: /template
  - each: /spec/roles
    name: { at: /name }
    template: /template
    replicas: { first: [{ at: /size/wanted }, { number: 1 }] }
    podsPerReplica: { min: [{ at: /hosts }, { number: 4 }] }
  active: { anyAbove: [/status/active] }
";

#[test]
fn pods_of_a_configured_kind_with_a_field_of_a_wrong_type_are_never_counted() {
    let kind = Kind::parse(CREW).expect("a kind");
    let template = json!({ "spec": { "containers": [{ "name": "c" }] } });
    let role = json!({ "name": "r", "template": template, "size": { "wanted": 8 }, "hosts": 2 });
    let spec = json!({ "suspend": true, "lead": { "template": template }, "roles": [role] });
    let crew = json!({ "metadata": { "name": "c", "namespace": "ns" }, "spec": spec });
    let whole = kind.decode(crew.clone()).expect("it decodes");
    assert_eq!(whole.pod_sets(gates()).len(), 2);
    for (pointer, field) in [
        ("/spec", "spec"),
        ("/spec/lead", "spec.lead"),
        ("/spec/lead/template", "spec.lead.template"),
        ("/spec/roles", "spec.roles"),
        ("/spec/roles/0", "spec.roles"),
        ("/spec/roles/0/template", "spec.roles[0].template"),
        ("/spec/roles/0/size", "spec.roles[0].size"),
        ("/spec/roles/0/size/wanted", "spec.roles[0].size.wanted"),
        ("/spec/roles/0/hosts", "spec.roles[0].hosts"),
    ] {
        for wrong in [json!("8"), json!(8.0), json!(true)] {
            let mut crew = crew.clone();
            *crew.pointer_mut(pointer).expect("the field") = wrong.clone();
            let job = kind.decode(crew).expect("it decodes");
            let why = job.unresolved().unwrap_or_default();
            assert!(why.starts_with(&format!("{field} is no ")), "{pointer} {wrong}: {why}");
            assert!(job.contradicts_itself() && job.pod_sets(gates()).is_empty(), "{pointer}");
        }
    }
}
