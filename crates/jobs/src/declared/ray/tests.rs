//! What Workloads count of RayClusters beside their templates. The rest is compared with recordings.

use crds::v1beta2::PodSet;
use serde_json::{Value, json};

use crate::{
    GenericJob, JobGates, JobObject, Kinds,
    construct_workload::workload_name_for,
    elastic::elastic_copies::{shrinks_on_workers, size_of_later_slice, size_to_push},
    lookups::FoundObjects,
    validate,
};

fn job(kind: &str, spec: &Value) -> JobObject {
    let kind = Kinds::built_in().find("ray.io/v1", kind).expect("a built-in kind");
    let object = json!({ "metadata": { "name": "j", "namespace": "ns" }, "spec": spec });
    kind.decode(object).expect("a job decodes")
}

fn cluster(head: &Value) -> Value {
    json!({ "headGroupSpec": { "template": { "spec": { "containers": [head] } } } })
}

/// The containers of the pod set of the head.
fn head_containers(job: &JobObject) -> Value {
    json!(job.pod_sets(JobGates::default())[0].template)["spec"]["containers"].clone()
}

#[test]
fn workers_named_as_the_head_and_too_many_of_them_are_refused_one_by_one() {
    let errors = |names: &[String]| -> Vec<String> {
        let mut spec = cluster(&json!({ "name": "ray" }));
        let group = |name: &String| json!({ "groupName": name, "template": { "spec": { "containers": [] } } });
        spec["workerGroupSpecs"] = names.iter().map(group).collect();
        let kind = Kinds::built_in().find("ray.io/v1", "RayCluster").expect("a built-in kind");
        let labels = json!({ "kueue.x-k8s.io/queue-name": "lq" });
        let object = json!({ "metadata": { "name": "j", "labels": labels }, "spec": spec });
        let job = kind.decode(object).expect("a job decodes");
        validate::create(&job, JobGates::default()).iter().map(ToString::to_string).collect()
    };
    let heads = errors(&vec!["head".to_owned(); 17]);
    assert_eq!(heads.len(), 17, "{heads:#?}");
    let named = |(index, error): (usize, &String)| {
        error.starts_with(&format!("spec.workerGroupSpecs[{index}].groupName: Forbidden"))
    };
    assert!(heads.iter().enumerate().all(named), "{heads:#?}");
    let many: Vec<String> = (0..18).map(|number| format!("group-{number}")).collect();
    let [too_many] = &errors(&many)[..] else { panic!("{:?}", errors(&many)) };
    assert!(too_many.starts_with("spec.workerGroupSpecs: Too many: 19"), "{too_many}");
    assert_eq!(errors(&many[..17]), [""; 0]);
}

/// A job of a former version, or of a time without the webhook, has to be stopped.
#[test]
fn a_job_that_has_a_head_without_containers_is_still_changed() {
    let job = |kind: &str, containers: &Value, queue: &str, suspend: bool| {
        let template = json!({ "spec": { "containers": containers } });
        let cluster = json!({ "headGroupSpec": { "template": template } });
        let mut spec = match kind {
            "RayCluster" => cluster,
            "RayJob" => json!({ "shutdownAfterJobFinishes": true, "rayClusterSpec": cluster }),
            _ => json!({ "rayClusterConfig": cluster }),
        };
        let switch = if kind == "RayService" { &mut spec["rayClusterConfig"] } else { &mut spec };
        switch["suspend"] = json!(suspend);
        let labels = json!({ "kueue.x-k8s.io/queue-name": queue });
        let object = json!({ "metadata": { "name": "j", "labels": labels }, "spec": spec });
        let kind = Kinds::built_in().find("ray.io/v1", kind).expect("a built-in kind");
        kind.decode(object).expect("a job decodes")
    };
    let (full, empty) = (json!([{ "name": "ray" }]), json!([]));
    for kind in ["RayCluster", "RayJob", "RayService"] {
        let errors = |old: (&Value, &str)| {
            let old = job(kind, old.0, old.1, false);
            let new = job(kind, &empty, "lq", true);
            validate::update(&new, &old, false, JobGates::default()).len()
        };
        assert_eq!(errors((&empty, "lq")), 0, "{kind}: a stop");
        assert_ne!(errors((&full, "lq")), 0, "{kind}: its containers go");
        assert_ne!(errors((&empty, "")), 0, "{kind}: it comes into a queue");
    }
}

