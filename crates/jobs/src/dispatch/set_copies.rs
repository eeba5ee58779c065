//! Copies of sets on workers (docs/reference/multikueue.md §2.7).
//!
//! The pods of a set are made from its copy, on the worker. What starts them are the clones of its Workloads, so that a copy makes
//! no Workload itself: it asks for those of its original, which it names by uid.

use crds::names::{
    annotations::MULTI_KUEUE_ORIGIN_UID,
    gates::ADMISSION,
    labels::{MULTI_KUEUE_ORIGIN, PREBUILT_WORKLOAD_NAME},
};
use serde_json::{Value, json};

use crate::{GenericJob, generic_job::SetSize, start::pod_set_info::SCHEDULING_GATES};

/// The uid of the set that Workloads are made for: that of the original of a copy.
pub(crate) fn original_uid<J: GenericJob>(set: &J) -> &str {
    let original = set.annotation(MULTI_KUEUE_ORIGIN_UID).filter(|uid| !uid.is_empty());
    original.or(set.metadata().uid.as_deref()).unwrap_or_default()
}

/// Whether a set is the copy of one in another cluster.
pub(crate) fn is_copy<J: GenericJob>(set: &J) -> bool {
    set.label(MULTI_KUEUE_ORIGIN).is_some() && set.annotation(MULTI_KUEUE_ORIGIN_UID).is_some()
}

/// Whether an object on a worker is the copy of this set, and not that of an earlier set of its name.
pub fn is_copy_of<J: GenericJob>(copy: &J, set: &J) -> bool {
    let of = copy.annotation(MULTI_KUEUE_ORIGIN_UID);
    of.is_some() && of == set.metadata().uid.as_deref()
}

/// Whether several Workloads have one copy of this job: the replicas of a set.
pub fn is_shared<J: GenericJob>(job: &J) -> bool {
    matches!(job.set_size(), Some(SetSize::Replicas { .. }))
}

/// The number of replicas that the copy of a set has to ask for; `None` if it does, or is no copy of this set.
pub fn replicas_to_push<J: GenericJob>(copy: &J, set: &J) -> Option<u32> {
    let of = |set: &J| match set.set_size()? {
        SetSize::Replicas { replicas, .. } => Some(replicas),
        SetSize::Group { .. } => None,
    };
    let wanted = of(set).filter(|wanted| of(copy) != Some(*wanted))?;
    is_copy_of(copy, set).then_some(wanted)
}

/// Writes the uid of the original to a copy. Labels and annotations of a set may come from a copy that was exported.
pub(crate) fn mark<J: GenericJob>(copy: &mut J, original: &J) {
    let metadata = copy.metadata_mut();
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.remove(PREBUILT_WORKLOAD_NAME);
    let uid = original.metadata().uid.clone().unwrap_or_default();
    annotations.insert(MULTI_KUEUE_ORIGIN_UID.to_owned(), uid);
    if let Some(labels) = &mut metadata.labels {
        labels.remove(PREBUILT_WORKLOAD_NAME);
    }
}

/// Gates the pods of a template: a worker without webhooks would start them at once.
pub(crate) fn hold_pods(template: &mut Value) {
    let Some(spec) = template.pointer_mut("/spec").and_then(Value::as_object_mut) else {
        return;
    };
    let gates = spec.entry(SCHEDULING_GATES).or_insert_with(|| json!([]));
    // An explicit null is a list without gates.
    if gates.is_null() {
        *gates = json!([]);
    }
    if let Some(gates) = gates.as_array_mut()
        && gates.iter().all(|gate| gate["name"] != ADMISSION)
    {
        gates.push(json!({ "name": ADMISSION }));
    }
}

#[cfg(test)]
mod tests {
    use crds::v1beta2::Workload;

    use jiff::Timestamp;

    use super::*;
    use crate::{
        JobGates, JobObject, Kinds,
        construct_workload::{KeysToCopy, WorkloadPriority},
        dispatch::remote_objects::{RemoteIdentity, remote_job},
        reconcile::{ReconcileStep, WorkloadStep},
        replicas::{
            SetContext, first_workload, names_of_unowned, one_workload, reconcile,
            replica_workload, replica_workload_name,
        },
    };

    fn set(framework: &str, spec: &Value) -> JobObject {
        let object = json!({
            "metadata": {
                "name": "d", "namespace": "ns", "uid": "original",
                "labels": { "kueue.x-k8s.io/queue-name": "main" },
            },
            "spec": spec, "status": { "readyReplicas": 2 },
        });
        let kind = Kinds::built_in().of_framework(framework).expect("it is built in");
        kind.decode(object).expect("a set decodes")
    }

    fn template() -> Value {
        json!({
            "metadata": { "labels": { "app": "d" } }, "spec": { "containers": [{ "name": "c" }] },
        })
    }

    fn stateful() -> JobObject {
        set("statefulset", &json!({ "replicas": 2, "template": template() }))
    }

    fn leader_worker() -> JobObject {
        let templates = json!({
            "size": 2, "leaderTemplate": template(), "workerTemplate": template(),
        });
        let spec = json!({ "replicas": 2, "leaderWorkerTemplate": templates });
        set("leaderworkerset.x-k8s.io/leaderworkerset", &spec)
    }

