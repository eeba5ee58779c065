//! Equivalence of a job and its Workload (docs/reference/kueue.md §7.4).
//!
//! Compared are the owner, the maximum execution time, and per pod set the counts, tolerations, containers, and what else decides
//! about its quota: resources of the pod, ResourceClaims and the runtime class. Its overhead is not, which admission adds to pods by
//! the runtime class. Node selectors, labels, volumes and priority are not compared.

use crds::{
    pod::{Container, PodSpec, PodTemplate, SharedResources},
    template_defaults::same_container_fields,
    v1beta2::{PodSet, Workload},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::Value;

use crate::{
    GenericJob, JobGates, construct_workload::max_exec_time, integrations::controller,
    pod_counts::count, pod_set_info::PodSetInfo,
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
    let compared = ComparedFields { as_written: true, ..ComparedFields::of(workload, counts) };
    same_limit(job, workload) && same_pods(job, workload, infos, (compared, gates))
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
    let compared = ComparedFields::of(workload, counts);
    same_limit(job, workload) && same_pods(job, workload, infos, (compared, gates))
}

fn same_limit<J: GenericJob>(job: &J, workload: &Workload) -> bool {
    workload.spec.maximum_execution_time_seconds == max_exec_time(job)
}

/// How counts are compared.
#[derive(Clone, Copy)]
enum ComparedCounts {
    Ignored,
    /// Those of pod sets in the same place, as upstream does.
    InOrder,
    /// Those of pod sets of the same name. An elastic job is resized and started by names.
    ByName,
}

impl ComparedCounts {
    /// Whether the count of a Workload's pod set is that of a job with these pod sets, of which `set` is in the same place.
    fn same(self, wanted: &PodSet, set: &PodSet, sets: &[PodSet]) -> bool {
        let set = match self {
            Self::Ignored => return true,
            Self::InOrder => set,
            Self::ByName => sets.iter().find(|one| one.name == wanted.name).unwrap_or(set),
        };
        count(set) == count(wanted)
    }
}

/// Fields of pod sets that are compared under conditions.
#[derive(Clone, Copy)]
struct ComparedFields {
    counts: ComparedCounts,
    /// The pod sets may be those of another version as well.
    as_written: bool,
    tolerations: bool,
}

impl ComparedFields {
    /// Tolerations are not compared once the Workload is admitted (docs/reference/kueue.md §7.4).
    fn of(workload: &Workload, counts: ComparedCounts) -> Self {
        let admitted = workload.is_admitted();
        Self { counts, as_written: false, tolerations: !admitted }
    }
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

/// Whether the pod sets of a job are those of its Workload.
///
/// A Workload with quota and a clone may have the pod sets that another version has for the job: an upgrade stops no job that
/// runs, and managers and workers need not have one version.
fn same_pods<J: GenericJob>(
    job: &J,
    workload: &Workload,
    infos: Option<&[PodSetInfo]>,
    (compared, gates): (ComparedFields, JobGates),
) -> bool {
    let sets = job.pod_sets(gates);
    let same = |written: &[PodSet]| {
        let theirs = EitherPodSets { sets: &sets, written };
        same_pod_sets((job, theirs), workload, infos, (compared, gates))
    };
    let as_written = compared.as_written || infos.is_some();
    same(&[])
        || (as_written && job.pod_sets_as_written(gates).is_some_and(|written| same(&written)))
}

/// The pod sets of a job, and those that another version has for it, if these are accepted as well. That version may differ in some of
/// the pod sets alone, so each of them may have either form.
#[derive(Clone, Copy)]
struct EitherPodSets<'a> {
    sets: &'a [PodSet],
    written: &'a [PodSet],
}

impl EitherPodSets<'_> {
    fn may_be(
        &self,
        index: usize,
        wanted: &PodSet,
        (compared, gates): (ComparedFields, JobGates),
    ) -> bool {
        [self.sets, self.written].into_iter().any(|sets| {
            sets.get(index).is_some_and(|set| {
                compared.counts.same(wanted, set, sets) && same_set(wanted, set, compared, gates)
            })
        })
    }
}

