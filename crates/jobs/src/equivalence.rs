//! Equivalence of a job and its Workload (docs/reference/kueue.md §7.4).
//!
//! Compared are the owner, the maximum execution time, and per pod set the counts, tolerations, containers, and what else decides
//! about its quota: resources of the pod, ResourceClaims and the runtime class. The overhead is not compared: the admission plugin
//! RuntimeClass adds it to pods. Node selectors, labels, volumes and priority are not compared.

mod pod_set_comparison;

use crds::v1beta2::Workload;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use self::pod_set_comparison::{ComparedCounts, PodSetComparison};
use crate::{
    GenericJob, JobGates, construct_workload::max_exec_time, integrations::controller,
    start::pod_set_info::PodSetInfo,
};

/// Whether the job controls an equivalent Workload (Kueue: `EquivalentToWorkload`). `infos` holds the pod set infos
/// if quota is reserved.
pub fn equivalent<J: GenericJob>(
    job: &J,
    workload: &Workload,
    infos: Option<&[PodSetInfo]>,
    gates: JobGates,
) -> bool {
    owned_by(workload, job, gates) && same_work(job, workload, infos, gates)
}

/// The same for a prebuilt Workload, which the job need not control. An elastic job is resized together with its Workload, in two
/// writes of another program, so their counts may differ meanwhile.
pub fn equivalent_to_prebuilt<J: GenericJob>(
    job: &J,
    workload: &Workload,
    infos: Option<&[PodSetInfo]>,
    gates: JobGates,
) -> bool {
    let counts =
        if job.is_elastic(gates) { ComparedCounts::Ignored } else { ComparedCounts::InOrder };
    let compared = PodSetComparison::of(workload, counts, gates).as_written();
    same_limit(job, workload) && compared.same_pods(job, workload, infos)
}

/// Whether a job, of whatever owner, is the work of a Workload.
pub fn same_work<J: GenericJob>(
    job: &J,
    workload: &Workload,
    infos: Option<&[PodSetInfo]>,
    gates: JobGates,
) -> bool {
    let counts =
        if job.is_elastic(gates) { ComparedCounts::ByName } else { ComparedCounts::InOrder };
    let compared = PodSetComparison::of(workload, counts, gates);
    same_limit(job, workload) && compared.same_pods(job, workload, infos)
}

fn same_limit<J: GenericJob>(job: &J, workload: &Workload) -> bool {
    workload.spec.maximum_execution_time_seconds == max_exec_time(job)
}

/// Whether an object controls the Workload.
pub fn has_controller(workload: &Workload) -> bool {
    controller(&workload.metadata).is_some()
}

/// Whether the job is the controller of the Workload. Without the gate FinishOrphanedWorkloads a job also takes over that of an earlier
/// job of its name.
pub fn owned_by<J: GenericJob>(workload: &Workload, job: &J, gates: JobGates) -> bool {
    controller(&workload.metadata).is_some_and(|owner| {
        let is_same = || Some(&owner.uid) == job.metadata().uid.as_ref();
        is_name_of(owner, job) && (!gates.finish_orphans || is_same())
    })
}

