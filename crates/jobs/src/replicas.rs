//! Sets of pods that other objects make and the groups of which are started by Workloads of the set (docs/reference/kueue.md §7.8).
//!
//! A kind whose jobs are such sets answers [`GenericJob::set_size`]. Each replica is queued, admitted and evicted by itself; then
//! the pod sets are those of one replica, and the set makes a Workload for each index and deletes those that are not needed.
//! Or all pods are one group (`one_group`). A set starts nothing itself: the pods of a Workload are a group
//! ([`crate::pods::group`]), which [`GenericJob::adopted`] makes of them.

pub(crate) mod membership;
mod one_group;

use std::collections::{BTreeMap, BTreeSet};

use crds::{
    meta::is_deleting,
    names::annotations::{
        COMPONENT_WORKLOAD_INDEX, IS_GROUP_WORKLOAD, JOB_OWNER_GVK, JOB_OWNER_NAME,
        POD_SUSPENDING_PARENT,
    },
    v1beta2::Workload,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

pub(crate) use self::membership::Membership;
pub use self::one_group::{one_workload, runs_until};

use crate::{
    GenericJob, JobGates, Kind, Pod,
    construct_workload::{
        KeysToCopy, WorkloadPriority, annotations, labels, owner_reference, workload_name_for,
        workload_spec,
    },
    dispatch::set_copies,
    generic_job::SetSize,
    integrations::controller,
    kind::SetMembers,
    reconcile::{JobStep, ReconcileStep, WorkloadStep, follow_keys, refuse_pod_sets},
    workload_name::{WorkloadOwner, workload_name},
};

/// Workloads of one set that are created at once. The others follow when these are there: a set may have a million replicas.
const AT_ONCE: usize = 100;

/// The name of the set of a pod, if the pod is one of a set of this kind.
#[must_use]
pub fn set_of<'a>(kind: &Kind, pod: &'a Pod) -> Option<&'a str> {
    match kind.members()? {
        SetMembers::Named(label) => pod.label(label),
        SetMembers::Controlled(_) => {
            // The pods of such an object are jobs themselves, or another set's, unless it holds them.
            let held = pod.annotation(POD_SUSPENDING_PARENT) == Some(kind.framework());
            let owner = controller(&pod.metadata).filter(|_| held)?;
            kind.is_kind_of(&owner.api_version, &owner.kind).then_some(owner.name.as_str())
        }
    }
}

/// The replica of a Workload.
#[must_use]
pub fn replica_of(workload: &Workload) -> Option<u32> {
    workload.metadata.annotations.as_ref()?.get(COMPONENT_WORKLOAD_INDEX)?.parse().ok()
}

/// Whether a set owns a Workload. It does not control it: the pods of the replica are owners, too.
pub fn is_owned_by<J: GenericJob>(workload: &Workload, set: &J) -> bool {
    let mut owners = workload.metadata.owner_references.iter().flatten();
    owners.any(|owner| {
        set.kind().is_kind_of(&owner.api_version, &owner.kind)
            && Some(&owner.uid) == set.metadata().uid.as_ref()
    })
}

/// Name of the Workload of a replica.
pub fn replica_workload_name<J: GenericJob>(set: &J, replica: u32, gates: JobGates) -> String {
    let owner = set.metadata();
    let name = format!("{}-{replica}", owner.name.as_deref().unwrap_or_default());
    let uid = set_copies::original_uid(set);
    let (kind, group) = (set.kind().name(), set.kind().group());
    workload_name(WorkloadOwner { kind, group, name: &name, uid, part: None }, gates.short_names)
}

/// Names under which the Workload of a set with one group may be there though the set does not own it: that which a copy was made
/// for, and one of an earlier version of Kueue.
pub fn names_of_unowned<J: GenericJob>(set: &J, gates: JobGates) -> Vec<String> {
    if !matches!(set.set_size(), Some(SetSize::Group { .. })) {
        return Vec::new();
    }
    let copied_for = set_copies::is_copy(set).then(|| workload_name_for(set, gates));
    copied_for.into_iter().chain([one_group::former_name(set, gates)]).collect()
}

