//! Objects that no webhook has seen, because the manager was down when they were made: an Event about each says what is wrong, and the
//! others go on.

use runtime::events::{EventRecord, EventType};

use super::{cluster::Cluster, lookups::settings_with, *};

const JOB_SET: (&str, &str) = ("jobset.x-k8s.io/v1alpha2", "JobSet");
const RAY_CLUSTER: (&str, &str) = ("ray.io/v1", "RayCluster");

fn kind((api_version, name): (&str, &str)) -> Kind {
    Kinds::built_in().find(api_version, name).expect("a built-in kind").clone()
}

/// A manager of Jobs, JobSets and RayClusters.
fn cluster() -> Cluster {
    let frameworks = ["batch/job", "jobset.x-k8s.io/jobset", "ray.io/raycluster"];
    let mut cluster = Cluster::with(settings_with(&frameworks, &Gates::default()));
    for of_kind in [JOB_SET, RAY_CLUSTER] {
        let none = Change::Reset { objects: vec![], removed: vec![] };
        cluster.observe(ManagerInput::Job(kind(of_kind), none));
    }
    cluster
}

fn observe(
    cluster: &mut Cluster,
    of_kind: (&str, &str),
    version: u32,
    spec: &Value,
    status: &Value,
) {
    let object = json!({
        "metadata": {
            "name": "wrong", "namespace": "ns", "uid": "wrong",
            "resourceVersion": version.to_string(), "labels": {"kueue.x-k8s.io/queue-name": "lq"},
        },
        "spec": spec, "status": status,
    });
    let object = Arc::new(kind(of_kind).decode(object).expect("it decodes"));
    cluster.observe(ManagerInput::Job(kind(of_kind), Change::Apply(object))).settle();
}

fn template() -> Value {
    let container = json!({"name": "main", "resources": {"requests": {"cpu": "100m"}}});
    json!({"spec": {"containers": [container]}})
}

fn job_set(n_jobs: usize) -> Value {
    let job = |number: usize| {
        let spec = json!({"parallelism": 1, "completions": 1, "template": template()});
        json!({"name": format!("w-{number}"), "replicas": 1, "template": {"spec": spec}})
    };
    json!({"suspend": true, "replicatedJobs": (0..n_jobs).map(job).collect::<Vec<_>>()})
}

/// Warnings, each of which is counted, since the last call.
fn warnings(cluster: &mut Cluster) -> Vec<String> {
    let events = std::mem::take(&mut cluster.events).into_iter();
    let one = |event: EventRecord| {
        format!("{} {}: {}", event.regarding.key.name, event.reason, event.note)
    };
    events.filter(|event| event.event_type == EventType::Warning).map(one).collect()
}

/// The Job that comes after the others gets its Workload.
fn others_go_on(cluster: &mut Cluster) {
    let object = Arc::new(batch_job().decode(json!(job())).expect("a Job decodes"));
    cluster.observe(ManagerInput::Job(batch_job(), Change::Apply(object))).settle();
    assert!(cluster.workloads.keys().any(|name| name.starts_with("job-train-")));
}

#[test]
fn a_job_of_nineteen_pod_sets_says_how_many_it_has_and_gets_a_workload_once_it_is_mended() {
    let mut cluster = cluster();
    observe(&mut cluster, JOB_SET, 20, &job_set(19), &json!({}));
    let too_many =
        "wrong ErrWorkloadCompose: the job has 19 pod sets; at most 18 are possible".to_owned();
    assert_eq!(warnings(&mut cluster), [too_many]);
    assert_eq!(cluster.workloads.len(), 0);
    others_go_on(&mut cluster);
    observe(&mut cluster, JOB_SET, 21, &job_set(18), &json!({}));
    assert_eq!(warnings(&mut cluster), [""; 0]);
    assert_eq!(cluster.workloads.len(), 2);
}

/// Nor does its Workload follow it.
#[test]
fn a_waiting_job_that_gets_a_nineteenth_pod_set_keeps_its_workload_as_it_was() {
    let mut cluster = cluster();
    cluster.queue(&json!({"stopPolicy": "Hold"}));
    observe(&mut cluster, JOB_SET, 20, &job_set(18), &json!({}));
    warnings(&mut cluster);
    observe(&mut cluster, JOB_SET, 21, &job_set(19), &json!({}));
    let warnings = warnings(&mut cluster);
    assert!(warnings.len() == 1 && warnings[0].contains("has 19 pod sets"), "{warnings:?}");
    let workload = cluster.workloads.values().next().expect("a Workload");
    assert_eq!(workload["spec"]["podSets"].as_array().map(Vec::len), Some(18));
}

#[test]
fn a_ray_cluster_of_seventeen_workers_named_head_says_so() {
    let mut cluster = cluster();
    let group = json!({"groupName": "head", "replicas": 1, "template": template()});
    let spec = json!({
        "suspend": true, "headGroupSpec": {"template": template()},
        "workerGroupSpecs": vec![group; 17],
    });
    observe(&mut cluster, RAY_CLUSTER, 20, &spec, &json!({}));
    let same = "wrong ErrWorkloadCompose: 18 pod sets of the job have the name 'head'; each needs another one";
    assert_eq!(warnings(&mut cluster), [same]);
    assert_eq!(cluster.workloads.len(), 0);
    others_go_on(&mut cluster);
}

#[test]
fn a_status_that_cannot_be_read_is_named_once_and_the_job_gets_its_workload() {
    let mut cluster = cluster();
    let status = json!({"replicatedJobsStatus": [{"name": "w-0", "active": "none"}]});
    observe(&mut cluster, JOB_SET, 20, &job_set(1), &status);
    let warned = warnings(&mut cluster);
    let begin = "wrong UnreadableStatus: status.replicatedJobsStatus.*.active is no integer";
    assert!(warned.len() == 1 && warned[0].starts_with(begin), "{warned:?}");
    assert_eq!(cluster.workloads.len(), 1);
    observe(&mut cluster, JOB_SET, 21, &job_set(1), &status);
    assert_eq!(warnings(&mut cluster), [""; 0], "it was said");
    others_go_on(&mut cluster);
}

/// Shows two members of a group that is in this contradiction.
fn contradictory_group(second: &Value) -> Cluster {
    let mut cluster = workloads_of_groups::cluster();
    workloads_of_groups::member(&mut cluster, "a", 20, &json!({}));
    workloads_of_groups::member(&mut cluster, "b", 21, second);
    cluster.settle();
    cluster
}

#[test]
fn members_that_disagree_are_named_on_the_oldest_of_them() {
    let later = "2026-01-01T00:00:01Z";
    let totals = json!({"metadata": {
        "creationTimestamp": later, "annotations": {"kueue.x-k8s.io/pod-group-total-count": "3"},
    }});
    let queues = json!({"metadata": {
        "creationTimestamp": later, "labels": {"kueue.x-k8s.io/queue-name": "elsewhere"},
    }});
    let both = "a ErrWorkloadCompose: pods 'a' and 'b' of group 'team' have different";
    for (second, what) in
        [(totals, "values of 'kueue.x-k8s.io/pod-group-total-count'"), (queues, "queue names")]
    {
        let mut cluster = contradictory_group(&second);
        assert_eq!(warnings(&mut cluster), [format!("{both} {what}")]);
        assert_eq!(cluster.workloads.len(), 0);
        others_go_on(&mut cluster);
        // The second member agrees now.
        let agrees = json!({"metadata": {"creationTimestamp": later}});
        workloads_of_groups::member(&mut cluster, "b", 22, &agrees);
        cluster.settle();
        assert!(cluster.workloads.contains_key("team"), "{what}");
    }
}
