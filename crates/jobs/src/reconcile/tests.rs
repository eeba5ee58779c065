//! Reconciliation of a job and its Workload in every situation.

mod contradictions;
mod deleted_pods;
mod former_memory;
mod former_submitter;
mod left_alone;
mod out_of_sync;
mod reordered_groups;
mod slices;
mod topologies;
mod written_sizes;

use crds::v1beta2::ReclaimablePod;
use serde_json::{Value, json};

use super::*;
use crate::{
    Job, JobObject, Kinds, StopWrite,
    construct_workload::{KeysToCopy, ReplacedSlice, WorkloadPriority, construct_workload},
    lookups::FoundObjects,
    start::admitted_infos::FlavorsByName,
};

const GATES: fn() -> JobGates = JobGates::default;

fn job(more: &Value) -> Job {
    let mut object = json!({
        "metadata": {
            "name": "train", "namespace": "ns", "uid": "u-1",
            "labels": { "kueue.x-k8s.io/queue-name": "lq" },
        },
        "spec": {
            "parallelism": 2, "suspend": true,
            "template": { "spec": { "containers": [{ "name": "c" }] } },
        },
        "status": {},
    });
    merge(&mut object, more);
    serde_json::from_value(object).expect("a Job decodes")
}

fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more.clone(),
    }
}

/// Workload of a new job with these conditions set to true.
fn workload(conditions: &[&str]) -> Workload {
    let mut workload = construct_workload(
        &job(&json!({})),
        WorkloadPriority::default(),
        &KeysToCopy::default(),
        GATES(),
    );
    let conditions: Vec<Value> =
        conditions.iter().map(|kind| json!({ "type": kind, "status": "True" })).collect();
    workload.status = serde_json::from_value(json!({
        "conditions": conditions,
        "admission": { "clusterQueue": "cq", "podSetAssignments": [
            { "name": "main", "count": 2, "flavors": { "cpu": "x" } },
        ] },
    }))
    .expect("a status decodes");
    if !conditions.iter().any(|one| one["type"] == "QuotaReserved") {
        workload.status.admission = None;
    }
    workload
}

fn flavors() -> FlavorsByName {
    let spec = json!({ "nodeLabels": { "zone": "a" } });
    [("x".to_owned(), serde_json::from_value(spec).expect("decodes"))].into()
}

fn context<'a>(workloads: &'a [&'a Workload], flavors: &'a FlavorsByName) -> ReconcileContext<'a> {
    ReconcileContext {
        workloads,
        previous_workload: None,
        prebuilt: false,
        flavors: AssignedFlavors::Own(flavors),
        gates: GATES(),
        now: Timestamp::UNIX_EPOCH,
    }
}

/// Steps as short texts, for a job that controls its Workloads.
fn steps(job: &Job, workloads: &[&Workload]) -> Vec<String> {
    words(reconcile(job, context(workloads, &flavors())))
}

fn words(steps: Vec<ReconcileStep<Job>>) -> Vec<String> {
    let word = |step: ReconcileStep<Job>| match step {
        ReconcileStep::CreateWorkload => "create".to_owned(),
        ReconcileStep::CreateSlice(_) => "create slice".to_owned(),
        ReconcileStep::ResizeSlice(after) => {
            format!("resize to {}", after.spec.pod_sets[0].count.unwrap_or(1))
        }
        ReconcileStep::UpdateWorkload(_) => "update".to_owned(),
        ReconcileStep::Workload { write: WorkloadStep::Delete, .. } => "delete".to_owned(),
        ReconcileStep::Workload { write: WorkloadStep::Finish { reason, .. }, .. } => {
            format!("finish {reason}")
        }
        ReconcileStep::Workload { write: WorkloadStep::RemoveFinalizer, .. } => {
            "unfinalize".to_owned()
        }
        ReconcileStep::Workload { write: WorkloadStep::UpdateReclaimablePods(pods), .. } => {
            format!("reclaim {}", pods.first().map_or(0, |pod| pod.count))
        }
        ReconcileStep::Job(JobStep::Start(_)) => "start".to_owned(),
        ReconcileStep::Job(JobStep::Stop(StopWrite::Object(_), reason)) => {
            format!("stop {reason:?}")
        }
        ReconcileStep::Job(JobStep::Stop(StopWrite::Status(_), reason)) => {
            format!("stop {reason:?} (status)")
        }
        ReconcileStep::Workload { write: WorkloadStep::ReleaseQuota, .. } => "release".to_owned(),
        ReconcileStep::Workload { write: WorkloadStep::UpdateQueueName(_), .. } => {
            "move".to_owned()
        }
        ReconcileStep::Workload { write: WorkloadStep::UpdateAdmissionGates(gates), .. } => {
            format!("gates {gates:?}")
        }
        ReconcileStep::Workload { write: WorkloadStep::UpdatePriority, .. } => {
            "priority".to_owned()
        }
        ReconcileStep::Workload { write: WorkloadStep::TakeOwnership, .. } => "own".to_owned(),
        ReconcileStep::Refuse { reason, .. } => format!("refuse {reason}"),
        other => format!("{other:?}"),
    };
    steps.into_iter().map(word).collect()
}