/// The Workload of the first replica, which stands for the copy of a set of replicas where one Workload has to.
pub fn first_workload<J: GenericJob>(set: &J, gates: JobGates) -> Option<String> {
    let copied = set_copies::is_shared(set) && set_copies::is_copy(set);
    copied.then(|| replica_workload_name(set, 0, gates))
}

/// What decides about a set beside the set itself.
#[derive(Clone, Copy)]
pub struct SetContext<'a> {
    /// The Workloads of the set, and those that it may take over.
    pub workloads: &'a [&'a Workload],
    /// The pods of its members.
    pub pods: &'a [&'a Pod],
    /// Feature gates.
    pub gates: JobGates,
    /// The time.
    pub now: Timestamp,
}

/// How many replicas of a set have a Workload.
#[derive(Clone, Copy)]
struct WantedReplicas {
    /// Those that have one in any case.
    always: u32,
    /// Replicas below this number have one while they have a pod.
    most: u32,
}

/// The next steps of a set.
pub fn reconcile<J: GenericJob + From<Pod>>(
    set: &J,
    context: SetContext<'_>,
) -> Vec<ReconcileStep<J>> {
    if set.is_held_by_other() && !set_copies::is_copy(set) {
        return leave(set, context.workloads);
    }
    // The garbage collector deletes the Workloads of a set that is gone.
    let is_left = is_deleting(set.metadata()) || set.is_skipped();
    let size = set.set_size().filter(|_| !is_left);
    if set_copies::is_copy(set) {
        return size.map(|_| reconcile_copy(set, context)).unwrap_or_default();
    }
    match size {
        Some(SetSize::Replicas { replicas, surge, updating }) => {
            let most = replicas.saturating_add(surge);
            let always = replicas.max(updating.min(most));
            reconcile_replicas(set, WantedReplicas { always, most }, context)
        }
        Some(SetSize::Group { pods: size }) => one_group::reconcile(set, size, context),
        None => Vec::new(),
    }
}

/// Deletes the Workloads that a set made before another parent held its pods: they have quota that no pod uses. The pods are left to
/// that parent.
fn leave<J: GenericJob>(set: &J, workloads: &[&Workload]) -> Vec<ReconcileStep<J>> {
    let is_over = |one: &Workload| one.is_finished() || is_deleting(&one.metadata);
    let owned = workloads.iter().filter(|one| is_owned_by(one, set) && !is_over(one));
    owned.map(|one| WorkloadStep::Delete.of(one)).collect()
}

/// A copy owns the clone of its Workload and puts its pods into groups. Its manager makes and removes the clones.
fn reconcile_copy<J: GenericJob + From<Pod>>(
    set: &J,
    context: SetContext<'_>,
) -> Vec<ReconcileStep<J>> {
    let SetContext { workloads, pods, gates, .. } = context;
    let is_group = matches!(set.set_size(), Some(SetSize::Group { .. }));
    let group = one_group::workload_of(set, workloads, gates).filter(|_| is_group);
    let clones = if is_group { group.as_slice() } else { workloads };
    let lives = |one: &&&Workload| !is_deleting(&one.metadata);
    let taken = clones.iter().filter(lives).filter_map(|one| take_over(set, one));
    let adopted = pods.iter().filter_map(|pod| one_group::adopted(set, pod, group, gates));
    taken
        .chain(adopted.map(|pod| ReconcileStep::Job(JobStep::Adopt(Box::new(J::from(pod))))))
        .collect()
}

/// Makes a set an owner of a Workload.
fn take_over<J: GenericJob>(set: &J, workload: &Workload) -> Option<ReconcileStep<J>> {
    (!is_owned_by(workload, set))
        .then(|| WorkloadStep::AddOwners(vec![reference(set)]).of(workload))
}

