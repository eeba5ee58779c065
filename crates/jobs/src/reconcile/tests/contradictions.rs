//! Jobs that contradict themselves, with a Workload of an earlier version of Kueue.

use super::*;

/// A RayCluster in an AppWrapper that declares the pod set of its head alone.
fn undeclared_group(suspend: bool, phase: &str) -> JobObject {
    let has_objects = if phase == "Suspended" { "False" } else { "True" };
    let template = json!({ "spec": { "containers": [{ "name": "c" }] } });
    let group = json!({ "groupName": "w", "replicas": 2, "template": template });
    let spec = json!({ "headGroupSpec": { "template": template }, "workerGroupSpecs": [group] });
    let cluster = json!({ "apiVersion": "ray.io/v1", "kind": "RayCluster", "spec": spec });
    let declared = json!([{ "path": "template.spec.headGroupSpec.template" }]);
    let object = json!({
        "metadata": {
            "name": "train", "namespace": "ns", "uid": "u-1",
            "labels": { "kueue.x-k8s.io/queue-name": "lq" },
        },
        "spec": {
            "suspend": suspend, "components": [{ "template": cluster, "podSets": declared }],
        },
        "status": {
            "phase": phase,
            "conditions": [{ "type": "QuotaReserved", "status": has_objects }],
        },
    });
    let kinds = Kinds::built_in();
    let kind = kinds.find("workload.codeflare.dev/v1beta2", "AppWrapper").expect("built in");
    let job = kind.decode(object).expect("an AppWrapper decodes");
    assert!(job.contradicts_itself());
    job
}

fn of(job: &JobObject, conditions: &[&str], prebuilt: bool) -> Vec<String> {
    let workload = workload(conditions);
    let (workloads, flavors) = ([&workload], flavors());
    let context = ReconcileContext { prebuilt, ..context(&workloads, &flavors) };
    let steps = reconcile(job, context).into_iter();
    let word = |step: ReconcileStep<JobObject>| match step {
        ReconcileStep::Refuse { reason, .. } => format!("refuse {reason}"),
        ReconcileStep::Workload { write: WorkloadStep::Delete, .. } => "delete".to_owned(),
        ReconcileStep::Workload { write: WorkloadStep::RemoveFinalizer, .. } => {
            "unfinalize".to_owned()
        }
        ReconcileStep::Workload { write: WorkloadStep::Finish { reason, message }, .. } => {
            format!("finish {reason}: {message}")
        }
        ReconcileStep::Job(JobStep::Stop(_, reason)) => format!("stop {reason:?}"),
        other => format!("{other:?}"),
    };
    steps.map(word).collect()
}

#[test]
fn a_suspended_job_that_contradicts_itself_has_no_workload() {
    let waiting = undeclared_group(true, "Suspended");
    for conditions in [&[][..], &["QuotaReserved"], &["QuotaReserved", "Admitted"]] {
        assert_eq!(of(&waiting, conditions, false), ["delete"], "{conditions:?}");
    }
    let evicted = ["QuotaReserved", "Evicted"];
    assert_eq!(of(&waiting, &evicted, false), ["delete"]);
    assert_eq!(of(&waiting, &["QuotaReserved", "Finished"], false), ["unfinalize"]);
    let refused = reconcile(&waiting, context(&[], &flavors()));
    assert!(matches!(
        refused[..],
        [ReconcileStep::Refuse { reason: reasons::ERR_WORKLOAD_COMPOSE, .. }]
    ));
}

#[test]
fn a_job_that_contradicts_itself_keeps_its_workload_while_its_pods_run() {
    let admitted = ["QuotaReserved", "Admitted"];
    for prebuilt in [false, true] {
        let running = undeclared_group(false, "Running");
        assert_eq!(of(&running, &admitted, prebuilt), [""; 0], "an upgrade does not stop it");
        let evicted = ["QuotaReserved", "Admitted", "Evicted"];
        assert_eq!(of(&running, &evicted, prebuilt), ["stop WorkloadEvicted"]);
        let stopping = undeclared_group(true, "Suspending");
        assert_eq!(of(&stopping, &evicted, prebuilt), [""; 0], "its pods hold the quota");
    }
}