#[test]
fn a_job_is_created_admitted_started_and_finished() {
    let (pending, reserved) = (workload(&[]), workload(&["QuotaReserved"]));
    let admitted = workload(&["QuotaReserved", "Admitted"]);
    let mut over = workload(&["QuotaReserved", "Admitted", "Finished"]);
    let waiting = job(&json!({}));
    assert_eq!(steps(&waiting, &[]), ["create"]);
    assert_eq!(steps(&waiting, &[&pending]), [""; 0]);
    assert_eq!(steps(&waiting, &[&reserved]), [""; 0]);
    let ReconcileStep::Job(JobStep::Start(running)) =
        reconcile(&waiting, context(&[&admitted], &flavors())).remove(0)
    else {
        unreachable!("an admitted Workload starts its job")
    };
    assert_eq!(running.spec.suspend, Some(false));
    assert_eq!(steps(&running, &[&admitted]), [""; 0]);
    let mut done = running;
    done.status = serde_json::from_value(json!({ "conditions": [
        { "type": "Complete", "status": "True", "message": "all done" },
    ] }))
    .expect("decodes");
    assert_eq!(steps(&done, &[&admitted]), ["finish Succeeded"]);
    assert_eq!(steps(&done, &[&over]), ["unfinalize"]);
    over.metadata.finalizers = None;
    assert_eq!(steps(&done, &[&over]), [""; 0]);
}

/// Applies all stop writes that are possible now and returns the job.
fn stopped(mut job: Job, evicted: &Workload, seen: &mut Vec<String>) -> Job {
    while let Some(step) = reconcile(&job, context(&[evicted], &flavors())).pop() {
        seen.extend(words(vec![step.clone()]));
        match step {
            ReconcileStep::Job(JobStep::Stop(
                StopWrite::Object(next) | StopWrite::Status(next),
                _,
            )) => {
                job = *next;
            }
            _ => break,
        }
    }
    job
}

#[test]
fn quota_of_an_evicted_job_is_released_when_its_pods_are_gone() {
    let evicted = workload(&["QuotaReserved", "Admitted", "Evicted"]);
    let infos =
        admitted_infos::infos_of_admission(&evicted, AssignedFlavors::Own(&flavors()), GATES())
            .expect("admitted");
    let mut running = job(&json!({ "status": { "active": 2 } }));
    running.run_with_pod_sets_info(&infos, GATES()).expect("starts");
    let mut seen = Vec::new();
    let suspended = stopped(running, &evicted, &mut seen);
    assert_eq!(seen, ["stop WorkloadEvicted"], "held back, and then waiting for pods");
    let mut current = suspended;
    current.status.active = None;
    let current = stopped(current, &evicted, &mut seen);
    assert_eq!(seen.split_off(1), ["stop WorkloadEvicted", "release"], "put back, then let go");
    assert_eq!(steps(&current, &[&workload(&["Evicted"])]), [""; 0]);
}

#[test]
fn a_job_that_runs_without_a_workload_is_stopped() {
    let running = job(&json!({ "spec": { "suspend": false }, "status": { "active": 1 } }));
    assert_eq!(steps(&running, &[]), ["stop NoMatchingWorkload"]);
    assert_eq!(steps(&running, &[&workload(&[])]), ["stop NotAdmitted"]);
    let suspended = job(&json!({ "status": { "active": 1 } }));
    assert_eq!(steps(&suspended, &[]), [""; 0], "its pods must go before it gets a Workload");
}