fn reconcile_replicas<J: GenericJob + From<Pod>>(
    set: &J,
    replicas: WantedReplicas,
    context: SetContext<'_>,
) -> Vec<ReconcileStep<J>> {
    let SetContext { workloads, pods, gates, .. } = context;
    let surging: BTreeSet<u32> = pods.iter().filter_map(|pod| set.replica_of(pod)).collect();
    let WantedReplicas { always, most } = replicas;
    let wanted = |replica: u32| replica < always || (replica < most && surging.contains(&replica));
    let mut steps = Vec::new();
    let mut present = BTreeSet::new();
    for workload in workloads {
        match replica_of(workload).filter(|replica| wanted(*replica)) {
            // A second Workload of a replica would take its quota twice.
            Some(replica) if present.insert(replica) => steps.extend(follow(set, workload, gates)),
            _ if is_deleting(&workload.metadata) => {}
            _ => steps.push(WorkloadStep::Delete.of(workload)),
        }
    }
    // Replicas of an update come behind those that are asked for, and count while they have a pod.
    let surge = surging.range(always..).copied().filter(|replica| wanted(*replica));
    // Pods that run have the flavors of a former Workload. Their group stops them.
    let busy: BTreeSet<u32> = pods
        .iter()
        .filter(|pod| holds_former(set, pod, gates))
        .filter_map(|pod| set.replica_of(pod))
        .collect();
    let missing = (0..always)
        .chain(surge)
        .filter(|replica| !present.contains(replica) && !busy.contains(replica));
    let mut missing = missing.take(AT_ONCE).peekable();
    match missing.peek().and_then(|_| refuse_pod_sets(set, gates)) {
        Some(refused) => steps.push(refused),
        None => steps.extend(missing.map(ReconcileStep::CreateReplicaWorkload)),
    }
    let adopted = pods.iter().filter_map(|pod| set.adopted(pod, gates));
    steps.extend(adopted.map(|pod| ReconcileStep::Job(JobStep::Adopt(Box::new(J::from(pod))))));
    steps
}

/// Whether a pod runs as a member of the group of its replica.
fn holds_former<J: GenericJob>(set: &J, pod: &Pod, gates: JobGates) -> bool {
    let group = pod.group(gates).name;
    let of_replica =
        set.replica_of(pod).is_some_and(|one| replica_workload_name(set, one, gates) == group);
    of_replica && !pod.is_gated() && !pod.is_terminated()
}

/// What the Workload of a replica follows of the set.
fn follow<J: GenericJob>(set: &J, workload: &Workload, gates: JobGates) -> Vec<ReconcileStep<J>> {
    if workload.is_finished() || is_deleting(&workload.metadata) {
        return Vec::new();
    }
    let keys = follow_keys(set, workload, gates);
    keys.into_iter().chain(follow_queue(set, workload)).collect()
}

fn follow_queue<J: GenericJob>(set: &J, workload: &Workload) -> Option<ReconcileStep<J>> {
    // The API refuses another queue name while quota is reserved (docs/reference/kueue.md §1.2).
    let reserved = workload.has_quota_reservation();
    let moved = workload.spec.queue_name != set.queue_name() && !reserved;
    moved.then(|| WorkloadStep::UpdateQueueName(set.queue_name().to_owned()).of(workload))
}

/// Constructs the Workload of a replica.
pub fn replica_workload<J: GenericJob>(
    set: &J,
    replica: u32,
    priority: WorkloadPriority,
    copied: &KeysToCopy,
    gates: JobGates,
) -> Workload {
    let name = replica_workload_name(set, replica, gates);
    let mut workload = set_workload(set, name, priority, copied, gates);
    let annotations = workload.metadata.annotations.get_or_insert_default();
    annotations.insert(COMPONENT_WORKLOAD_INDEX.to_owned(), replica.to_string());
    workload
}

/// A Workload of a set. The set owns it and does not control it: its pods own it as well.
fn set_workload<J: GenericJob>(
    set: &J,
    name: String,
    priority: WorkloadPriority,
    copied: &KeysToCopy,
    gates: JobGates,
) -> Workload {
    let owner = set.metadata();
    let mut annotations: BTreeMap<String, String> = annotations(set, copied, gates);
    let own = [
        (IS_GROUP_WORKLOAD, "true".to_owned()),
        (JOB_OWNER_GVK, set.kind().gvk().to_string()),
        (JOB_OWNER_NAME, owner.name.clone().unwrap_or_default()),
    ];
    annotations.extend(own.map(|(key, value)| (key.to_owned(), value)));
    Workload {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: owner.namespace.clone(),
            labels: Some(labels(set, copied)).filter(|labels| !labels.is_empty()),
            annotations: Some(annotations),
            owner_references: Some(vec![reference(set)]),
            ..ObjectMeta::default()
        },
        spec: workload_spec(set, set.pod_sets(gates), priority),
        ..Workload::default()
    }
}