/// With quota reserved, the job equals its admitted form; while it is suspended it may also equal its original form.
fn same_pod_sets<J: GenericJob>(
    (job, theirs): (&J, EitherPodSets<'_>),
    workload: &Workload,
    infos: Option<&[PodSetInfo]>,
    (compared, gates): (ComparedFields, JobGates),
) -> bool {
    let wanted = &workload.spec.pod_sets;
    let Some(infos) = infos else {
        return same_sets(wanted, theirs, compared, gates);
    };
    let started = merged(wanted, infos, (job.is_elastic(gates), gates.partial_admission));
    started.is_some_and(|started| same_sets(&started, theirs, compared, gates))
        || ((job.is_suspended() || job.may_restart()) && same_sets(wanted, theirs, compared, gates))
}

/// Pod sets merged with their infos; `None` on a conflict. Only a partial admission changes the count of a job: after some of its
/// pods have ended, quota is reserved for the others alone.
fn merged(
    wanted: &[PodSet],
    infos: &[PodSetInfo],
    (elastic, partial): (bool, bool),
) -> Option<Vec<PodSet>> {
    if wanted.len() != infos.len() {
        return None;
    }
    let pairs = wanted.iter().zip(infos);
    pairs
        .map(|(set, info)| {
            let mut set = set.clone();
            if partial && set.min_count.is_some() {
                set.count = Some(info.count);
            }
            info.merge_into(&mut set.template, elastic).ok()?;
            Some(set)
        })
        .collect()
}

fn same_sets(
    wanted: &[PodSet],
    theirs: EitherPodSets<'_>,
    compared: ComparedFields,
    gates: JobGates,
) -> bool {
    let mut wanted_sets = wanted.iter().enumerate();
    wanted.len() == theirs.sets.len()
        && wanted_sets.all(|(index, wanted)| theirs.may_be(index, wanted, (compared, gates)))
}

/// Compares all but the count.
fn same_set(left: &PodSet, right: &PodSet, compared: ComparedFields, gates: JobGates) -> bool {
    // minCount is cleared while PartialAdmission is off (docs/reference/kueue.md §7.4).
    (!gates.partial_admission || left.min_count == right.min_count)
        && same_specs(&left.template, &right.template, compared.tolerations)
}

fn same_specs(left: &PodTemplate, right: &PodTemplate, tolerations: bool) -> bool {
    // Mostly they are one spec in memory.
    if left.spec == right.spec {
        return true;
    }
    let none = PodSpec::default();
    let left = left.spec.as_deref().unwrap_or(&none);
    let right = right.spec.as_deref().unwrap_or(&none);
    (!tolerations || left.tolerations == right.tolerations)
        && same_resources(left.resources.as_ref(), right.resources.as_ref())
        && resource_claims(left) == resource_claims(right)
        && left.runtime_class_name == right.runtime_class_name
        && same_containers(&left.init_containers, &right.init_containers)
        && same_containers(&left.containers, &right.containers)
}

fn same_containers(left: &[Container], right: &[Container]) -> bool {
    left.len() == right.len()
        && left.iter().zip(right).all(|(left, right)| same_container(left, right))
}

/// The ResourceClaims that the pods share among their containers.
fn resource_claims(spec: &PodSpec) -> &[Value] {
    spec.rest.get("resourceClaims").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Absent resources equal empty resources.
fn same_resources(left: Option<&SharedResources>, right: Option<&SharedResources>) -> bool {
    let none = SharedResources::default();
    left.unwrap_or(&none) == right.unwrap_or(&none)
}

fn same_container(left: &Container, right: &Container) -> bool {
    let Container { name, resources, restart_policy, volume_mounts, rest } = left;
    *name == right.name
        && *restart_policy == right.restart_policy
        && *volume_mounts == right.volume_mounts
        && same_container_fields(rest, &right.rest)
        && same_resources(resources.as_ref(), right.resources.as_ref())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