#[test]
fn a_copy_that_contradicts_itself_fails_to_start() {
    let copy = undeclared_group(true, "Suspended");
    let message = "spec.components[0].podSets: Invalid value: PodSet with path 'template.spec.workerGroupSpecs[0].template' is missing";
    let failed = format!("finish FailedToStart: {message}");
    assert_eq!(of(&copy, &["QuotaReserved", "Admitted"], true), [failed]);
    assert_eq!(of(&copy, &[], true), [""; 0], "it holds no quota");
}

/// A PyTorchJob with these replicas.
fn pytorch(replicas: &Value) -> JobObject {
    let object = json!({
        "metadata": {
            "name": "train", "namespace": "ns", "uid": "u-1",
            "labels": { "kueue.x-k8s.io/queue-name": "lq" },
        },
        "spec": { "runPolicy": { "suspend": true }, "pytorchReplicaSpecs": replicas },
    });
    let kinds = Kinds::built_in();
    let kind = kinds.find("kubeflow.org/v1", "PyTorchJob").expect("built in");
    kind.decode(object).expect("a PyTorchJob decodes")
}

/// An admitted Workload of a job.
fn admitted(job: &JobObject) -> Workload {
    let (priority, keys) = (WorkloadPriority::default(), KeysToCopy::default());
    let mut workload = construct_workload(job, priority, &keys, GATES());
    let sets = workload.spec.pod_sets.iter();
    let assigned = sets.map(|set| json!({ "name": set.name, "flavors": { "cpu": "x" } }));
    workload.status = serde_json::from_value(json!({
        "conditions": [
            { "type": "QuotaReserved", "status": "True" }, { "type": "Admitted", "status": "True" },
        ],
        "admission": { "clusterQueue": "cq", "podSetAssignments": assigned.collect::<Vec<_>>() },
    }))
    .expect("a status decodes");
    workload
}

/// A job as it is stored, after a change.
fn changed(job: &JobObject, change: impl Fn(&mut Value)) -> JobObject {
    let mut object = job.to_create();
    object["metadata"] = json!(job.metadata());
    change(&mut object);
    job.kind().decode(object).expect("it decodes")
}