    /// The copy as a worker has it.
    fn copy(original: &JobObject, workload: &Workload) -> JobObject {
        let identity =
            RemoteIdentity { origin: "hub", epoch: 2, incarnation: 3, term: 4, lease: None };
        let mut copy = remote_job(original, workload, identity, JobGates::default());
        copy.metadata_mut().uid = Some("copy".to_owned());
        copy
    }

    fn held(mut copy: JobObject) -> Value {
        copy.hold_pods();
        // A second time changes nothing.
        copy.hold_pods();
        copy.to_create()
    }

    #[test]
    fn a_copy_asks_for_the_workload_of_its_original() {
        let (original, gates) = (stateful(), JobGates::default());
        let (priority, keys) = (WorkloadPriority::default(), KeysToCopy::default());
        let workload = one_workload(&original, priority, &keys, gates);
        let copy = copy(&original, &workload);
        let object = copy.to_create();
        let annotations = &object["metadata"]["annotations"];
        assert_eq!(annotations["kueue.x-k8s.io/multikueue-origin-uid"], "original");
        assert_eq!(annotations["sluice.dev/epoch"], "2");
        let [former] = &names_of_unowned(&original, gates)[..] else { panic!("one name") };
        let named = [workload.metadata.name.expect("a name"), former.clone()];
        assert_eq!(names_of_unowned(&copy, gates), named);
        assert!(is_copy_of(&copy, &original) && !is_copy_of(&original, &original));
        assert!(copy.has_status_of(&original), "its status stays its own");
        assert_eq!(object["spec"]["template"], template(), "nothing is taken from the template");
        let gate = json!([{ "name": "kueue.x-k8s.io/admission" }]);
        assert_eq!(held(copy)["spec"]["template"]["spec"]["schedulingGates"], gate);
    }

    /// The Workload of the second replica, and the copy that it makes.
    fn of_second_replica(original: &JobObject, gates: JobGates) -> (Workload, JobObject) {
        let (priority, keys) = (WorkloadPriority::default(), KeysToCopy::default());
        let workload = replica_workload(original, 1, priority, &keys, gates);
        let copy = copy(original, &workload);
        (workload, copy)
    }

    #[test]
    fn the_copy_of_replicas_names_no_workload_and_has_no_epoch() {
        let (original, gates) = (leader_worker(), JobGates::default());
        let (workload, copy) = of_second_replica(&original, gates);
        let object = copy.to_create();
        let annotations = object["metadata"]["annotations"].as_object().expect("annotations");
        let keys: Vec<&str> = annotations.keys().map(String::as_str).collect();
        let expected =
            ["kueue.x-k8s.io/multikueue-origin-uid", "sluice.dev/incarnation", "sluice.dev/term"];
        assert_eq!(keys, expected);
        let first = replica_workload_name(&original, 0, gates);
        assert_eq!(first_workload(&copy, gates), Some(first));
        assert_eq!(replica_workload_name(&copy, 1, gates), workload.metadata.name.expect("name"));
        let held = held(copy);
        for name in ["leaderTemplate", "workerTemplate"] {
            let spec = &held["spec"]["leaderWorkerTemplate"][name]["spec"];
            assert_eq!(spec["schedulingGates"][0]["name"], "kueue.x-k8s.io/admission");
        }
    }

    #[test]
    fn only_the_copy_of_this_set_gets_its_number_of_replicas() {
        let original = leader_worker();
        let (_, copy) = of_second_replica(&original, JobGates::default());
        assert_eq!(replicas_to_push(&copy, &original), None);
        let mut larger = original.to_create();
        larger["metadata"] = json!(original.metadata());
        larger["spec"]["replicas"] = json!(5);
        let mut larger = original.kind().decode(larger).expect("a set decodes");
        assert_eq!(replicas_to_push(&copy, &larger), Some(5));
        larger.metadata_mut().uid = Some("successor".to_owned());
        assert_eq!(replicas_to_push(&copy, &larger), None);
        assert_eq!(replicas_to_push(&stateful(), &stateful()), None, "a group has one Workload");
    }

    #[test]
    fn a_copy_makes_no_workload_and_owns_its_clone() {
        let (original, gates) = (stateful(), JobGates::default());
        let (priority, keys) = (WorkloadPriority::default(), KeysToCopy::default());
        let mut workload = one_workload(&original, priority, &keys, gates);
        let copy = copy(&original, &workload);
        workload.metadata.owner_references = None;
        let steps = |workloads: &[&Workload]| {
            reconcile(&copy, SetContext { workloads, pods: &[], gates, now: Timestamp::UNIX_EPOCH })
        };
        assert_eq!(steps(&[]), []);
        let [ReconcileStep::Workload { name, write: WorkloadStep::AddOwners(owners) }] =
            &steps(&[&workload])[..]
        else {
            panic!("the clone is taken")
        };
        assert_eq!(Some(name), workload.metadata.name.as_ref());
        assert_eq!((&*owners[0].uid, owners[0].controller), ("copy", None));
        workload.metadata.owner_references = Some(owners.clone());
        assert_eq!(steps(&[&workload]), []);
    }
}
