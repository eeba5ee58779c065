//! Jobs that differ from their prebuilt Workload while they run.

use super::{deleted_pods::deleted, *};
use crate::Pod;

const STOP: &str = "stop NoMatchingWorkload";
const FINISH: &str = "finish OutOfSync";

fn reconciled(job: &Job, workloads: &[&Workload]) -> Vec<ReconcileStep<Job>> {
    reconcile(job, ReconcileContext { prebuilt: true, ..context(workloads, &flavors()) })
}

/// A Job that an admission to the flavor of `context` started.
fn running(more: &Value) -> Job {
    let selector = json!({ "nodeSelector": { "zone": "a" } });
    let prebuilt = json!({ "kueue.x-k8s.io/prebuilt-workload-name": "w" });
    let mut all = json!({
        "metadata": { "labels": prebuilt },
        "spec": { "suspend": false, "parallelism": 3, "template": { "spec": selector } },
        "status": { "active": 3 },
    });
    merge(&mut all, more);
    job(&all)
}

/// The steps until nothing changes, with their writes. Pods end, where they run in this cluster, once there is no other step.
fn passes(job: &mut Job, workloads: &mut [Workload], ends: bool) -> Vec<Vec<String>> {
    let mut seen = Vec::new();
    while seen.len() < 9 {
        let steps = reconciled(job, &workloads.iter().collect::<Vec<_>>());
        let is_idle = steps.is_empty();
        for step in &steps {
            match step {
                ReconcileStep::Job(JobStep::Stop(
                    StopWrite::Object(after) | StopWrite::Status(after),
                    _,
                )) => *job = after.as_ref().clone(),
                ReconcileStep::Workload { write: WorkloadStep::Finish { .. }, name } => {
                    let finished = json!({ "type": "Finished", "status": "True" });
                    let finished = serde_json::from_value(finished).expect("a condition");
                    let one =
                        workloads.iter_mut().find(|one| one.metadata.name.as_ref() == Some(name));
                    one.expect("a known Workload").status.conditions.push(finished);
                }
                _ => {}
            }
        }
        let has_active = job.status.active.is_some();
        if is_idle && ends {
            job.status.active = None;
        }
        let words = words(steps);
        if words.iter().any(|word| word == "unfinalize") || (is_idle && !(has_active && ends)) {
            return seen;
        }
        seen.push(words);
    }
    seen
}

fn node_selector(job: &Job) -> Option<Value> {
    json!(job.spec.template)["spec"].get("nodeSelector").cloned()
}

/// kueue#14395
#[test]
fn a_prebuilt_workload_out_of_sync_keeps_its_quota_until_its_job_has_stopped() {
    let without_quota = workload(&[]);
    assert_eq!(words(reconciled(&running(&json!({})), &[&without_quota])), [FINISH, STOP]);
    let mut job = running(&json!({}));
    let seen = passes(&mut job, &mut [workload(&["QuotaReserved", "Admitted"])], true);
    assert_eq!(seen, [vec![STOP], vec![], vec![FINISH], vec![STOP]]);
    assert_eq!(node_selector(&job), None, "restored from the finished Workload");
    assert!(job.is_suspended());
}

/// No copy is withdrawn before its Workload is finished, and until then the Job of the manager shows the pods of the copy.
#[test]
fn the_prebuilt_workload_of_a_dispatched_job_out_of_sync_ends_with_its_stop() {
    let managed = json!({ "spec": { "managedBy": "kueue.x-k8s.io/multikueue" } });
    let mut dispatched = workload(&["QuotaReserved", "Admitted"]);
    dispatched.status.cluster_name = Some("east".to_owned());
    for more in [managed, json!({})] {
        let mut job = running(&more);
        let seen = passes(&mut job, &mut [dispatched.clone()], false);
        assert_eq!(seen, [vec![FINISH, STOP]], "{more}");
    }
}