#[test]
fn a_workload_that_differs_from_its_job_is_updated_or_replaced() {
    let other = job(&json!({ "spec": { "parallelism": 3 } }));
    assert_eq!(steps(&other, &[&workload(&[])]), ["update"]);
    assert_eq!(steps(&other, &[&workload(&["QuotaReserved"])]), ["delete"]);
    let mut twin = workload(&[]);
    twin.metadata.name = Some("twin".to_owned());
    assert_eq!(steps(&job(&json!({})), &[&workload(&[]), &twin]), ["delete"]);
    let moved = job(&json!({ "metadata": { "labels": { "kueue.x-k8s.io/queue-name": "other" } } }));
    assert_eq!(steps(&moved, &[&workload(&[])]), ["move"]);
    assert_eq!(steps(&moved, &[&workload(&["QuotaReserved"])]), [""; 0]);
}

#[test]
fn a_deleted_workload_stops_its_job_first() {
    let mut deleting = workload(&["QuotaReserved", "Admitted"]);
    deleting.metadata.deletion_timestamp =
        serde_json::from_value(json!("2026-01-01T00:00:00Z")).ok();
    let running = job(&json!({ "spec": { "suspend": false }, "status": { "active": 1 } }));
    let infos =
        admitted_infos::infos_of_admission(&deleting, AssignedFlavors::Own(&flavors()), GATES())
            .expect("admitted");
    let mut running = running;
    running.run_with_pod_sets_info(&infos, GATES()).expect("starts");
    assert_eq!(steps(&running, &[&deleting]), ["stop WorkloadDeleted"]);
    let stopped = job(&json!({ "status": { "active": 1 } }));
    assert_eq!(steps(&stopped, &[&deleting]), [""; 0], "the operator refuses other patches");
    assert_eq!(steps(&job(&json!({})), &[&deleting]), ["unfinalize"]);
}

#[test]
fn a_deleted_job_releases_its_workloads() {
    let gone = job(&json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }));
    assert_eq!(steps(&gone, &[&workload(&["QuotaReserved", "Admitted"])]), ["unfinalize"]);
}