#[test]
fn the_stop_of_a_job_that_contradicts_itself_restores_the_templates_that_can_be_read() {
    let template = json!({
        "metadata": { "labels": { "a": "b" } },
        "spec": { "nodeSelector": { "disk": "ssd" }, "containers": [] },
    });
    let replicas = || json!({ "replicas": 2, "template": template });
    let job = pytorch(&json!({ "Master": replicas(), "Worker": replicas() }));
    let (mut workload, flavors) = (admitted(&job), flavors());
    let steps = reconcile(&job, context(&[&workload], &flavors));
    let [ReconcileStep::Job(JobStep::Start(started))] = &steps[..] else { panic!("{steps:?}") };
    assert!(json!(started.to_create()).to_string().contains(r#""zone":"a""#));
    let evicted = json!({ "type": "Evicted", "status": "True", "reason": "Preempted" });
    workload.status.conditions.push(serde_json::from_value(evicted).expect("a condition"));

    let unknown = |object: &mut Value| {
        object["spec"]["pytorchReplicaSpecs"]["worker"] = replicas();
    };
    let untyped = |object: &mut Value| {
        object["spec"]["pytorchReplicaSpecs"]["Master"]["replicas"] = json!("2");
    };
    let misplaced = |object: &mut Value| object["spec"]["pytorchReplicaSpecs"]["Master"] = json!(2);
    let changes: [&dyn Fn(&mut Value); 3] = [&unknown, &untyped, &misplaced];
    for (at, change) in changes.into_iter().enumerate() {
        let running = changed(started, change);
        assert!(running.contradicts_itself() && running.pod_sets(GATES()).is_empty(), "{at}");
        assert!(running.templates().is_empty() && running.reclaimable_pods().is_empty(), "{at}");
        let steps = reconcile(&running, context(&[&workload], &flavors));
        let [ReconcileStep::Job(JobStep::Stop(StopWrite::Object(stopped), _))] = &steps[..] else {
            panic!("{at}: {steps:?}")
        };
        let expected = changed(&job, change);
        assert_eq!(stopped.without_status(), expected.without_status(), "{at}");
    }
}

/// A RayCluster that changes its size, with this number of workers.
fn elastic_cluster(suspend: bool, replicas: &Value) -> JobObject {
    let template = json!({ "spec": { "containers": [{ "name": "c" }] } });
    let group = json!({ "groupName": "w", "replicas": replicas, "template": template });
    let object = json!({
        "metadata": {
            "name": "train", "namespace": "ns", "uid": "u-1",
            "labels": { "kueue.x-k8s.io/queue-name": "lq" },
            "annotations": { "kueue.x-k8s.io/elastic-job": "true" },
        },
        "spec": {
            "suspend": suspend, "headGroupSpec": { "template": template },
            "workerGroupSpecs": [group],
        },
        "status": { "state": if suspend { "suspended" } else { "ready" } },
    });
    let kinds = Kinds::built_in();
    kinds.find("ray.io/v1", "RayCluster").expect("built in").decode(object).expect("it decodes")
}

/// The steps of an elastic job with these Workloads.
fn of_elastic(job: &JobObject, workloads: &[&Workload]) -> Vec<ReconcileStep<JobObject>> {
    let flavors = flavors();
    let gates = JobGates { elastic_jobs: true, ..GATES() };
    reconcile(job, ReconcileContext { gates, ..context(workloads, &flavors) })
}

#[test]
fn an_idle_elastic_job_that_contradicts_itself_has_no_slice() {
    let (job, wrong) = (elastic_cluster(true, &json!(2)), elastic_cluster(true, &json!("2")));
    assert!(wrong.contradicts_itself());
    let holder = admitted(&job);
    let mut pending = holder.clone();
    pending.status = Default::default();
    let deletes = |steps: &[ReconcileStep<JobObject>]| {
        let is_delete = |step: &ReconcileStep<JobObject>| {
            matches!(step, ReconcileStep::Workload { write: WorkloadStep::Delete, .. })
        };
        steps.len() == 1 && steps.iter().all(is_delete)
    };
    for slice in [&holder, &pending] {
        let steps = of_elastic(&wrong, &[slice]);
        assert!(deletes(&steps), "{steps:?}");
    }
    let mut replaced = holder;
    replaced.metadata.name = Some("a".to_owned());
    let over = json!({ "type": "Finished", "status": "True", "reason": "WorkloadSliceReplaced" });
    replaced.status.conditions.push(serde_json::from_value(over).expect("a condition"));
    let steps = of_elastic(&wrong, &[&replaced, &pending]);
    assert!(deletes(&steps), "{steps:?}");
    for former in [&[][..], &[&replaced]] {
        let steps = of_elastic(&wrong, former);
        let [ReconcileStep::Refuse { reason: reasons::ERR_WORKLOAD_COMPOSE, .. }] = &steps[..]
        else {
            panic!("{steps:?}")
        };
    }
}

#[test]
fn a_running_elastic_job_that_contradicts_itself_keeps_its_slices() {
    let (job, wrong) = (elastic_cluster(true, &json!(2)), elastic_cluster(false, &json!("4")));
    let holder = admitted(&job);
    let larger = construct_workload(
        &elastic_cluster(true, &json!(4)),
        WorkloadPriority::default(),
        &KeysToCopy::default(),
        GATES(),
    );
    let mut pending = ReplacedSlice::of(&holder).replaced_by(larger);
    pending.metadata.name = Some("b".to_owned());
    let evicted = json!([{ "type": "Evicted", "status": "True", "reason": "Deactivated" }]);
    let mut deactivated = pending.clone();
    deactivated.status.conditions = serde_json::from_value(evicted).expect("conditions");
    for pending in [&pending, &deactivated] {
        assert_eq!(of_elastic(&wrong, &[&holder, pending]), []);
    }
    let evicted = json!({ "type": "Evicted", "status": "True", "reason": "Preempted" });
    let mut leaving = holder.clone();
    leaving.status.conditions.push(serde_json::from_value(evicted).expect("a condition"));
    let mut reserved = pending;
    reserved.status = holder.status;
    reserved.status.conditions.truncate(1);
    let steps = of_elastic(&wrong, &[&leaving, &reserved]);
    assert!(matches!(steps[..], [ReconcileStep::Job(JobStep::Stop(..))]), "{steps:?}");
}