/// Another size of the Job stays, also if fewer pods than that remain to complete.
#[test]
fn a_job_that_was_resized_keeps_its_parallelism_beyond_its_completions() {
    let metadata = json!({ "annotations": { "kueue.x-k8s.io/job-min-parallelism": "1" } });
    let sized = |parallelism: i32| json!({ "metadata": metadata, "spec": { "parallelism": parallelism, "completions": 4 } });
    let mut workload = workload(&["QuotaReserved", "Admitted"]);
    workload.spec.pod_sets = job(&sized(4)).pod_sets(GATES());
    let admission = workload.status.admission.as_mut().expect("it has quota");
    admission.pod_set_assignments[0].count = Some(3);
    let mut job = running(&sized(5));
    passes(&mut job, &mut [workload], true);
    assert_eq!((job.parallelism(), job.is_suspended()), (5, true));
}

/// The size of the Workload, the pods that it was admitted with, those of the running Job, and those that it has afterwards.
#[test]
fn a_job_that_was_resized_keeps_its_count_and_does_not_start_again() {
    let minimum = json!({ "kueue.x-k8s.io/job-min-parallelism": "1" });
    let metadata = json!({ "annotations": minimum });
    for (asked, admitted, has, after) in [(4, 3, 5, 5), (5, 3, 5, 5), (3, 3, 5, 5)] {
        let made = job(&json!({ "metadata": metadata, "spec": { "parallelism": asked } }));
        let mut workload = workload(&["QuotaReserved", "Admitted"]);
        workload.spec.pod_sets = made.pod_sets(GATES());
        let admission = workload.status.admission.as_mut().expect("it has quota");
        admission.pod_set_assignments[0].count = Some(admitted);
        let mut job = running(&json!({ "metadata": metadata, "spec": { "parallelism": has } }));
        let seen = passes(&mut job, &mut [workload.clone()], true);
        assert_eq!(seen, [vec![STOP], vec![], vec![FINISH], vec![STOP]], "{asked} {has}");
        assert_eq!((job.parallelism(), job.is_suspended()), (after, true), "{asked} {has}");
        // Without another size the count is that of the start, which is undone.
        let limit = json!({ "kueue.x-k8s.io/max-exec-time-seconds": "5" });
        let metadata = json!({ "annotations": minimum, "labels": limit });
        let mut job =
            running(&json!({ "metadata": metadata, "spec": { "parallelism": admitted } }));
        passes(&mut job, &mut [workload], true);
        assert_eq!(job.parallelism(), asked);
    }
}

/// Whether the Workload of a pod with this image is finished as out of sync so many seconds after the deletion of the pod.
fn ends(pod: &Value, image: &str, seconds: i64) -> bool {
    let of_image = |image: &str| json!({ "containers": [{ "name": "c", "image": image }] });
    let prebuilt = json!({ "kueue.x-k8s.io/prebuilt-workload-name": "w" });
    let mut all = json!({ "metadata": { "labels": prebuilt }, "spec": of_image("a") });
    let mut workload = workload(&["QuotaReserved", "Admitted"]);
    workload.spec.pod_sets = deleted(&all).pod_sets(GATES());
    let admission = workload.status.admission.as_mut().expect("it has quota");
    admission.pod_set_assignments[0].count = Some(1);
    merge(&mut all, &json!({ "spec": of_image(image) }));
    merge(&mut all, pod);
    let now = Timestamp::from_second(seconds).expect("a time");
    let (known, flavors) = ([&workload], flavors());
    let context = ReconcileContext { prebuilt: true, now, ..context(&known, &flavors) };
    let is_end = |step: &ReconcileStep<Pod>| matches!(step, ReconcileStep::Workload { write: WorkloadStep::Finish { reason, .. }, .. } if *reason == reasons::OUT_OF_SYNC);
    reconcile(&deleted(&all), context).iter().any(is_end)
}

#[test]
fn a_deleted_pod_out_of_sync_gives_its_quota_back_with_the_end_of_its_containers() {
    let running = json!({});
    let failed = json!({ "status": { "phase": "Failed" } });
    assert!(!ends(&running, "b", 29), "its containers may run");
    assert!(ends(&running, "b", 30), "its node does not answer");
    assert!(ends(&failed, "b", 0), "nothing of it runs");
    for pod in [running, failed] {
        assert!(!ends(&pod, "a", 60), "it is as its Workload has it: {pod}");
    }
}