#[test]
fn a_deleted_ray_service_keeps_its_quota_until_redis_is_cleared() {
    let kind = Kinds::built_in().of_framework("ray.io/rayservice").expect("it is built in");
    let service = |finalizers: &Value, redis: &Value| {
        let object = json!({
            "metadata": {
                "name": "serve", "namespace": "ns", "uid": "u-1", "finalizers": finalizers,
                "deletionTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": { "rayClusterConfig": { "gcsFaultToleranceOptions": redis } },
        });
        kind.decode(object).expect("a RayService decodes")
    };
    let n_steps = |job: &JobObject, quota_for_redis_cleanup: bool| {
        let of_job = workload(&["QuotaReserved", "Admitted"]);
        let context = ReconcileContext {
            workloads: &[&of_job],
            previous_workload: None,
            prebuilt: false,
            flavors: AssignedFlavors::Own(&FlavorsByName::new()),
            gates: JobGates { quota_for_redis_cleanup, ..GATES() },
            now: "2026-01-01T00:00:00Z".parse().expect("a time"),
        };
        reconcile(job, context).len()
    };
    let (held, redis) = (json!(["ray.io/rayservice-finalizer"]), json!({ "redisAddress": "r" }));
    assert_eq!(n_steps(&service(&held, &redis), true), 0);
    assert_eq!(n_steps(&service(&held, &redis), false), 1, "its finalizer is removed");
    assert_eq!(n_steps(&service(&json!(["other"]), &redis), true), 1);
    assert_eq!(n_steps(&service(&held, &json!(null)), true), 1);
}

#[test]
fn a_conflict_finishes_the_workload() {
    let selector = json!({ "nodeSelector": { "zone": "b" } });
    let other = job(&json!({ "spec": { "template": { "spec": selector } } }));
    let admitted = workload(&["QuotaReserved", "Admitted"]);
    assert_eq!(steps(&other, &[&admitted]), ["finish FailedToStart"]);
}

#[test]
fn finished_pods_are_reclaimable() {
    let admitted = workload(&["QuotaReserved", "Admitted"]);
    let infos =
        admitted_infos::infos_of_admission(&admitted, AssignedFlavors::Own(&flavors()), GATES())
            .expect("admitted");
    let mut running = job(&json!({ "spec": { "completions": 2 }, "status": { "succeeded": 1 } }));
    running.run_with_pod_sets_info(&infos, GATES()).expect("starts");
    assert_eq!(steps(&running, &[&admitted]), ["reclaim 1"]);
    let mut noted = admitted;
    noted.status.reclaimable_pods = vec![ReclaimablePod { name: "main".to_owned(), count: 1 }];
    assert_eq!(steps(&running, &[&noted]), [""; 0]);

    // Fewer are not written while quota is reserved, and afterwards they are.
    let again = job(&json!({ "spec": { "completions": 2, "suspend": true } }));
    let mut waiting = workload(&[]);
    waiting.status.reclaimable_pods = noted.status.reclaimable_pods.clone();
    assert_eq!(steps(&again, &[&waiting]), ["reclaim 0"]);
    let mut reserved = workload(&["QuotaReserved"]);
    reserved.status.reclaimable_pods = noted.status.reclaimable_pods;
    assert_eq!(steps(&again, &[&reserved]), [""; 0]);
    let done = job(&json!({
        "spec": { "completions": 2, "suspend": true }, "status": { "succeeded": 1 },
    }));
    assert_eq!(steps(&done, &[&waiting]), [""; 0], "the pod does not run again");
}

#[test]
fn pods_that_ended_on_an_earlier_worker_are_not_reclaimable() {
    let of_workers = |fields: &Value, epoch: &str| {
        let mut spec = json!({
            "completions": 2, "suspend": true, "managedBy": "kueue.x-k8s.io/multikueue",
        });
        spec.as_object_mut().expect("a spec").extend(fields.as_object().expect("fields").clone());
        let job =
            job(&json!({ "spec": spec, "status": { "succeeded": 1, "completedIndexes": "0" } }));
        let mut waiting = workload(&[]);
        let annotations = waiting.metadata.annotations.get_or_insert_default();
        annotations.insert("sluice.dev/epoch".to_owned(), epoch.to_owned());
        steps(&job, &[&waiting])
    };
    assert_eq!(of_workers(&json!({}), "1"), ["reclaim 1"]);
    assert_eq!(of_workers(&json!({}), "2"), [""; 0], "the next copy begins at zero");
    let indexed = json!({ "completionMode": "Indexed" });
    assert_eq!(of_workers(&indexed, "2"), ["reclaim 1"], "its count falls with the copy");
}

#[test]
fn pods_that_ended_in_the_present_copy_are_reclaimable() {
    let of_status = |spec: &Value, status: &Value| {
        let mut job = json!({ "spec": spec, "status": status });
        job["spec"]["managedBy"] = json!("kueue.x-k8s.io/multikueue");
        self::job(&job)
    };
    let pods = |spec: &Value, in_copy: i32, conditions: &[&str], epoch: &str| {
        let job = of_status(spec, &json!({ "succeeded": 1 }));
        let mut workload = workload(conditions);
        let annotations = workload.metadata.annotations.get_or_insert_default();
        annotations.insert("sluice.dev/epoch".to_owned(), epoch.to_owned());
        let copy = of_status(spec, &json!({ "succeeded": in_copy }));
        let pods = reclaimable_pods_of_copy(&job, &copy, &workload, JobGates::default());
        pods.map(|pods| pods.iter().map(|pod| pod.count).collect::<Vec<_>>())
    };
    let two = json!({ "completions": 2 });
    let reserved: &[&str] = &["QuotaReserved", "Admitted"];
    assert_eq!(
        pods(&two, 0, reserved, "2"),
        None,
        "the end of the earlier copy's pod says nothing"
    );
    assert_eq!(pods(&two, 1, reserved, "2"), Some(vec![1]));
    assert_eq!(pods(&two, 1, reserved, "1"), None, "the counts of the job are those of the copy");
    assert_eq!(pods(&two, 1, &[], "2"), None, "all pods of the next copy run");
    let indexed = json!({ "completions": 2, "completionMode": "Indexed" });
    assert_eq!(
        pods(&indexed, 1, reserved, "2"),
        None,
        "the counts of the job are those of the copy"
    );
}

#[test]
fn a_prebuilt_workload_is_owned_followed_and_changes_its_queue_alone() {
    let steps = |job: &Job, workloads: &[&Workload]| {
        words(reconcile(job, ReconcileContext { prebuilt: true, ..context(workloads, &flavors()) }))
    };
    let mut clone = workload(&["QuotaReserved", "Admitted"]);
    clone.metadata.owner_references = None;
    assert_eq!(steps(&job(&json!({})), &[&clone]), ["own", "start"]);
    let moved = job(&json!({ "metadata": { "labels": { "kueue.x-k8s.io/queue-name": "other" } } }));
    let mut pending = workload(&[]);
    assert_eq!(steps(&moved, &[&pending]), ["move"]);
    pending = workload(&["QuotaReserved"]);
    assert_eq!(steps(&moved, &[&pending]), [""; 0], "the API refuses it");
    assert_eq!(steps(&job(&json!({})), &[]), [""; 0], "it may come");
    let running = job(&json!({ "spec": { "suspend": false } }));
    assert_eq!(steps(&running, &[]), ["stop NoMatchingWorkload"]);
    let other = job(&json!({ "spec": { "parallelism": 3 } }));
    assert_eq!(steps(&other, &[&clone]), ["own", "finish OutOfSync"]);
    let stopping = job(&json!({ "spec": { "parallelism": 3 }, "status": { "active": 1 } }));
    assert_eq!(steps(&stopping, &[&clone]), ["own"], "its pods hold the quota");
    clone.metadata.finalizers = Some(vec!["kueue.x-k8s.io/resource-in-use".to_owned()]);
    let deleting = job(&json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }));
    assert_eq!(steps(&deleting, &[&clone]), [""; 0]);
    let mut over = workload(&["QuotaReserved", "Admitted", "Finished"]);
    assert_eq!(steps(&running, &[&over]), ["unfinalize"], "as that of any job");
    over.metadata.finalizers = None;
    assert_eq!(steps(&running, &[&over]), [""; 0]);
}

