//! A row of the plan per case, and the order of the writes.

use crds::{names::annotations::REBUILD, v1beta2::Workload};
use jobs::{GenericJob, JobGates, JobObject, rebuilt::original_workload};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    copies::CopySet,
    observed::{HubStamp, ObservedHub, ObservedWorker, job_name, object_name},
    plan::{PlanRow, RowState, WorkloadRebuild, plan},
    step::{CopyRole, RebuildProgress, RebuildStep},
    *,
};

fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("an object")
}

fn template() -> Value {
    let container =
        json!({ "name": "c", "image": "i", "resources": { "requests": { "cpu": "1" } } });
    json!({ "metadata": {}, "spec": { "containers": [container], "restartPolicy": "Never" } })
}

/// The clone and the Job of a worker, as it runs.
fn copies(epoch: &str) -> (Value, Value) {
    let labels = json!({ "kueue.x-k8s.io/multikueue-origin": "multikueue" });
    let stamps = json!({
        "sluice.dev/epoch": epoch, "sluice.dev/incarnation": "1", "sluice.dev/term": "1",
        "sluice.dev/hub-version": "9", "sluice.dev/workload-uid": "lost",
        "sluice.dev/assignment": r#"{"main":{"nodeSelector":{"zone":"a"}}}"#,
    });
    let clone = json!({
        "metadata": {
            "name": "w", "namespace": "ns", "uid": "clone", "labels": labels, "annotations": stamps,
        },
        "spec": { "queueName": "lq", "priority": 0, "active": true, "podSets": [
            { "name": "main", "count": 2, "template": template() },
        ] },
        "status": {
            "admission": { "clusterQueue": "sluice-thin", "podSetAssignments": [
                { "name": "main", "count": 2, "resourceUsage": { "cpu": "2" } },
            ] },
            "conditions": [
                { "type": "QuotaReserved", "status": "True" },
                { "type": "Admitted", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" },
            ],
        },
    });
    let mut stamps = stamps;
    stamps["kueue.x-k8s.io/prebuilt-workload-name"] = json!("w");
    let mut labels = labels;
    labels["kueue.x-k8s.io/queue-name"] = json!("lq");
    let mut started = template();
    started["spec"]["nodeSelector"] = json!({ "zone": "a" });
    let job = json!({
        "metadata": {
            "name": "train", "namespace": "ns", "uid": "copy", "labels": labels, "annotations": stamps,
        },
        "spec": { "parallelism": 2, "suspend": false, "template": started },
        "status": { "active": 2, "ready": 2 },
    });
    (clone, job)
}

fn worker(name: &str, (clone, job): (Value, Value)) -> ObservedWorker {
    let job = (!job.is_null()).then(|| decode(job));
    ObservedWorker {
        cluster: name.to_owned(),
        manager: String::new(),
        clones: vec![object(clone)],
        jobs: job.into_iter().collect(),
    }
}

fn decode(job: Value) -> JobObject {
    jobs::job::kind().decode(job).expect("a Job")
}

/// A manager cluster with a queue over `east` and `west`, and nothing else.
fn hub() -> ObservedHub {
    let named = |name: &str, spec: Value| json!({ "metadata": { "name": name }, "spec": spec });
    let flavors = json!([
        { "name": "other", "resources": [] }, { "name": "plain", "resources": [] },
        { "name": "zone", "resources": [] },
    ]);
    let queue = json!({
        "resourceGroups": [{ "coveredResources": ["cpu"], "flavors": flavors }],
        "admissionChecksStrategy": { "admissionChecks": [{ "name": "workers" }] },
    });
    let check = json!({
        "controllerName": "kueue.x-k8s.io/multikueue",
        "parameters": { "apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "all" },
    });
    let labels = |value: &str| json!({ "nodeLabels": { "zone": value } });
    ObservedHub {
        stamp: Some(HubStamp { incarnation: 7, term: 8, version: "70".to_owned() }),
        uid: "hub".to_owned(),
        kinds: Kinds::built_in().clone(),
        namespaces: ["ns".to_owned()].into(),
        local_queues: vec![object(json!({
            "metadata": { "name": "lq", "namespace": "ns" }, "spec": { "clusterQueue": "cq" },
        }))],
        cluster_queues: vec![object(named("cq", queue))],
        flavors: vec![
            object(named("other", labels("b"))),
            object(named("plain", json!({}))),
            object(named("zone", labels("a"))),
        ],
        checks: vec![object(named("workers", check))],
        configs: vec![object(named("all", json!({ "clusters": ["east", "west"] })))],
        clusters: vec![object(named("east", json!({}))), object(named("west", json!({})))],
        ..ObservedHub::default()
    }
}

fn planned(hub: &ObservedHub, workers: &[ObservedWorker]) -> Vec<PlanRow> {
    plan(hub, workers, JobGates::default())
}

/// The only row for the only worker.
fn row(hub: &ObservedHub, copies: (Value, Value)) -> PlanRow {
    let mut rows = planned(hub, &[worker("east", copies)]);
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

/// The rebuild of a hub that has nothing.
fn rebuild() -> WorkloadRebuild {
    row(&hub(), copies("3")).rebuild.expect("it is rebuilt")
}

#[test]
fn a_running_copy_is_rebuilt_with_the_flavor_that_explains_its_nodes() {
    let row = row(&hub(), copies("3"));
    assert_eq!((row.state, row.reason), (RowState::Rebuild, None));
    assert_eq!((&*row.workload, &*row.jobs[0], &*row.clusters[0]), ("w", "Job/train", "east"));
    let rebuild = row.rebuild.expect("it is rebuilt");
    let admission = json!(rebuild.admission.admission);
    let assignment = json!({
        "name": "main", "count": 2, "flavors": { "cpu": "zone" }, "resourceUsage": { "cpu": "2" },
    });
    let expected = json!({ "clusterQueue": "cq", "podSetAssignments": [assignment] });
    assert_eq!((admission, &*rebuild.admission.check), (expected, "workers"));
    assert!(rebuild.jobs[0].spec_suspended());
}

/// The copies of a RayCluster with a group of no workers and a minimum of one, of which the clone counts `workers`.
fn ray_copies(workers: i32) -> (Value, Value) {
    let (mut clone, job) = copies("3");
    let template = json!({ "spec": { "containers": [{ "name": "c", "image": "i" }] } });
    let names = [("head", 1), ("w", workers)];
    let sets = names.map(|(name, n)| json!({ "name": name, "count": n, "template": template }));
    clone["spec"]["podSets"] = json!(sets);
    let assigned = names.map(|(name, n)| json!({ "name": name, "count": n }));
    clone["status"]["admission"]["podSetAssignments"] = json!(assigned);
    let none = json!(r#"{"head":{},"w":{}}"#);
    clone["metadata"]["annotations"]["sluice.dev/assignment"] = none.clone();
    let mut metadata = job["metadata"].clone();
    metadata["annotations"]["sluice.dev/assignment"] = none;
    let group = json!({
        "groupName": "w", "replicas": 0, "minReplicas": 1, "maxReplicas": 3, "template": template,
    });
    let head = json!({ "template": template });
    let spec = json!({ "headGroupSpec": head, "workerGroupSpecs": [group], "suspend": false });
    (clone, json!({ "metadata": metadata, "spec": spec }))
}

#[test]
fn a_clone_may_count_the_replicas_that_its_job_writes() {
    let kind = Kinds::built_in().find("ray.io/v1", "RayCluster").expect("a built-in kind");
    let state_of = |workers: i32| {
        let (clone, job) = ray_copies(workers);
        let mut worker = worker("east", (clone, Value::Null));
        worker.jobs = vec![kind.decode(job).expect("a RayCluster")];
        let row = planned(&hub(), &[worker]).remove(0);
        (row.state, row.reason)
    };
    assert_eq!(state_of(1), (RowState::Rebuild, None), "as the operator sizes the group");
    assert_eq!(state_of(0), (RowState::Rebuild, None), "as another version of Kueue counts it");
    let differs = "RayCluster/train differs from what its Workload asks for";
    let (state, reason) = state_of(2);
    assert_eq!(state, RowState::NotRebuilt);
    assert!(reason.as_ref().is_some_and(|text| text.contains(differs)), "{reason:?}");
}

#[test]
fn a_copy_that_contradicts_itself_is_not_said_to_need_other_objects() {
    let kinds = Kinds::built_in();
    let kind = kinds.find("workload.codeflare.dev/v1beta2", "AppWrapper").expect("built in");
    let (clone, job) = copies("3");
    let template = json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": { "name": "c" },
        "spec": {
            "headGroupSpec": { "template": template() },
            "workerGroupSpecs": [{ "groupName": "w", "template": template() }],
        },
    });
    let head = json!({ "path": "template.spec.headGroupSpec.template" });
    let component = json!({ "template": template, "podSets": [head] });
    let wrapper = json!({ "metadata": job["metadata"], "spec": { "components": [component] } });
    let mut worker = worker("east", (clone, Value::Null));
    worker.jobs = vec![kind.decode(wrapper).expect("an AppWrapper")];
    let reason = planned(&hub(), &[worker]).remove(0).reason.unwrap_or_default();
    let part = "AppWrapper/train would get no Workload: spec.components[0].podSets: Invalid value: PodSet with path";
    assert!(reason.starts_with(part), "{reason}");
}

#[test]
fn what_cannot_be_rebuilt_is_a_row_with_its_reason() {
    type Change = fn(&mut ObservedHub, &mut Value, &mut Value);
    let cases: [(Change, &str); 16] = [
        (|hub, _, _| hub.kinds = Kinds::default(), "does not enable batch/job"),
        (|_, clone, _| condition(clone, "Finished"), "it has finished"),
        (|_, clone, _| condition(clone, "Evicted"), "it is evicted on the worker"),
        (
            |_, clone, _| clone["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
            "its clone is being deleted",
        ),
        (|_, clone, _| clone["status"]["conditions"] = json!([]), "it is not admitted"),
        (|_, _, job| *job = Value::Null, "the worker has no job for it"),
        (|hub, _, _| hub.namespaces.clear(), "the manager cluster has no namespace ns"),
        (|hub, _, _| hub.local_queues.clear(), "has no LocalQueue ns/lq"),
        (|hub, _, _| hub.cluster_queues.clear(), "has no ClusterQueue cq"),
        (|hub, _, _| hub.checks.clear(), "has no AdmissionCheck workers"),
        (|hub, _, _| hub.configs.clear(), "ClusterQueue cq does not dispatch to east"),
        (
            |hub, _, _| hub.checks[0].spec.controller_name = "other".to_owned(),
            "ClusterQueue cq has the admission check workers",
        ),
        (
            |hub, _, _| hub.flavors.retain(|one| one.metadata.name.as_deref() == Some("other")),
            "no flavor of ClusterQueue cq for cpu fits its pods",
        ),
        (
            |_, _, job| job["spec"]["template"]["spec"]["containers"][0]["image"] = json!("x"),
            "Job/train differs from what its Workload asks for",
        ),
        (
            |hub, _, _| {
                let annotations = hub.clusters[0].metadata.annotations.get_or_insert_default();
                annotations.insert("sluice.dev/cleanup".to_owned(), "confirmed".to_owned());
            },
            "east has the annotation sluice.dev/cleanup: confirmed",
        ),
        (
            |_, clone, _| clone["metadata"]["annotations"]["sluice.dev/incarnation"] = json!("7"),
            "this manager has made it, and its Workload was deleted",
        ),
    ];
    for (change, reason) in cases {
        let (mut hub, (mut clone, mut job)) = (hub(), copies("3"));
        change(&mut hub, &mut clone, &mut job);
        let row = row(&hub, (clone, job));
        assert_eq!(row.state, RowState::NotRebuilt, "{reason}");
        let shown = row.reason.clone().unwrap_or_default();
        assert!(shown.contains(reason) && row.rebuild.is_none(), "{shown:?} is not {reason:?}");
    }
}

fn condition(clone: &mut Value, kind: &str) {
    let condition = json!({ "type": kind, "status": "True", "reason": "R" });
    clone["status"]["conditions"].as_array_mut().expect("a list").push(condition);
}

#[test]
fn the_higher_epoch_counts_and_two_jobs_of_one_epoch_are_a_conflict() {
    let two = |east: (Value, Value), west: (Value, Value)| {
        let mut rows = planned(&hub(), &[worker("east", east), worker("west", west)]);
        assert_eq!(rows.len(), 1);
        rows.remove(0)
    };
    let row = two(copies("3"), copies("4"));
    assert_eq!((row.state, &row.clusters[..]), (RowState::Rebuild, &["west".to_owned()][..]));
    assert_eq!(row.removed_from, ["east"]);
    // A race: only one of both has begun.
    let row = two((copies("3").0, Value::Null), copies("3"));
    assert_eq!((row.state, &row.clusters[..]), (RowState::Rebuild, &["west".to_owned()][..]));
    let row = two(copies("3"), copies("3"));
    assert_eq!(row.reason.as_deref(), Some("east and west both have jobs of epoch 3"));
    assert_eq!((row.state, row.clusters.len()), (RowState::NotRebuilt, 2));
}

#[test]
fn objects_of_the_manager_are_continued_or_left_alone() {
    let rebuild = rebuild();
    let mut job = rebuild.jobs[0].clone();
    job.metadata_mut().uid = Some("new".to_owned());
    let mut workload = original_workload(&rebuild.copy.clone, std::slice::from_ref(&job));
    workload.metadata.uid = Some("new-w".to_owned());
    let with = |job: Option<&JobObject>, workload: Option<&Workload>| {
        let mut hub = hub();
        hub.jobs.extend(job.map(|job| (job_name(job), job.clone())));
        hub.workloads.extend(workload.map(|one| (object_name(&one.metadata), one.clone())));
        row(&hub, copies("3"))
    };
    let unmarked = |job: &JobObject| {
        let mut job = job.clone();
        job.metadata_mut().annotations.get_or_insert_default().remove(REBUILD);
        job
    };
    assert_eq!(with(Some(&job), None).state, RowState::Continue);
    assert_eq!(with(Some(&job), Some(&workload)).state, RowState::Continue);
    assert_eq!(with(Some(&unmarked(&job)), Some(&workload)).state, RowState::Continue);
    let exists = with(Some(&unmarked(&job)), None).reason.unwrap_or_default();
    assert!(exists.starts_with("Job/train exists on the manager cluster"), "{exists}");
    let gone = with(None, Some(&workload)).reason.unwrap_or_default();
    assert!(gone.starts_with("Job/train was rebuilt, and is gone"), "{gone}");
    workload.metadata.annotations.get_or_insert_default().remove(REBUILD);
    let foreign = with(Some(&job), Some(&workload)).reason.unwrap_or_default();
    assert!(foreign.starts_with("Workload ns/w exists on the manager cluster"), "{foreign}");
    workload.metadata.uid = Some("lost".to_owned());
    assert_eq!(with(Some(&job), Some(&workload)).state, RowState::Present);
}

#[test]
fn a_job_without_a_clone_and_the_child_of_another_object_are_told_apart() {
    let mut east = worker("east", copies("3"));
    east.clones.clear();
    let rows = planned(&hub(), std::slice::from_ref(&east));
    assert_eq!(rows[0].reason.as_deref(), Some("the worker has no clone for it"));
    let owner = object(json!({
        "apiVersion": "x/v1", "kind": "X", "name": "x", "uid": "x", "controller": true,
    }));
    east.jobs[0].metadata_mut().owner_references = Some(vec![owner]);
    assert!(planned(&hub(), &[east]).is_empty());
}

/// Writes a step into the objects, as the API servers would.
fn apply(progress: &mut RebuildProgress, rebuild: &WorkloadRebuild, step: RebuildStep) {
    let stamp = hub().stamp.expect("a record");
    let merge = |metadata: &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
                 fields: &Value| {
        let annotations = metadata.annotations.get_or_insert_default();
        for (key, value) in fields["metadata"]["annotations"].as_object().expect("a map") {
            match value.as_str() {
                Some(text) => drop(annotations.insert(key.clone(), text.to_owned())),
                None => drop(annotations.remove(key)),
            }
        }
    };
    let workload = progress.workload.clone().unwrap_or_default();
    match step {
        RebuildStep::CreateJob(number) => {
            let mut job = rebuild.jobs[number].clone();
            job.metadata_mut().uid = Some("new".to_owned());
            progress.jobs[number] = Some(job);
        }
        RebuildStep::CreateWorkload => {
            let jobs: Vec<JobObject> = progress.jobs.iter().flatten().cloned().collect();
            let mut workload = original_workload(&rebuild.copy.clone, &jobs);
            workload.metadata.uid = Some("new-w".to_owned());
            progress.workload = Some(workload);
        }
        RebuildStep::Reserve => {
            let status = body::reserved(&workload, rebuild);
            progress.workload = Some(Workload { status, ..workload });
        }
        RebuildStep::Admit => {
            let status = body::admitted(&workload, rebuild);
            progress.workload = Some(Workload { status, ..workload });
        }
        RebuildStep::StampJob(role, number) => {
            let job = &mut of(progress, role).jobs[number];
            let fields = body::stamps(job.metadata(), &workload, &stamp);
            merge(job.metadata_mut(), &fields);
        }
        RebuildStep::StampClone(role) => {
            let clone = &mut of(progress, role).clone;
            let fields = body::stamps(&clone.metadata, &workload, &stamp);
            merge(&mut clone.metadata, &fields);
        }
        RebuildStep::UnmarkJob(number) => {
            let job = progress.jobs[number].as_mut().expect("it is there");
            let fields = body::unmarked(job.metadata());
            merge(job.metadata_mut(), &fields);
        }
        RebuildStep::UnmarkWorkload => {
            let workload = progress.workload.as_mut().expect("it is there");
            let fields = body::unmarked(&workload.metadata);
            merge(&mut workload.metadata, &fields);
        }
    }
}

fn of(progress: &mut RebuildProgress, role: CopyRole) -> &mut CopySet {
    match role {
        CopyRole::Chosen => &mut progress.copy,
        CopyRole::Other(number) => &mut progress.others[number],
    }
}

#[test]
fn each_write_shows_in_the_objects_and_the_last_one_ends_the_rebuild() {
    let (east, west) = (worker("east", copies("3")), worker("west", copies("4")));
    let rebuild = planned(&hub(), &[east, west]).remove(0).rebuild.expect("it is rebuilt");
    let mut progress = RebuildProgress {
        jobs: vec![None],
        workload: None,
        copy: rebuild.copy.clone(),
        others: rebuild.others.clone(),
    };
    let stamp = hub().stamp.expect("a record");
    let mut steps = Vec::new();
    while let Some(step) = progress.next(&stamp) {
        assert!(steps.len() < 20, "{steps:?}");
        apply(&mut progress, &rebuild, step);
        steps.push(step);
        // Whatever was written last, a new run sees a rebuild that it continues, or one that is over.
        let mut hub = hub();
        let jobs = progress.jobs.iter().flatten();
        hub.jobs.extend(jobs.map(|job| (job_name(job), job.clone())));
        let workload = progress.workload.iter();
        hub.workloads.extend(workload.map(|one| (object_name(&one.metadata), one.clone())));
        let worker = |set: &CopySet| ObservedWorker {
            cluster: set.cluster.clone(),
            clones: vec![set.clone.clone()],
            jobs: set.jobs.clone(),
            ..ObservedWorker::default()
        };
        let workers = [worker(&progress.copy), worker(&progress.others[0])];
        let again = planned(&hub, &workers).remove(0);
        let over = step == RebuildStep::UnmarkWorkload;
        let expected = if over { RowState::Present } else { RowState::Continue };
        assert_eq!((again.state, again.reason), (expected, None), "after {step:?}");
    }
    let (chosen, other) = (CopyRole::Chosen, CopyRole::Other(0));
    let expected = [
        RebuildStep::CreateJob(0),
        RebuildStep::CreateWorkload,
        RebuildStep::Reserve,
        RebuildStep::Admit,
        RebuildStep::StampJob(chosen, 0),
        RebuildStep::StampClone(chosen),
        RebuildStep::StampJob(other, 0),
        RebuildStep::StampClone(other),
        RebuildStep::UnmarkJob(0),
        RebuildStep::UnmarkWorkload,
    ];
    assert_eq!(steps, expected);
    let status = progress.workload.expect("a Workload").status;
    assert_eq!(status.cluster_name.as_deref(), Some("west"));
    assert_eq!(status.admission_checks[0].state, "Ready");
    let ready = crds::meta::find(&status.conditions, "PodsReady").expect("they are ready");
    assert_eq!(ready.status, "True");
    let admitted = crds::meta::find(&status.conditions, "Admitted").expect("it is admitted");
    let since = admitted.transitioned_at().map(|at| at.to_string());
    assert_eq!(since.as_deref(), Some("2026-01-01T00:00:00Z"), "its run time goes on");
}

#[test]
fn workers_whose_entry_names_another_manager_are_known() {
    let of = |cluster: &str, manager: &str| ObservedWorker {
        cluster: cluster.to_owned(),
        manager: manager.to_owned(),
        ..ObservedWorker::default()
    };
    let workers = [of("a", ""), of("b", "hub"), of("c", "lost")];
    assert_eq!(of_another_manager(&workers, "hub"), ["c"]);
}

#[test]
fn each_kind_is_read_once() {
    let enabled = Kinds::new([jobs::job::kind().clone()]);
    let all = with_built_in(&enabled);
    let n_jobs = all.iter().filter(|kind| *kind == jobs::job::kind()).count();
    assert_eq!(
        (n_jobs, all.iter().count()),
        (1, Kinds::built_in().with_workloads().iter().count())
    );
}

#[test]
fn a_failed_write_is_a_row_of_its_own_and_the_run_is_incomplete() {
    let mut rows = planned(&hub(), &[worker("east", copies("3"))]);
    (rows[0].state, rows[0].reason) = (RowState::Failed, Some("cannot create it".to_owned()));
    let report = RebuildReport {
        dry_run: false,
        origin: "multikueue".to_owned(),
        of_another_manager: vec!["east".to_owned()],
        workloads: rows,
    };
    assert_eq!(report.n_failed(), 1);
    expect_test::expect![[r#"
        NAMESPACE   WORKLOAD   JOBS        CLUSTER   STATE    REASON
        ns          w          Job/train   east      failed   cannot create it

        1 failed; done.
        Rebuilt jobs have no owner and no time to live after their end. Jobs that no worker has are lost.
        Of another manager cluster until then: east.
    "#]]
    .assert_eq(&crate::output::HumanText::text(&report, false));
}