/// The operator makes no pods of such a cluster, so its Workload would hold quota until it is deleted.
#[test]
fn a_head_without_containers_is_refused() {
    let errors = |kind: &str, template: &Value| -> Vec<String> {
        let cluster = json!({ "headGroupSpec": { "template": template } });
        let spec = match kind {
            "RayCluster" => cluster,
            "RayJob" => json!({ "shutdownAfterJobFinishes": true, "rayClusterSpec": cluster }),
            _ => json!({ "rayClusterConfig": cluster }),
        };
        let kind = Kinds::built_in().find("ray.io/v1", kind).expect("a built-in kind");
        let labels = json!({ "kueue.x-k8s.io/queue-name": "lq" });
        let object = json!({ "metadata": { "name": "j", "labels": labels }, "spec": spec });
        let job = kind.decode(object).expect("a job decodes");
        validate::create(&job, JobGates::default()).iter().map(ToString::to_string).collect()
    };
    let full = json!({ "spec": { "containers": [{ "name": "ray" }] } });
    for (kind, path) in [
        ("RayCluster", "spec"),
        ("RayJob", "spec.rayClusterSpec"),
        ("RayService", "spec.rayClusterSpec"),
    ] {
        for empty in [json!({ "spec": { "containers": [] } }), json!({ "spec": {} }), json!({})] {
            let [error] = &errors(kind, &empty)[..] else {
                panic!("{kind} {empty}: {:?}", errors(kind, &empty))
            };
            let field = format!("{path}.headGroupSpec.template.spec.containers: Required value");
            assert!(error.starts_with(&field), "{error}");
        }
        assert_eq!(errors(kind, &full), [""; 0]);
    }
}

#[test]
fn a_ray_job_that_selects_a_cluster_or_has_none_has_no_other_errors() {
    let errors = |spec: Value| -> Vec<String> {
        let labels = json!({ "kueue.x-k8s.io/queue-name": "Not_A_Name" });
        let annotations = json!({ "kueue.x-k8s.io/admission-gated-by": "none" });
        let metadata = json!({ "name": "j", "labels": labels, "annotations": annotations });
        let kind = Kinds::built_in().find("ray.io/v1", "RayJob").expect("a built-in kind");
        let job =
            kind.decode(json!({ "metadata": metadata, "spec": spec })).expect("a job decodes");
        validate::create(&job, JobGates::default()).iter().map(ToString::to_string).collect()
    };
    let (selector, own) = (json!({ "ray.io/cluster": "c" }), cluster(&json!({ "name": "ray" })));
    assert_eq!(errors(json!({ "clusterSelector": selector })), [""; 0]);
    let [both] = &errors(json!({ "clusterSelector": selector, "rayClusterSpec": own }))[..] else {
        panic!("one error")
    };
    assert!(both.starts_with("spec.clusterSelector: Invalid value"), "{both}");
    let [none] = &errors(json!({}))[..] else { panic!("one error") };
    assert!(none.starts_with("spec.rayClusterSpec: Required value"), "{none}");
    assert!(
        errors(json!({ "rayClusterSpec": own })).len() > 1,
        "others are checked for everything"
    );
}