/// The manager of a copy writes the counts of clone and copy one after the other.
#[test]
fn an_elastic_copy_of_another_size_than_its_clone_stays() {
    let clone = workload(&["QuotaReserved", "Admitted"]);
    let elastic = json!({ "kueue.x-k8s.io/elastic-job": "true" });
    let copy = |pods: i32, annotations: &Value| {
        job(&json!({
            "metadata": { "annotations": annotations }, "spec": { "suspend": false, "parallelism": pods },
        }))
    };
    let steps = |job: &Job| {
        words(reconcile(job, ReconcileContext { prebuilt: true, ..context(&[&clone], &flavors()) }))
    };
    for pods in [1, 5] {
        assert_eq!(steps(&copy(pods, &elastic)), [""; 0], "{pods}");
        assert_eq!(steps(&copy(pods, &json!({}))), ["stop NoMatchingWorkload"], "{pods}");
    }
    let other = json!({ "spec": { "template": { "spec": { "containers": [] } } } });
    let mut other = job(&other);
    other.metadata.annotations = serde_json::from_value(elastic).expect("annotations");
    assert_eq!(steps(&other), ["finish OutOfSync"], "other containers");
}

#[test]
fn pods_ready_is_reported_until_the_job_is_finished() {
    let over = json!([{ "type": "Failed", "status": "True" }]);
    for (status, ready) in [
        (json!({}), Some(false)),
        (json!({ "active": 2, "ready": 1 }), Some(false)),
        (json!({ "active": 1, "ready": 1, "succeeded": 1 }), Some(true)),
        (json!({ "ready": 2, "conditions": over }), None),
    ] {
        let job = job(&json!({ "spec": { "suspend": false }, "status": status.clone() }));
        let ready_now = pods_ready(&job, &workload(&[]), GATES());
        assert_eq!(ready_now, ready, "{status}");
    }
    let metadata = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" });
    let deleted = job(&json!({ "metadata": metadata }));
    assert_eq!(pods_ready(&deleted, &workload(&[]), GATES()), None);
}