/// The reference by which a set owns a Workload without controlling it.
fn reference<J: GenericJob>(set: &J) -> OwnerReference {
    OwnerReference { controller: None, block_owner_deletion: None, ..owner_reference(set) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        JobObject, leader_worker_set,
        pods::group::{RoleComparison, waiting_for_replacement},
        reconcile::name,
    };

    fn set(replicas: u32, surge: &Value) -> JobObject {
        let template = json!({ "spec": { "containers": [{ "name": "c" }] } });
        let object = json!({
            "metadata": {
                "name": "d", "namespace": "ns", "uid": "u",
                "labels": { "kueue.x-k8s.io/queue-name": "main" },
            },
            "spec": {
                "replicas": replicas,
                "rolloutStrategy": { "rollingUpdateConfiguration": { "maxSurge": surge } },
                "leaderWorkerTemplate": {
                    "size": 3, "leaderTemplate": template, "workerTemplate": template,
                },
            },
        });
        leader_worker_set::kind().decode(object).expect("a set decodes")
    }

    fn workload(set: &JobObject, replica: u32) -> Workload {
        let (priority, gates) = (WorkloadPriority::default(), JobGates::default());
        replica_workload(set, replica, priority, &KeysToCopy::default(), gates)
    }

    fn steps(
        set: &JobObject,
        workloads: &[Workload],
        pods: &[Pod],
    ) -> Vec<ReconcileStep<JobObject>> {
        let workloads: Vec<&Workload> = workloads.iter().collect();
        let pods: Vec<&Pod> = pods.iter().collect();
        reconciled(set, &workloads, &pods)
    }

    pub(super) fn reconciled(
        set: &JobObject,
        workloads: &[&Workload],
        pods: &[&Pod],
    ) -> Vec<ReconcileStep<JobObject>> {
        let (gates, now) = (JobGates::default(), Timestamp::UNIX_EPOCH);
        reconcile(set, SetContext { workloads, pods, gates, now })
    }

    fn leader(replica: u32) -> Pod {
        serde_json::from_value(json!({
            "metadata": {
                "name": format!("d-{replica}"), "namespace": "ns",
                "labels": {
                    "leaderworkerset.sigs.k8s.io/name": "d",
                    "leaderworkerset.sigs.k8s.io/worker-index": "0",
                    "leaderworkerset.sigs.k8s.io/group-index": replica.to_string(),
                },
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "d", "uid": "s",
                    "controller": true,
                }],
            },
            "spec": { "schedulingGates": [{ "name": "kueue.x-k8s.io/admission" }] },
        }))
        .expect("a pod decodes")
    }

    #[test]
    fn each_replica_has_a_workload_of_its_own() {
        let one = workload(&set(2, &json!(0)), 1);
        let text = json!(one);
        let name = one.metadata.name.clone().expect("a name");
        assert!(name.starts_with("leaderworkerset-d-1-"), "{name}");
        assert_eq!(
            text["metadata"]["annotations"],
            json!({
                "kueue.x-k8s.io/component-workload-index": "1",
                "kueue.x-k8s.io/is-group-workload": "true",
                "kueue.x-k8s.io/job-owner-gvk": "leaderworkerset.x-k8s.io/v1, Kind=LeaderWorkerSet",
                "kueue.x-k8s.io/job-owner-name": "d",
            })
        );
        let owner = &text["metadata"]["ownerReferences"][0];
        assert_eq!((&owner["uid"], owner.get("controller")), (&json!("u"), None));
        assert_eq!(text["metadata"].get("finalizers"), None);
        let counts: Vec<_> =
            one.spec.pod_sets.iter().map(|set| (set.name.as_str(), set.count)).collect();
        assert_eq!(counts, [("leader", Some(1)), ("worker", Some(2))]);
    }

    #[test]
    fn a_replica_of_a_leader_alone_has_a_pod_set_of_no_workers() {
        let sets = |size: u32| {
            let template = json!({ "spec": { "containers": [{ "name": "c" }] } });
            let templates = json!({
                "size": size, "leaderTemplate": template, "workerTemplate": template,
            });
            let object = json!({
                "metadata": { "name": "d", "namespace": "ns", "uid": "u" },
                "spec": { "replicas": 1, "leaderWorkerTemplate": templates },
            });
            let set = leader_worker_set::kind().decode(object).expect("a set decodes");
            let sets = workload(&set, 0).spec.pod_sets.into_iter();
            sets.map(|set| (set.name, set.count)).collect::<Vec<_>>()
        };
        let of =
            |workers| vec![("leader".to_owned(), Some(1)), ("worker".to_owned(), Some(workers))];
        assert_eq!(sets(2), of(1));
        assert_eq!(sets(1), of(0));
        assert_eq!(sets(0), of(0));
    }

    /// A pod template with a topology that cannot be read.
    pub(super) fn unreadable_template() -> Value {
        let annotations = json!({ "kueue.x-k8s.io/podset-unconstrained-topology": "maybe" });
        json!({
            "metadata": { "annotations": annotations }, "spec": { "containers": [{ "name": "c" }] },
        })
    }

    #[test]
    fn replicas_with_a_topology_that_cannot_be_read_get_no_workloads() {
        let object = json!({
            "metadata": {
                "name": "d", "namespace": "ns", "uid": "u",
                "labels": { "kueue.x-k8s.io/queue-name": "main" },
            },
            "spec": {
                "replicas": 2, "leaderWorkerTemplate": { "size": 3, "workerTemplate": unreadable_template() },
            },
        });
        let bad = leader_worker_set::kind().decode(object).expect("a set decodes");
        let steps = steps(&bad, &[], &[]);
        assert!(matches!(steps[..], [ReconcileStep::Refuse { .. }]), "{steps:?}");
    }

    #[test]
    fn workloads_follow_the_number_of_replicas() {
        let set = |replicas| set(replicas, &json!(0));
        let create = |replica| ReconcileStep::CreateReplicaWorkload(replica);
        assert_eq!(steps(&set(2), &[], &[]), [create(0), create(1)]);
        let both = [workload(&set(2), 0), workload(&set(2), 1)];
        assert_eq!(steps(&set(2), &both, &[]), []);
        assert_eq!(steps(&set(3), &both, &[]), [create(2)]);
        let name = both[1].metadata.name.clone().expect("a name");
        assert_eq!(
            steps(&set(1), &both, &[]),
            [ReconcileStep::Workload { name, write: WorkloadStep::Delete }]
        );
        let mut deleted = set(3);
        deleted.metadata_mut().deletion_timestamp =
            serde_json::from_value(json!("2026-01-01T00:00:00Z")).ok();
        assert_eq!(steps(&deleted, &both, &[]), [], "the garbage collector deletes them");
        assert_eq!(steps(&set(1_000_000), &[], &[]).len(), AT_ONCE);
    }

    #[test]
    fn a_surge_counts_while_it_has_a_pod() {
        let create = |replica| ReconcileStep::CreateReplicaWorkload(replica);
        for (surge, expected) in [
            (json!(0), vec![create(0)]),
            (json!(1), vec![create(0), create(1)]),
            (json!("50%"), vec![create(0), create(1)]),
        ] {
            let set = set(1, &surge);
            let pods = [leader(1), leader(2)];
            let pods: Vec<Pod> = pods
                .iter()
                .map(|pod| set.adopted(pod, JobGates::default()).expect("adopted"))
                .collect();
            assert_eq!(steps(&set, &[], &pods), expected, "{surge}");
        }
    }

    #[test]
    fn replicas_of_an_update_count_before_they_have_pods() {
        let create = |replica| ReconcileStep::CreateReplicaWorkload(replica);
        for (surge, updated, present, expected) in [
            (1, 0, 2, vec![create(0), create(1)]),
            (1, 0, 5, vec![create(0), create(1)]),
            (1, 0, 1, vec![create(0)]),
            (1, 1, 2, vec![create(0)]),
            (0, 0, 2, vec![create(0)]),
        ] {
            let status = json!({ "replicas": present, "updatedReplicas": updated });
            let mut object = set(1, &json!(surge)).to_create();
            object["status"] = status;
            object["metadata"]["uid"] = json!("u");
            let set = leader_worker_set::kind().decode(object).expect("a set decodes");
            assert_eq!(steps(&set, &[], &[]), expected, "{surge} {updated} {present}");
            if expected.len() == 2 {
                let both = [workload(&set, 0), workload(&set, 1)];
                assert_eq!(steps(&set, &both, &[]), [], "it stays until the update is over");
            }
        }
    }

    #[test]
    fn a_pod_joins_the_group_of_its_replica_once() {
        let (set, pod) = (set(1, &json!(0)), leader(0));
        let owned = [workload(&set, 0)];
        let [ReconcileStep::Job(JobStep::Adopt(adopted))] = &steps(&set, &owned, &[pod])[..] else {
            panic!("the pod is adopted")
        };
        let adopted = adopted.as_pod().expect("a pod").clone();
        let group = adopted.group(JobGates::default()).name.to_owned();
        assert_eq!(Some(group), owned[0].metadata.name);
        assert_eq!((adopted.group_total(), &*adopted.role()), (Some(3), "leader"));
        assert!(adopted.is_gated(), "its Workload starts it");
        assert_eq!(steps(&set, &owned, &[adopted]), []);
        // Without a StatefulSet it is none of the set's.
        let mut foreign = leader(0);
        foreign.metadata.owner_references = None;
        let ungated = set.adopted(&foreign, JobGates::default()).expect("a change");
        assert!(!ungated.is_gated() && ungated.group_total().is_none());
    }

    #[test]
    fn a_running_pod_keeps_its_queue() {
        let (before, gates) = (set(1, &json!(0)), JobGates::default());
        let mut member = before.adopted(&leader(0), gates).expect("it joins");
        let mut moved = before;
        let labels = moved.metadata_mut().labels.get_or_insert_default();
        labels.insert("kueue.x-k8s.io/queue-name".to_owned(), "other".to_owned());
        let waiting = moved.adopted(&member, gates).expect("a change");
        assert_eq!(waiting.queue_name(), "other");
        member.spec.rest.remove("schedulingGates");
        assert_eq!(moved.adopted(&member, gates), None, "the webhook would refuse it");
    }

    #[test]
    fn a_replica_gets_its_next_workload_when_the_pods_of_the_last_one_are_stopped() {
        let (set, gates) = (set(2, &json!(0)), JobGates::default());
        let mut pod = set.adopted(&leader(0), gates).expect("adopted");
        let create = |replica| ReconcileStep::CreateReplicaWorkload(replica);
        assert_eq!(steps(&set, &[], &[pod.clone()]), [create(0), create(1)]);
        pod.spec.rest.remove("schedulingGates");
        assert_eq!(steps(&set, &[], &[pod.clone()]), [create(1)]);
        pod.status.phase = "Failed".to_owned();
        assert_eq!(steps(&set, &[], &[pod]), [create(0), create(1)]);
    }

    #[test]
    fn a_leader_without_its_workers_waits_for_no_replacement() {
        let (set, gates) = (set(1, &json!(0)), JobGates::default());
        let mut leader = set.adopted(&leader(0), gates).expect("adopted");
        let annotations = leader.metadata.annotations.get_or_insert_default();
        annotations.insert("kueue.x-k8s.io/pod-group-serving".to_owned(), "true".to_owned());
        leader.spec.rest.remove("schedulingGates");
        let workload = workload(&set, 0);
        let none = RoleComparison::NONE;
        assert_eq!(waiting_for_replacement(&[&leader], &workload, none, gates), None);
    }

    #[test]
    fn a_waiting_workload_follows_the_queue_of_its_set() {
        let before = set(1, &json!(0));
        let mut moved = before.clone();
        let labels = moved.metadata_mut().labels.get_or_insert_default();
        labels.insert("kueue.x-k8s.io/queue-name".to_owned(), "other".to_owned());
        let owned = [workload(&before, 0)];
        let (workload, queue_name) = (name(&owned[0]), "other".to_owned());
        let expected = ReconcileStep::Workload {
            name: workload,
            write: WorkloadStep::UpdateQueueName(queue_name),
        };
        assert_eq!(steps(&moved, &owned, &[]), [expected]);
    }
}