#[test]
fn a_changed_ray_job_that_selects_a_cluster_keeps_what_is_immutable_alone() {
    let errors = |queue: &str, suspend: bool, spec: &Value| -> Vec<String> {
        let object = |queue: &str| {
            let labels = json!({ "kueue.x-k8s.io/queue-name": queue });
            let annotations = json!({ "kueue.x-k8s.io/admission-gated-by": "none" });
            let metadata = json!({ "name": "j", "labels": labels, "annotations": annotations });
            let mut spec = spec.clone();
            spec["suspend"] = json!(suspend);
            let kind = Kinds::built_in().find("ray.io/v1", "RayJob").expect("a built-in kind");
            kind.decode(json!({ "metadata": metadata, "spec": spec })).expect("a job decodes")
        };
        let errors = validate::update(&object(queue), &object("lq"), false, JobGates::default());
        errors.iter().map(ToString::to_string).collect()
    };
    let selects = json!({ "clusterSelector": { "ray.io/cluster": "c" } });
    assert_eq!(errors("Not_A_Name", true, &selects), [""; 0]);
    let [moved] = &errors("other", false, &selects)[..] else { panic!("one error") };
    assert!(moved.contains("queue-name"), "{moved}");
    let [none] = &errors("Not_A_Name", true, &json!({}))[..] else { panic!("one error") };
    assert!(none.starts_with("spec.rayClusterSpec: Required value"), "{none}");
}

