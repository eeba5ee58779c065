//! An elastic RayCluster with worker groups in another order than its slice.

use std::collections::BTreeMap;

use super::*;
use crate::GenericJob;

/// An elastic RayCluster with these groups, each with a number of workers, in this order.
fn ray(groups: &[(&str, i32)], suspend: bool) -> JobObject {
    decoded(object(groups, suspend))
}

fn object(groups: &[(&str, i32)], suspend: bool) -> Value {
    let template = json!({ "spec": { "containers": [{ "name": "c" }] } });
    let group = |&(name, replicas): &(&str, i32)| json!({ "groupName": name, "replicas": replicas, "maxReplicas": 9, "template": template });
    let workers: Vec<Value> = groups.iter().map(group).collect();
    json!({
        "metadata": {
            "name": "j", "namespace": "ns", "uid": "u-1",
            "labels": { "kueue.x-k8s.io/queue-name": "lq" },
            "annotations": { "kueue.x-k8s.io/elastic-job": "true" },
        },
        "spec": {
            "suspend": suspend, "headGroupSpec": { "template": template }, "workerGroupSpecs": workers,
        },
    })
}

fn decoded(object: Value) -> JobObject {
    let kind = Kinds::built_in().find("ray.io/v1", "RayCluster").expect("a built-in kind");
    kind.decode(object).expect("a job decodes")
}

/// The slice with quota of a RayCluster with these groups. Each pod set but the head has a flavor of its name.
fn holder(groups: &[(&str, i32)]) -> Workload {
    let (priority, copied) = (WorkloadPriority::default(), KeysToCopy::default());
    let mut holder = construct_workload(&ray(groups, true), priority, &copied, GATES());
    holder.status = workload(&["QuotaReserved", "Admitted"]).status;
    let admission = holder.status.admission.as_mut().expect("it has quota");
    let one = admission.pod_set_assignments[0].clone();
    let assigned = holder.spec.pod_sets.iter().map(|set| {
        let mut assignment = one.clone();
        (assignment.name, assignment.count) = (set.name.clone(), set.count);
        if set.name != "head" {
            let flavors = BTreeMap::from([("cpu".to_owned(), set.name.clone())]);
            assignment.flavors = flavors.into();
        }
        assignment
    });
    admission.pod_set_assignments = assigned.collect();
    holder
}

/// Flavors with the names of the groups, on nodes that are labelled with these.
fn group_flavors() -> FlavorsByName {
    let flavor = |name: &str| {
        let spec = json!({ "nodeLabels": { "pool": name } });
        (name.to_owned(), serde_json::from_value(spec).expect("a flavor"))
    };
    let mut all = flavors();
    all.extend(["a", "b"].map(flavor));
    all
}

fn steps_of(job: &JobObject, slices: &[&Workload]) -> Vec<ReconcileStep<JobObject>> {
    reconcile(job, context(slices, &group_flavors()))
}

fn counts(slice: &Workload) -> Vec<(&str, Option<i32>)> {
    slice.spec.pod_sets.iter().map(|set| (set.name.as_str(), set.count)).collect()
}

/// The pool of each group, by the name of the group.
fn pools(job: &JobObject) -> Vec<(String, Option<String>)> {
    let sets = job.pod_sets(GATES()).into_iter().skip(1);
    let pool = |set: &crds::v1beta2::PodSet| {
        let selector =
            serde_json::to_value(&set.template).expect("JSON")["spec"]["nodeSelector"].take();
        selector["pool"].as_str().map(str::to_owned)
    };
    sets.map(|set| (set.name.clone(), pool(&set))).collect()
}

#[test]
fn a_job_that_runs_goes_on_and_changes_its_size_by_the_names_of_its_groups() {
    let held = holder(&[("a", 3), ("b", 1)]);
    assert_eq!(steps_of(&ray(&[("b", 1), ("a", 3)], false), &[&held]), []);
    let shrunk = steps_of(&ray(&[("b", 1), ("a", 2)], false), &[&held]);
    let [ReconcileStep::ResizeSlice(after)] = &shrunk[..] else { panic!("{shrunk:?}") };
    assert_eq!(counts(after), [("head", Some(1)), ("a", Some(2)), ("b", Some(1))]);
    // As many workers as before in each place, and more of one group.
    let grown = steps_of(&ray(&[("b", 3), ("a", 1)], false), &[&held]);
    assert!(matches!(grown[..], [ReconcileStep::CreateSlice(_)]), "{grown:?}");
}