#[test]
fn gates_and_priority_class_of_a_job_reach_its_workload() {
    let gated = |gates: &str| {
        let annotations = json!({ "kueue.x-k8s.io/admission-gated-by": gates });
        job(&json!({ "metadata": { "annotations": annotations } }))
    };
    let mut workload_of = workload(&[]);
    assert_eq!(steps(&gated("a.b/c"), &[&workload_of]), ["gates Some(\"a.b/c\")"]);
    workload_of.metadata.annotations =
        Some([("kueue.x-k8s.io/admission-gated-by".to_owned(), "a.b/c,a.b/d".to_owned())].into());
    assert_eq!(steps(&gated("a.b/c"), &[&workload_of]), ["gates Some(\"a.b/c\")"]);
    assert_eq!(steps(&job(&json!({})), &[&workload_of]), ["gates None"]);
    assert_eq!(steps(&gated("a.b/c,a.b/d"), &[&workload_of]), [""; 0]);

    let classed =
        job(&json!({ "metadata": { "labels": { "kueue.x-k8s.io/priority-class": "high" } } }));
    let class = |kind: &str, name: &str| {
        let class = json!({ "kind": kind, "name": name, "group": "" });
        Some(serde_json::from_value(class).expect("a class"))
    };
    for (conditions, class, expected) in [
        (&[][..], None, vec!["priority"]),
        (&["QuotaReserved"][..], None, vec![]),
        (&["QuotaReserved"][..], class("WorkloadPriorityClass", "low"), vec!["priority"]),
        (&[][..], class("WorkloadPriorityClass", "high"), vec![]),
        (&[][..], class("PriorityClass", "low"), vec![]),
    ] {
        let mut workload = workload(conditions);
        workload.spec.priority_class_ref = class;
        assert_eq!(steps(&classed, &[&workload]), expected);
    }
    for (conditions, kind, expected) in [
        (&[][..], "WorkloadPriorityClass", vec!["priority"]),
        (&["QuotaReserved"][..], "WorkloadPriorityClass", vec![]),
        (&[][..], "PriorityClass", vec![]),
    ] {
        let mut workload = workload(conditions);
        workload.spec.priority_class_ref = class(kind, "high");
        assert_eq!(steps(&job(&json!({})), &[&workload]), expected, "without a label");
    }
}

#[test]
fn a_job_takes_its_prebuilt_workload_unless_another_one_has_it() {
    let mut prebuilt = workload(&[]);
    prebuilt.metadata.owner_references = None;
    let waiting = job(&json!({}));
    let flavors = flavors();
    let steps_of = |workload: &Workload| {
        let all = [workload];
        words(reconcile(&waiting, ReconcileContext { prebuilt: true, ..context(&all, &flavors) }))
    };
    assert_eq!(steps_of(&prebuilt), ["own"]);
    let mut other = prebuilt;
    other.spec.pod_sets[0].count = Some(9);
    assert_eq!(steps_of(&other), ["own", "finish OutOfSync"]);
    assert_eq!(steps_of(&workload(&[])), [""; 0]);
}

#[test]
fn pods_are_reclaimed_only_with_the_gate() {
    let admitted = workload(&["QuotaReserved", "Admitted"]);
    let running = job(&json!({
        "spec": { "suspend": false, "completions": 2 }, "status": { "succeeded": 1, "active": 1 },
    }));
    let (all, flavors) = ([&admitted], flavors());
    for (reclaimable_pods, expected) in [(true, 1), (false, 0)] {
        let gates = JobGates { reclaimable_pods, ..GATES() };
        let steps =
            words(reconcile(&running, ReconcileContext { gates, ..context(&all, &flavors) }));
        let reclaims = steps.iter().filter(|step| step.starts_with("reclaim")).count();
        assert_eq!(reclaims, expected, "{steps:?}");
    }
}