/// Errors about a running object that moves from one queue to another, and has a malformed annotation.
fn errors_of_a_move(kind: (&str, &str), queues: (&str, &str), gates: JobGates) -> Vec<String> {
    let object = |queue: &str| {
        let labels = match queue {
            "" => json!({}),
            queue => json!({ "kueue.x-k8s.io/queue-name": queue }),
        };
        let annotations = json!({ "kueue.x-k8s.io/admission-gated-by": "none" });
        let metadata = json!({ "name": "j", "labels": labels, "annotations": annotations });
        let spec = json!({ "suspend": false, "mode": "cluster", "shutdownAfterJobFinishes": true });
        let kind = Kinds::built_in().find(kind.0, kind.1).expect("a built-in kind");
        kind.decode(json!({ "metadata": metadata, "spec": spec })).expect("a job decodes")
    };
    let (old, new) = (object(queues.0), object(queues.1));
    let errors = validate::update(&new, &old, false, gates);
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn updates_of_jobs_of_ray_and_spark_outside_of_queues_are_not_validated() {
    let on = JobGates::default();
    let off = JobGates { ray_and_spark_updates: false, ..on };
    let all = JobGates { manage_without_queue_name: true, ..off };
    for kind in [
        ("ray.io/v1", "RayCluster"),
        ("ray.io/v1", "RayJob"),
        ("ray.io/v1", "RayService"),
        ("sparkoperator.k8s.io/v1beta2", "SparkApplication"),
    ] {
        for (queues, gates, validated) in [
            (("", ""), on, false),
            (("", ""), all, true),
            (("", "lq"), off, true),
            (("lq", ""), on, true),
            (("lq", ""), off, false),
        ] {
            let errors = errors_of_a_move(kind, queues, gates);
            assert_eq!(!errors.is_empty(), validated, "{kind:?} {queues:?} {errors:?}");
        }
    }
    let job_set = ("jobset.x-k8s.io/v1alpha2", "JobSet");
    assert!(!errors_of_a_move(job_set, ("", ""), on).is_empty(), "others are validated as before");
}

#[test]
fn the_autoscaler_is_counted_with_its_own_resources() {
    let mut spec = cluster(&json!({ "name": "ray", "image": "i" }));
    spec["enableInTreeAutoscaling"] = json!(true);
    let usual = json!({ "cpu": "500m", "memory": "512Mi" });
    let counted = head_containers(&job("RayCluster", &spec));
    assert_eq!(
        counted[1],
        json!({ "name": "autoscaler", "resources": { "limits": usual, "requests": usual } })
    );
    let own = json!({ "requests": { "cpu": "2" } });
    spec["autoscalerOptions"] = json!({ "resources": own });
    assert_eq!(head_containers(&job("RayCluster", &spec))[1]["resources"], own);
}

#[test]
fn requests_of_the_head_hold_room_for_the_job_that_clears_redis() {
    for (before, after) in [
        (json!(null), json!({ "requests": { "cpu": "200m", "memory": "256Mi" } })),
        (
            json!({ "limits": { "cpu": "2", "memory": "64Mi" } }),
            json!({ "limits": { "cpu": "2", "memory": "64Mi" }, "requests": { "memory": "256Mi" } }),
        ),
        (
            json!({ "requests": { "cpu": "100m", "memory": "1Gi" } }),
            json!({ "requests": { "cpu": "200m", "memory": "1Gi" } }),
        ),
    ] {
        let mut spec = cluster(&json!({ "name": "ray", "resources": before }));
        assert_eq!(
            head_containers(&job("RayCluster", &spec))[0]
                .get("resources")
                .cloned()
                .unwrap_or_default(),
            before
        );
        spec["gcsFaultToleranceOptions"] = json!({ "redisAddress": "redis:6379" });
        let service = job("RayService", &json!({ "rayClusterConfig": spec }));
        assert_eq!(head_containers(&service)[0]["resources"], after);
    }
}

#[test]
fn the_submitter_is_a_pod_or_a_container_of_the_head() {
    let sets = |mode: Value| {
        let spec = json!({
            "submissionMode": mode, "rayClusterSpec": cluster(&json!({ "name": "ray", "image": "i" })),
        });
        let job = job("RayJob", &spec);
        let names = job.pod_sets(JobGates::default()).into_iter().map(|set| set.name);
        let names: Vec<String> = names.collect();
        (names.join(" "), head_containers(&job)[1].clone())
    };
    let container = json!({
        "name": "ray-job-submitter",
        "resources": {
            "limits": { "cpu": "1", "memory": "1Gi" }, "requests": { "cpu": "500m", "memory": "200Mi" },
        },
    });
    assert_eq!(sets(Value::Null), ("head submitter".to_owned(), Value::Null));
    assert_eq!(sets(json!("K8sJobMode")), ("head submitter".to_owned(), Value::Null));
    assert_eq!(sets(json!("HTTPMode")), ("head".to_owned(), Value::Null));
    assert_eq!(sets(json!("SidecarMode")), ("head".to_owned(), container));
}

/// The pods of a worker group with these fields, in each kind.
fn workers(size: &Value) -> Vec<Option<i32>> {
    let mut group = size.clone();
    group["groupName"] = json!("w");
    let mut cluster = cluster(&json!({ "name": "ray" }));
    cluster["workerGroupSpecs"] = json!([group]);
    let jobs = [
        job("RayCluster", &cluster),
        job("RayJob", &json!({ "rayClusterSpec": cluster })),
        job("RayService", &json!({ "rayClusterConfig": cluster })),
    ];
    let mut counts: Vec<_> =
        jobs.iter().map(|job| job.pod_sets(JobGates::default())[1].count).collect();
    counts.push(with_cluster(&autoscaled(true), &group).pod_sets(JobGates::default())[1].count);
    counts
}

#[test]
fn a_group_has_the_size_that_its_bounds_allow() {
    for (size, pods) in [
        (json!({ "replicas": 1, "minReplicas": 2, "maxReplicas": 2 }), 2),
        (json!({ "replicas": 4, "minReplicas": 1, "maxReplicas": 2 }), 2),
        (json!({ "replicas": 1, "minReplicas": 2, "maxReplicas": 3, "numOfHosts": 4 }), 8),
        (json!({ "replicas": 4, "minReplicas": 1, "maxReplicas": 2, "numOfHosts": 3 }), 6),
        (json!({ "minReplicas": 2 }), 2),
        (json!({ "replicas": 3 }), 3),
        (json!({}), 0),
    ] {
        assert_eq!(workers(&size), [Some(pods); 4], "{size}");
    }
}

/// A RayJob of two workers with an autoscaler. Its status names a RayCluster.
fn autoscaled(elastic: bool) -> JobObject {
    let mut spec = cluster(&json!({ "name": "ray" }));
    spec["enableInTreeAutoscaling"] = json!(true);
    let template = json!({ "spec": { "containers": [] } });
    spec["workerGroupSpecs"] =
        json!([{ "groupName": "Small", "replicas": 2, "template": template }]);
    let object = json!({
        "metadata": {
            "name": "j", "namespace": "ns", "uid": "u-1", "generation": 1,
            "annotations": { "kueue.x-k8s.io/elastic-job": elastic.to_string() },
        },
        "spec": { "rayClusterSpec": spec },
        "status": { "rayClusterName": "j-ray" },
    });
    let kind = Kinds::built_in().find("ray.io/v1", "RayJob").expect("a built-in kind");
    kind.decode(object).expect("a job decodes")
}

/// The RayCluster after its autoscaler has changed its group.
fn with_cluster(job: &JobObject, size: &Value) -> JobObject {
    let mut group = size.clone();
    group["groupName"] = json!("Small");
    let mut found = FoundObjects::default();
    let needed = job.needed_objects().pop().expect("it names a RayCluster");
    let live = json!({
        "metadata": { "name": "j-ray", "namespace": "ns", "generation": 7 },
        "spec": { "workerGroupSpecs": [group] },
    });
    let live = serde_json::from_value(live).expect("an object");
    found.observe(needed, Some(std::sync::Arc::new(live)));
    job.with_objects(&found)
}

#[test]
fn an_elastic_job_has_the_size_of_its_autoscaled_cluster() {
    let gates = JobGates::default();
    let workers = |job: &JobObject| job.pod_sets(gates)[1].count;
    let job = autoscaled(true);
    assert_eq!((job.unresolved(), workers(&job)), (None, Some(2)), "before there is one");
    assert_eq!(job.live_generation(gates).as_deref(), Some(""));
    let grown = json!({ "replicas": 3, "numOfHosts": 2 });
    let live = with_cluster(&job, &grown);
    assert_eq!(workers(&live), Some(6));
    assert_eq!(live.live_generation(gates).as_deref(), Some("7"));
    assert_ne!(workload_name_for(&job, gates), workload_name_for(&live, gates));
    let off = JobGates { elastic_jobs: false, ..gates };
    assert_eq!(live.pod_sets(off)[1].count, Some(2));
    let fixed = with_cluster(&autoscaled(false), &grown);
    assert_eq!((workers(&fixed), fixed.live_generation(gates)), (Some(2), None));
}

/// An elastic RayCluster, or another elastic kind, with groups of so many workers.
fn elastic(kind: &str, replicas: &[i32]) -> JobObject {
    let group = |(at, replicas): (usize, &i32)| {
        json!({
            "groupName": format!("Group{at}"), "replicas": replicas, "maxReplicas": 9,
            "template": { "metadata": { "labels": { "at": "home" } }, "spec": { "containers": [] } },
        })
    };
    let mut cluster = cluster(&json!({ "name": "ray" }));
    cluster["workerGroupSpecs"] = replicas.iter().enumerate().map(group).collect();
    let spec = match kind {
        "RayCluster" => cluster,
        "RayJob" => json!({ "rayClusterSpec": cluster }),
        _ => json!({ "rayClusterConfig": cluster }),
    };
    let kind = Kinds::built_in().find("ray.io/v1", kind).expect("a built-in kind");
    let annotations = json!({ "kueue.x-k8s.io/elastic-job": "true" });
    let metadata = json!({ "name": "j", "namespace": "ns", "annotations": annotations });
    kind.decode(json!({ "metadata": metadata, "spec": spec })).expect("a job decodes")
}

/// The pod sets of a RayCluster with groups of so many workers.
fn granted(replicas: &[i32]) -> Vec<PodSet> {
    elastic("RayCluster", replicas).pod_sets(JobGates::default())
}

fn replicas(spec: &Value) -> Vec<i64> {
    let groups = spec["workerGroupSpecs"].as_array().expect("groups").iter();
    groups.map(|group| group["replicas"].as_i64().expect("a number")).collect()
}

#[test]
fn the_copy_of_a_ray_cluster_shrinks_with_its_workload_group_by_group() {
    let pushed = |copy: &[i32], job: &[i32], pods: &[i32]| {
        let (copy, job) = (elastic("RayCluster", copy), elastic("RayCluster", job));
        size_to_push(&copy, &job, &granted(pods), JobGates::default()).map(|spec| replicas(&spec))
    };
    assert_eq!(pushed(&[4, 2], &[3, 2], &[3, 2]), Some(vec![3, 2]));
    assert_eq!(pushed(&[4, 2], &[3, 2], &[4, 2]), None, "its Workload follows first");
    assert_eq!(pushed(&[2, 2], &[3, 1], &[2, 2]), None, "a second slice is needed");
    assert_eq!(pushed(&[4, 4], &[9, 3], &[4, 3]), Some(vec![4, 3]), "nothing grows");
    assert_eq!(pushed(&[3, 2], &[3, 2], &[3, 2]), None);
}

#[test]
fn the_copy_of_a_ray_cluster_gets_the_workers_of_a_later_slice() {
    let later = |copy: &[i32], job: &[i32], pods: &[i32]| {
        let (copy, job) = (elastic("RayCluster", copy), elastic("RayCluster", job));
        size_of_later_slice(&copy, &job, &granted(pods), JobGates::default())
    };
    let sizes = |spec: Option<Value>| spec.map(|spec| replicas(&spec));
    assert_eq!(sizes(later(&[2, 2], &[4, 1], &[4, 1])), Some(vec![4, 1]));
    assert_eq!(sizes(later(&[2, 2], &[9, 2], &[4, 2])), Some(vec![4, 2]), "it grew again");
    assert_eq!(sizes(later(&[2, 2], &[3, 2], &[4, 2])), Some(vec![3, 2]), "it shrank since");
    assert_eq!(later(&[4, 2], &[4, 2], &[4, 2]), Some(json!({})), "the name alone changes");
}

#[test]
fn a_copy_is_made_with_the_workers_of_its_workload() {
    let job = elastic("RayCluster", &[4, 2]);
    let copy = job.remote_job(&granted(&[2, 2]), JobGates::default());
    let counts = copy.pod_sets(JobGates::default()).into_iter().map(|set| set.count);
    assert_eq!(counts.collect::<Vec<_>>(), [Some(1), Some(2), Some(2)]);
    let off = JobGates { elastic_jobs: false, ..JobGates::default() };
    assert_eq!(job.remote_job(&granted(&[2, 2]), off).pod_sets(off)[1].count, Some(4));
}

#[test]
fn clusters_of_other_jobs_keep_their_size_on_workers() {
    let follows = |kind| shrinks_on_workers(&elastic(kind, &[2]), JobGates::default());
    assert!(follows("RayCluster") && !follows("RayJob") && !follows("RayService"));
}

#[test]
fn a_running_copy_of_a_ray_service_follows_its_serve_configuration() {
    let service = |config: Option<&str>| {
        let mut spec = json!({ "rayClusterConfig": {}, "serveConfigV2": config });
        if config.is_none() {
            spec = json!({ "rayClusterConfig": { "suspend": true } });
        }
        let kind = Kinds::built_in().find("ray.io/v1", "RayService").expect("a built-in kind");
        kind.decode(json!({ "metadata": { "name": "s" }, "spec": spec })).expect("a job decodes")
    };
    let forwarded = |copy, job| service(job).forwarded_spec(&service(copy));
    assert_eq!(forwarded(Some("a"), Some("a")), None);
    assert_eq!(forwarded(Some("a"), Some("b")), Some(json!({ "serveConfigV2": "b" })));
    assert_eq!(forwarded(Some("a"), None), Some(json!({ "serveConfigV2": null })));
    let cluster = |replicas| elastic("RayCluster", &[replicas]);
    assert_eq!(cluster(2).forwarded_spec(&cluster(3)), None, "sizes have their own rules");
}

/// A job of this kind with a group of this size.
fn sized(kind: &str, elastic: bool, size: &Value) -> JobObject {
    let mut group = size.clone();
    group["groupName"] = json!("w");
    group["template"] = json!({ "spec": { "containers": [] } });
    let mut cluster = cluster(&json!({ "name": "ray" }));
    cluster["workerGroupSpecs"] = json!([group]);
    let spec = match kind {
        "RayCluster" => cluster,
        "RayJob" => json!({ "rayClusterSpec": cluster }),
        _ => json!({ "rayClusterConfig": cluster }),
    };
    let mut sized = job(kind, &spec);
    let elastic = ("kueue.x-k8s.io/elastic-job".to_owned(), elastic.to_string());
    sized.metadata_mut().annotations = Some([elastic].into());
    sized
}

#[test]
fn the_copy_writes_the_size_that_its_workload_counts() {
    let gates = JobGates::default();
    for (kind, path) in [
        ("RayCluster", "/spec"),
        ("RayJob", "/spec/rayClusterSpec"),
        ("RayService", "/spec/rayClusterConfig"),
    ] {
        for elastic in [false, true] {
            let written = |size: Value, count: Option<i32>| {
                let job = sized(kind, elastic, &size);
                let mut sets = job.pod_sets(gates);
                sets[1].count = count.or(sets[1].count);
                let copy = job.remote_job(&sets, gates).to_create();
                copy.pointer(path).expect("a cluster")["workerGroupSpecs"][0]["replicas"].clone()
            };
            let none = json!({ "replicas": 0, "minReplicas": 2, "maxReplicas": 3 });
            assert_eq!(written(none.clone(), None), 2, "{kind} {elastic}");
            let hosts = json!({ "replicas": 9, "maxReplicas": 3, "numOfHosts": 4 });
            assert_eq!(written(hosts, None), 3, "{kind} {elastic}");
            assert_eq!(written(json!({ "replicas": 2, "maxReplicas": 3 }), None), 2);
            if !elastic {
                assert_eq!(written(none, Some(0)), 0, "its Workload has the number as written");
            }
        }
    }
}

#[test]
fn the_copy_of_a_wrapped_cluster_writes_the_size_that_its_workload_counts() {
    let size = json!({ "replicas": 0, "minReplicas": 2, "maxReplicas": 3 });
    let mut cluster = sized("RayCluster", false, &size).to_create();
    (cluster["apiVersion"], cluster["kind"]) = (json!("ray.io/v1"), json!("RayCluster"));
    let kind = Kinds::built_in().find("workload.codeflare.dev/v1beta2", "AppWrapper");
    let components = json!([{ "template": cluster }]);
    let object = json!({ "metadata": { "name": "j" }, "spec": { "components": components } });
    let job = kind.expect("a built-in kind").decode(object).expect("a job decodes");
    let gates = JobGates::default();
    let copy = job.remote_job(&job.pod_sets(gates), gates);
    let spec = &copy.to_create()["spec"]["components"][0]["template"]["spec"];
    assert_eq!(replicas(spec), [2]);
    assert_eq!(copy.pod_sets(gates), job.pod_sets(gates));
}

#[test]
fn a_copy_is_resized_to_the_size_that_its_workload_counts() {
    let size = |replicas: i32| json!({ "replicas": replicas, "minReplicas": 1, "maxReplicas": 3 });
    let copy = sized("RayCluster", true, &size(2));
    let job = sized("RayCluster", true, &size(0));
    let gates = JobGates::default();
    let pushed = size_to_push(&copy, &job, &job.pod_sets(gates), gates);
    assert_eq!(pushed.map(|spec| replicas(&spec)), Some(vec![1]));
}