#[test]
fn a_job_starts_each_group_with_the_flavor_of_its_pod_set() {
    let held = holder(&[("a", 3), ("b", 1)]);
    for groups in [[("a", 3), ("b", 1)], [("b", 1), ("a", 3)]] {
        let steps = steps_of(&ray(&groups, true), &[&held]);
        let [ReconcileStep::Job(JobStep::Start(started))] = &steps[..] else { panic!("{steps:?}") };
        let expected = groups.map(|(name, _)| (name.to_owned(), Some(name.to_owned())));
        assert_eq!(pools(started), expected);
    }
}

#[test]
fn a_size_that_changes_by_name_alone_reaches_a_slice_without_quota() {
    let mut pending = holder(&[("a", 1), ("b", 3)]);
    pending.status = workload(&[]).status;
    // As many workers in each place as before.
    let steps = steps_of(&ray(&[("b", 1), ("a", 3)], true), &[&pending]);
    let [ReconcileStep::ResizeSlice(after)] = &steps[..] else { panic!("{steps:?}") };
    assert_eq!(counts(after), [("head", Some(1)), ("b", Some(1)), ("a", Some(3))]);
    assert_eq!(steps_of(&ray(&[("b", 3), ("a", 1)], true), &[&pending]), [], "the same sizes");
}

#[test]
fn a_dispatched_job_that_grows_by_name_before_its_start_is_recreated() {
    let mut held = holder(&[("a", 1), ("b", 3)]);
    held.status.cluster_name = Some("w".to_owned());
    let mut object = object(&[("b", 1), ("a", 3)], true);
    object["spec"]["managedBy"] = json!("kueue.x-k8s.io/multikueue");
    let steps = steps_of(&decoded(object), &[&held]);
    let [ReconcileStep::Workload { write: WorkloadStep::Delete, .. }] = &steps[..] else {
        panic!("{steps:?}")
    };
}

#[test]
fn a_job_of_fixed_size_starts_as_many_pods_with_a_flavor_as_this_was_assigned_to() {
    let held = holder(&[("a", 1), ("b", 3)]);
    let table = [
        ([("b", 1), ("a", 3)], [("b", "a"), ("a", "b")]),
        ([("a", 1), ("b", 3)], [("a", "a"), ("b", "b")]),
    ];
    for (groups, expected) in table {
        assert_eq!(pools(&started(&groups, &held)), with_pools(expected), "{groups:?}");
    }
    let equal = holder(&[("a", 3), ("b", 3)]);
    let expected = with_pools([("b", "b"), ("a", "a")]);
    assert_eq!(pools(&started(&[("b", 3), ("a", 3)], &equal)), expected, "either order fits");
}

/// The start of a RayCluster that is not elastic.
fn started(groups: &[(&str, i32)], held: &Workload) -> JobObject {
    let mut job = ray(groups, true);
    job.metadata_mut().annotations = None;
    let mut steps = steps_of(&job, &[held]);
    match steps.pop() {
        Some(ReconcileStep::Job(JobStep::Start(started))) if steps.is_empty() => *started,
        other => panic!("{steps:?} {other:?}"),
    }
}

fn with_pools(pools: [(&str, &str); 2]) -> Vec<(String, Option<String>)> {
    pools.map(|(name, pool)| (name.to_owned(), Some(pool.to_owned()))).to_vec()
}

#[test]
fn a_stop_restores_each_group_from_its_pod_set() {
    let mut held = holder(&[("a", 3), ("b", 1)]);
    for set in &mut held.spec.pod_sets[1..] {
        let selector = json!({ "spec": {
            "containers": [{ "name": "c" }], "nodeSelector": { "pool": format!("own-{}", set.name) },
        } });
        set.template = serde_json::from_value(selector).expect("a template");
    }
    held.status = workload(&["QuotaReserved", "Admitted", "Evicted"]).status;
    let steps = steps_of(&ray(&[("b", 1), ("a", 3)], false), &[&held]);
    let [ReconcileStep::Job(JobStep::Stop(StopWrite::Object(stopped), _))] = &steps[..] else {
        panic!("{steps:?}")
    };
    let expected = ["b", "a"].map(|name| (name.to_owned(), Some(format!("own-{name}"))));
    assert_eq!(pools(stopped), expected);
}
