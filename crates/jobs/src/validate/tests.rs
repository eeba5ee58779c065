//! Rules that the recorded requests do not cover.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{AnnotatedTemplate, create, topology, update};
use crate::{Job, JobGates, JobObject, Kinds};

fn job(labels: &Value, annotations: &Value, spec: &Value) -> Job {
    let metadata = json!({ "name": "train", "labels": labels, "annotations": annotations });
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).expect("a Job decodes")
}

fn texts(errors: &[crds::validation::FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_queue_name_is_not_removed_in_a_namespace_with_a_default_queue() {
    let old =
        job(&json!({ "kueue.x-k8s.io/queue-name": "lq" }), &json!({}), &json!({ "suspend": true }));
    let new = job(&json!({}), &json!({}), &json!({ "suspend": true }));
    assert_eq!(texts(&update(&new, &old, false, JobGates::default())), Vec::<String>::new());
    assert_eq!(
        texts(&update(&new, &old, true, JobGates::default())),
        [
            "metadata.labels[kueue.x-k8s.io/queue-name]: Invalid value: \"\": queue-name must not be empty in namespace with default queue"
        ]
    );
}

#[test]
fn a_priority_class_is_not_added_to_a_running_job() {
    let (old, class) = (json!({}), json!({ "kueue.x-k8s.io/priority-class": "high" }));
    let refusals = |suspend: bool| {
        let spec = json!({ "suspend": suspend });
        let (new, old) = (job(&class, &json!({}), &spec), job(&old, &json!({}), &spec));
        texts(&update(&new, &old, false, JobGates::default()))
    };
    assert_eq!(refusals(true), Vec::<String>::new());
    assert_eq!(
        refusals(false),
        [
            "metadata.labels[kueue.x-k8s.io/priority-class]: Invalid value: \"high\": WorkloadPriorityClass cannot be added to a non-suspended workload"
        ]
    );
}

#[test]
fn zero_pods_and_zero_seconds_are_refused() {
    let annotations = json!({ "kueue.x-k8s.io/job-min-parallelism": "0" });
    let time = json!({ "kueue.x-k8s.io/max-exec-time-seconds": "0" });
    let errors =
        create(&job(&time, &annotations, &json!({ "parallelism": 3 })), JobGates::default());
    assert_eq!(errors.len(), 2, "{:?}", texts(&errors));
}

#[test]
fn synced_completions_need_indexed_mode() {
    let annotations = json!({ "kueue.x-k8s.io/job-completions-equal-parallelism": "true" });
    let errors = |mode: &str| {
        let spec = json!({ "parallelism": 2, "completions": 2, "completionMode": mode });
        create(&job(&json!({}), &annotations, &spec), JobGates::default()).len()
    };
    assert_eq!(errors("Indexed"), 0);
    assert_eq!(errors("NonIndexed"), 1);
}

#[test]
fn synced_completions_are_immutable_while_the_job_runs() {
    let annotations = json!({ "kueue.x-k8s.io/job-completions-equal-parallelism": "true" });
    let n_errors = |suspend: bool| {
        let spec = json!({ "completionMode": "Indexed", "completions": 1, "suspend": suspend });
        let old = job(&json!({}), &json!({}), &spec);
        update(&job(&json!({}), &annotations, &spec), &old, false, JobGates::default()).len()
    };
    assert_eq!((n_errors(true), n_errors(false)), (0, 1));
}

/// Errors of templates with these groups, required levels and counts, at `t[0]` and so on.
fn group_errors(members: &[(&str, &str, i32)]) -> Vec<String> {
    let annotations = |group: &str, level: &str| -> BTreeMap<String, String> {
        [
            ("kueue.x-k8s.io/podset-group-name".to_owned(), group.to_owned()),
            ("kueue.x-k8s.io/podset-required-topology".to_owned(), level.to_owned()),
        ]
        .into()
    };
    let all: Vec<_> =
        members.iter().map(|(group, level, count)| (annotations(group, level), *count)).collect();
    let templates: Vec<AnnotatedTemplate<'_>> = all
        .iter()
        .enumerate()
        .map(|(at, (annotations, count))| AnnotatedTemplate {
            path: format!("t[{at}]"),
            annotations: Some(annotations),
            count: *count,
        })
        .collect();
    let errors = topology::check(&templates, JobGates::default());
    texts(&[errors, topology::check_groups(&templates)].concat())
}

#[test]
fn a_pod_set_group_has_two_pod_sets_of_one_topology_and_one_single_pod() {
    assert_eq!(group_errors(&[("g", "rack", 1), ("g", "rack", 4)]), [""; 0]);
    let differing = group_errors(&[("g", "rack", 1), ("g", "host", 4)]);
    assert_eq!(differing.len(), 2, "one for each of them");
    assert_eq!(group_errors(&[("g", "rack", 1), ("g", "rack", 1), ("g", "rack", 1)]).len(), 3);
}

#[test]
fn a_group_of_the_only_pod_set_is_refused_unless_its_kind_has_no_groups() {
    let annotations = json!({
        "kueue.x-k8s.io/podset-group-name": "g", "kueue.x-k8s.io/podset-required-topology": "rack",
    });
    let pod = json!({ "containers": [{ "name": "c" }] });
    let template = json!({ "metadata": { "annotations": annotations }, "spec": pod });
    let replicated = json!({ "name": "r", "template": { "spec": { "template": template } } });
    let head = json!({ "headGroupSpec": { "template": template } });
    let launcher = json!({ "Launcher": { "template": template } });
    let set = json!({ "workerTemplate": template, "size": 2 });
    let metadata = json!({ "name": "j", "annotations": annotations });
    let refused = |kind: (&str, &str), spec: Value| {
        let kind = Kinds::built_in().find(kind.0, kind.1).expect("a built-in kind");
        let job = kind.decode(json!({ "metadata": metadata, "spec": spec })).expect("it decodes");
        let one = "can only define groups of exactly 2 pod sets, got: 1 pod set(s)";
        let count = |job: &JobObject| {
            let errors = texts(&create(job, JobGates::default()));
            errors.iter().filter(|error| error.ends_with(one)).count()
        };
        assert_eq!(update(&job, &job, false, JobGates::default()), [], "one of a former version");
        let copied = json!({ "kueue.x-k8s.io/multikueue-origin": "hub" });
        let owners = json!([{ "apiVersion": "a/v1", "kind": "A", "name": "a", "uid": "u", "controller": true }]);
        for (field, value) in [("labels", copied), ("ownerReferences", owners)] {
            let mut metadata = metadata.clone();
            metadata[field] = value;
            let job =
                kind.decode(json!({ "metadata": metadata, "spec": spec })).expect("it decodes");
            assert_eq!(count(&job), 0, "made from an accepted one");
        }
        count(&job)
    };
    for (kind, spec) in [
        (("jobset.x-k8s.io/v1alpha2", "JobSet"), json!({ "replicatedJobs": [replicated] })),
        (("kubeflow.org/v2beta1", "MPIJob"), json!({ "mpiReplicaSpecs": launcher })),
        (("ray.io/v1", "RayCluster"), head),
    ] {
        assert_eq!(refused(kind, spec), 1, "{kind:?}");
    }
    let set = json!({ "leaderWorkerTemplate": set });
    for (kind, spec) in [
        (("batch/v1", "Job"), json!({ "template": template })),
        (("v1", "Pod"), pod),
        (("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"), set),
    ] {
        assert_eq!(refused(kind, spec), 0, "{kind:?}");
    }
}

#[test]
fn every_problem_of_a_group_is_listed_in_the_order_of_the_pod_sets() {
    let field = |at: usize| format!("t[{at}].annotations[kueue.x-k8s.io/podset-group-name]");
    let detail = "can only define groups where at least one pod set has only 1 replica, got: 2 replica(s) and 3 replica(s) in the group";
    let replicas = [0, 1].map(|at| format!("{}: Invalid value: \"g\": {detail}", field(at)));
    assert_eq!(group_errors(&[("g", "rack", 2), ("g", "rack", 3)]), replicas);
    let both = group_errors(&[("g", "rack", 2), ("g", "host", 3)]);
    assert_eq!((&both[..2], both.len()), (replicas.as_slice(), 4));
    assert!(both[2].starts_with("t[0].annotations: Invalid value: must specify"), "{both:?}");
    let two = group_errors(&[("z", "rack", 1), ("a", "rack", 1)]);
    let starts: Vec<bool> = two.iter().zip(0..).map(|(e, at)| e.starts_with(&field(at))).collect();
    assert_eq!(starts, [true, true], "groups in the order of their first pod sets: {two:?}");
}

/// Errors of a template with layers of slices.
fn layer_errors(layers: &Value, group: Option<&str>, gates: JobGates) -> Vec<String> {
    let mut annotations = BTreeMap::from([(
        "kueue.x-k8s.io/podset-slice-required-topology-constraints".to_owned(),
        layers.to_string(),
    )]);
    if let Some(group) = group {
        annotations.insert("kueue.x-k8s.io/podset-required-topology".to_owned(), "rack".to_owned());
        annotations.insert("kueue.x-k8s.io/podset-group-name".to_owned(), group.to_owned());
    }
    let template =
        AnnotatedTemplate { path: "t".to_owned(), annotations: Some(&annotations), count: 16 };
    texts(&topology::check(std::slice::from_ref(&template), gates))
}

#[test]
fn layers_of_slices_are_refused_in_the_words_of_upstream() {
    let field = "t.annotations[kueue.x-k8s.io/podset-slice-required-topology-constraints]";
    let layer = |topology: &str, size: i32| json!({ "topology": topology, "size": size });
    let errors = |layers: &[Value]| layer_errors(&json!(layers), None, JobGates::default());
    assert_eq!(
        errors(&[layer("cloud.com/rack", 16), layer("cloud.com/rack", 8)]),
        [format!("{field}[1].topology: Duplicate value: \"cloud.com/rack (also at index 0)\"")]
    );
    assert_eq!(
        errors(&[layer("cloud.com/block", 16), layer("cloud.com/rack", 5)]),
        [format!("{field}[1].size: Invalid value: 5: must evenly divide the parent layer size 16")]
    );
}

#[test]
fn layers_of_slices_without_their_gate_are_refused_once() {
    let off = JobGates { topology_layers: false, ..JobGates::default() };
    let forbidden = "t.annotations[kueue.x-k8s.io/podset-slice-required-topology-constraints]: Forbidden: the TASMultiLayerTopology feature gate must be enabled to use this annotation";
    let layers = json!([{ "topology": "rack", "size": 4 }]);
    for group in [None, Some("g")] {
        assert_eq!(layer_errors(&layers, group, off), [forbidden], "{group:?}");
    }
    let on = layer_errors(&layers, Some("g"), JobGates::default());
    assert_eq!(on.len(), 1, "a group has no slices: {on:?}");
}

#[test]
fn the_counts_of_a_synced_job_change_together() {
    let annotations = json!({ "kueue.x-k8s.io/job-completions-equal-parallelism": "true" });
    let synced = |parallelism: i32, completions: i32, suspend: bool| {
        let spec = json!({
            "completionMode": "Indexed", "parallelism": parallelism, "completions": completions,
            "suspend": suspend,
        });
        job(&json!({}), &annotations, &spec)
    };
    let errors = |new: &Job, old: &Job| texts(&update(new, old, false, JobGates::default()));
    for suspend in [true, false] {
        let old = synced(3, 3, suspend);
        let n_errors = |parallelism, completions| {
            errors(&synced(parallelism, completions, suspend), &old).len()
        };
        assert_eq!([n_errors(3, 3), n_errors(2, 2)], [0, 0], "{suspend}");
        assert_eq!([n_errors(2, 3), n_errors(3, 4)], [1, 1], "{suspend}");
    }
    let mut labelled = synced(2, 3, false);
    labelled.metadata.labels.get_or_insert_default().insert("a".to_owned(), "b".to_owned());
    assert_eq!(errors(&labelled, &synced(2, 3, false)), [""; 0], "no count changes");
}

#[test]
fn a_sync_that_is_switched_on_later_is_checked_like_one_of_a_new_job() {
    let spec = json!({ "parallelism": 3, "completions": 4, "suspend": true });
    let old = job(&json!({}), &json!({}), &spec);
    let n_errors = |sync: &str| {
        let annotations = json!({ "kueue.x-k8s.io/job-completions-equal-parallelism": sync });
        let new = job(&json!({}), &annotations, &spec);
        update(&new, &old, false, JobGates::default()).len()
    };
    assert_eq!([n_errors("yes"), n_errors("false")], [1, 0]);
    assert_eq!(n_errors("true"), 2, "neither indexed nor of equal counts");
}

#[test]
fn an_empty_minimum_is_none() {
    let spec = json!({ "parallelism": 3, "suspend": true });
    let old = job(&json!({}), &json!({}), &spec);
    let empty = json!({ "kueue.x-k8s.io/job-min-parallelism": "" });
    let new = job(&json!({}), &empty, &spec);
    assert_eq!(texts(&update(&new, &old, false, JobGates::default())), Vec::<String>::new());
}

#[test]
fn a_job_that_is_being_stopped_counts_as_suspended() {
    let stopping = json!({ "kueue.x-k8s.io/stopping": "true" });
    let labels = |queue: &str| json!({ "kueue.x-k8s.io/queue-name": queue });
    let spec = json!({ "suspend": true });
    let (old, new) = (job(&labels("a"), &stopping, &spec), job(&labels("b"), &stopping, &spec));
    assert_eq!(texts(&update(&new, &old, false, JobGates::default())), Vec::<String>::new());
}

#[test]
fn a_slice_size_has_32_bits() {
    let size = |size: &str| {
        let annotations = json!({
            "kueue.x-k8s.io/podset-slice-required-topology": "rack",
            "kueue.x-k8s.io/podset-slice-size": size,
        });
        let template = json!({ "metadata": { "annotations": annotations } });
        let job = job(&json!({}), &json!({}), &json!({ "parallelism": 4, "template": template }));
        texts(&create(&job, JobGates::default()))
    };
    assert_eq!(size("4"), Vec::<String>::new());
    for text in ["2147483648", "-2147483649"] {
        assert!(size(text)[0].ends_with("must be a numeric value"), "{:?}", size(text));
    }
}

#[test]
fn the_copy_of_a_dispatched_job_may_name_its_clone() {
    let kind = Kinds::built_in().find("kubeflow.org/v1", "JAXJob").expect("a built-in kind");
    let refusals = |labels: &Value| {
        let prebuilt = json!({ "kueue.x-k8s.io/prebuilt-workload-name": "w" });
        let metadata = json!({ "name": "j", "labels": labels, "annotations": prebuilt });
        let job = kind.decode(json!({ "metadata": metadata, "spec": {} })).expect("it decodes");
        create(&job, JobGates::default()).len()
    };
    assert_eq!(refusals(&json!({})), 1, "its kind has no prebuilt Workloads");
    assert_eq!(refusals(&json!({ "kueue.x-k8s.io/multikueue-origin": "hub" })), 0);
}

#[test]
fn a_number_with_a_sign_is_the_name_of_a_group_of_pod_sets() {
    let refusals = |name: &str| {
        let annotations = BTreeMap::from([
            ("kueue.x-k8s.io/podset-group-name", name),
            ("kueue.x-k8s.io/podset-required-topology", "rack"),
        ]);
        let owned = annotations.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
        let annotations = owned.collect();
        let path = "spec.template.metadata".to_owned();
        let template = AnnotatedTemplate { path, annotations: Some(&annotations), count: 1 };
        let errors = topology::check(std::slice::from_ref(&template), JobGates::default());
        errors.iter().filter(|error| error.to_string().contains("must not be a number")).count()
    };
    assert_eq!(refusals("1"), 1);
    assert_eq!(refusals("+1"), 0);
    assert_eq!(refusals("a1"), 0);
}