/// A TrainJob with these patches, which is suspended and has so many active pods.
fn training(patches: &Value, active: u32) -> JobObject {
    let kind = Kinds::built_in().of_framework("trainer.kubeflow.org/trainjob").expect("TrainJob");
    let job = kind.decode(json!({
        "metadata": { "name": "t", "namespace": "ns", "uid": "u-1" },
        "spec": { "suspend": true, "runtimeRef": { "name": "r" }, "runtimePatches": patches },
        "status": { "jobsStatus": [{ "name": "node", "active": active }] },
    }));
    let job = job.expect("it decodes");
    let containers = json!([{ "name": "node", "image": "i" }]);
    let node = json!({ "name": "node", "template": { "spec": {
        "template": { "spec": { "containers": containers } },
    } } });
    let runtime = json!({
        "metadata": { "name": "r" }, "spec": { "template": { "spec": { "replicatedJobs": [node] } } },
    });
    let mut found = FoundObjects::default();
    let needed = job.needed_objects().pop().expect("it names a runtime");
    found.observe(needed, serde_json::from_value(runtime).ok().map(std::sync::Arc::new));
    job.with_objects(&found)
}

/// One that was started and is suspended again.
fn suspended_training(active: u32) -> JobObject {
    let entry = json!({ "manager": "kueue.x-k8s.io/manager", "trainingRuntimeSpec": { "template": {
        "spec": { "replicatedJobs": [{ "name": "node", "template": { "spec": { "template": {
            "spec": { "nodeSelector": { "zone": "former" } },
        } } } }] },
    } } });
    training(&json!([entry]), active)
}

fn steps_of_training(job: &JobObject, conditions: &[&str]) -> Vec<ReconcileStep<JobObject>> {
    let (priority, copied) = (WorkloadPriority::default(), KeysToCopy::default());
    let mut before = job.clone();
    before.restore_pod_sets_info(&[], GATES());
    let mut of_job = construct_workload(&before, priority, &copied, GATES());
    of_job.status = workload(conditions).status;
    if let Some(admission) = &mut of_job.status.admission {
        admission.pod_set_assignments[0].name = "node".to_owned();
        admission.pod_set_assignments[0].count = Some(1);
    }
    reconcile(job, context(&[&of_job], &flavors()))
}

#[test]
fn an_admitted_training_that_is_suspended_again_is_started() {
    let steps = |job: &JobObject, conditions: &[&str]| -> Vec<&str> {
        let word = |step: &ReconcileStep<JobObject>| match step {
            ReconcileStep::Job(JobStep::Start(_)) => "start",
            ReconcileStep::Job(JobStep::Stop(..)) => "stop",
            ReconcileStep::Workload { write: WorkloadStep::ReleaseQuota, .. } => "release",
            _ => "other",
        };
        steps_of_training(job, conditions).iter().map(word).collect()
    };
    let admitted = ["QuotaReserved", "Admitted"];
    assert_eq!(steps(&suspended_training(0), &admitted), ["start"]);
    assert_eq!(
        steps(&suspended_training(1), &admitted),
        [""; 0],
        "the operator refuses other patches"
    );
    let evicted = ["QuotaReserved", "Admitted", "Evicted"];
    assert_eq!(steps(&suspended_training(0), &evicted), ["stop"]);
    assert_eq!(steps(&suspended_training(0), &["QuotaReserved"]), ["stop"]);
}

/// Some versions of the operator refuse a change of patches that comes with the switch.
#[test]
fn a_training_starts_with_the_write_after_that_of_its_patches() {
    let next = |job: &JobObject| {
        let steps = steps_of_training(job, &["QuotaReserved", "Admitted"]);
        let [ReconcileStep::Job(JobStep::Start(after))] = &steps[..] else { panic!("{steps:?}") };
        after.without_status()["spec"].clone()
    };
    for waiting in [training(&json!([]), 0), suspended_training(0)] {
        let prepared = next(&waiting);
        assert_eq!(prepared["suspend"], true);
        let mut patches = prepared["runtimePatches"].clone();
        // A field that the API has set is not taken back.
        patches[0]["time"] = json!("now");
        // With active pods it was suspended by a user: nothing but the switch changes.
        for active in [0, 1] {
            let started = next(&training(&patches, active));
            assert_eq!(
                (&started["suspend"], &started["runtimePatches"]),
                (&json!(false), &patches)
            );
        }
    }
}