/// Whether an owner reference names the job, or another one of its name.
pub fn is_name_of<J: GenericJob>(owner: &OwnerReference, job: &J) -> bool {
    job.kind().is_kind_of(&owner.api_version, &owner.kind)
        && Some(&owner.name) == job.metadata().name.as_ref()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        Job,
        construct_workload::{KeysToCopy, WorkloadPriority, construct_workload},
    };

    fn object(suspend: bool) -> Value {
        json!({
            "metadata": { "name": "train", "uid": "u-1" },
            "spec": {
                "parallelism": 3, "suspend": suspend,
                "template": { "spec": {
                    "tolerations": [{ "key": "a" }],
                    "containers": [{ "name": "c", "image": "i" }],
                } },
            },
        })
    }

    fn decode(object: &Value) -> Job {
        serde_json::from_value(object.clone()).expect("a Job decodes")
    }

    fn workload() -> Workload {
        let job = decode(&object(true));
        construct_workload(
            &job,
            WorkloadPriority::default(),
            &KeysToCopy::default(),
            JobGates::default(),
        )
    }

    #[test]
    fn what_decides_about_quota_is_compared() {
        let table = [
            ("/spec/parallelism", json!(4), false),
            ("/spec/template/spec/containers/0/image", json!("j"), false),
            ("/spec/template/spec/tolerations", json!([]), false),
            ("/metadata/uid", json!("u-2"), false),
            ("/metadata/name", json!("other"), false),
            ("/spec/template/spec/resources", json!({ "requests": { "cpu": "100" } }), false),
            ("/spec/template/spec/resources", json!({}), true),
            ("/spec/template/spec/resourceClaims", json!([{ "name": "gpu" }]), false),
            ("/spec/template/spec/resourceClaims", json!([]), true),
            ("/spec/template/spec/runtimeClassName", json!("kata"), false),
            ("/spec/template/spec/overhead", json!({ "cpu": "1" }), true),
            ("/spec/template/spec/nodeSelector", json!({ "a": "b" }), true),
            ("/spec/template/spec/containers/0/resources", json!({}), true),
            ("/spec/template/metadata", json!({ "labels": { "a": "b" } }), true),
            ("/spec/template/spec/initContainers", json!([{ "name": "i" }]), false),
            ("/metadata/labels", json!({ "kueue.x-k8s.io/max-exec-time-seconds": "5" }), false),
        ];
        for (path, value, same) in table {
            let mut object = object(true);
            let (parent, key) = path.rsplit_once('/').expect("a path");
            object.pointer_mut(parent).expect("a parent")[key] = value;
            let job = decode(&object);
            assert_eq!(equivalent(&job, &workload(), None, JobGates::default()), same, "{path}");
        }
    }

    /// Of a kind without these defaults in its schema, only the Workload has them.
    #[test]
    fn a_field_that_has_its_default_only_in_the_workload_is_no_difference() {
        let with_probe = |action: Value| {
            let mut object = object(true);
            let container = &mut object["spec"]["template"]["spec"]["containers"][0];
            container["livenessProbe"] = json!({ "grpc": action });
            decode(&object)
        };
        let job = with_probe(json!({ "port": 80 }));
        for (service, same) in [("", true), ("s", false)] {
            let mut stored = workload();
            let theirs = with_probe(json!({ "port": 80, "service": service }));
            stored.spec.pod_sets = theirs.pod_sets(JobGates::default());
            assert_eq!(equivalent(&job, &stored, None, JobGates::default()), same, "{service}");
        }
    }

    #[test]
    fn a_job_with_quota_equals_its_admitted_or_original_form() {
        let info = PodSetInfo {
            name: "main".to_owned(),
            count: 2,
            tolerations: serde_json::from_value(json!([{ "key": "b" }])).expect("decodes"),
            ..PodSetInfo::default()
        };
        let infos = [info];
        let mut wanted = workload();
        let same = |object: &Value, workload: &Workload| {
            equivalent(&decode(object), workload, Some(&infos), JobGates::default())
        };
        let started = |pods: u32, partial: bool| {
            let mut started = object(false);
            started["spec"]["parallelism"] = json!(pods);
            started["spec"]["template"]["spec"]["tolerations"] =
                json!([{ "key": "a" }, { "key": "b" }]);
            if partial {
                let fewest = json!({ "kueue.x-k8s.io/job-min-parallelism": "1" });
                started["metadata"]["annotations"] = fewest;
            }
            started
        };
        assert!(same(&object(true), &wanted), "while suspended, it may have its original form");
        assert!(!same(&object(false), &wanted), "running, it must be as it was admitted");
        assert!(same(&started(3, false), &wanted), "one of its pods has ended before");
        assert!(!same(&started(2, false), &wanted));
        wanted.spec.pod_sets[0].min_count = Some(1);
        assert!(same(&started(2, true), &wanted), "it is admitted in part");
        assert!(!same(&started(3, true), &wanted));
    }

    #[test]
    fn tolerations_of_an_admitted_workload_are_not_compared() {
        let mut object = object(false);
        object["spec"]["template"]["spec"]["tolerations"] = json!([]);
        let mut workload = workload();
        let same =
            |workload: &Workload| equivalent(&decode(&object), workload, None, JobGates::default());
        assert!(!same(&workload));
        let admitted = json!([{ "type": "Admitted", "status": "True" }]);
        workload.status.conditions = serde_json::from_value(admitted).expect("decodes");
        assert!(same(&workload));
    }

    #[test]
    fn without_the_gate_a_job_takes_over_the_workload_of_an_earlier_one() {
        let mut later = decode(&object(true));
        later.metadata.uid = Some("u-2".to_owned());
        let owned = |job: &Job, gates| owned_by(&workload(), job, gates);
        let gates = JobGates::default();
        let off = JobGates { finish_orphans: false, ..gates };
        assert_eq!((owned(&later, gates), owned(&later, off)), (false, true));
        later.metadata.name = Some("other".to_owned());
        assert!(!owned(&later, off));
    }
}
