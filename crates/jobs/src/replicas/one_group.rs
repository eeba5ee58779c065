//! A set whose pods are one group with one Workload (docs/reference/kueue.md §7.8).
//!
//! ```text
//! pods > 0   create ──> follow: gates, queue; another number of pods: update, or delete if quota is reserved
//! pods = 0   hold, once no pod runs ──> pods > 0: update the number, end the hold
//! ```

use crds::{
    meta::is_deleting,
    names::{RESOURCE_IN_USE_FINALIZER, annotations::ROLE_HASH},
    v1beta2::{Workload, WorkloadSpec},
};
use jiff::Timestamp;

use super::{SetContext, follow_queue, is_owned_by, membership, set_workload, take_over};
use crate::{
    GenericJob, JobGates, Pod,
    construct_workload::{KeysToCopy, WorkloadPriority, workload_name_for},
    pods::group::is_group_workload,
    reconcile::{JobStep, ReconcileStep, WorkloadStep, create, follow_gates, name},
    workload_name::{WorkloadOwner, workload_name},
};

/// Name of the group of a set, and of its Workload.
fn group_workload_name<J: GenericJob>(set: &J, gates: JobGates) -> String {
    workload_name_for(set, gates)
}

/// The name that earlier versions of Kueue give to the Workload of a set: it does not depend on the uid.
pub(super) fn former_name<J: GenericJob>(set: &J, gates: JobGates) -> String {
    let name = set.metadata().name.as_deref().unwrap_or_default();
    let (kind, group) = (set.kind().name(), set.kind().group());
    workload_name(WorkloadOwner { kind, group, name, uid: "", part: None }, gates.short_names)
}

/// The Workload of a set among these: that of its name, or one that an earlier version of Kueue has made. Deleting that one would stop
/// the pods of the set.
pub(super) fn workload_of<'a, J: GenericJob>(
    set: &J,
    workloads: &[&'a Workload],
    gates: JobGates,
) -> Option<&'a Workload> {
    let named = |wanted: String| workloads.iter().copied().find(|one| name(one) == wanted);
    let former = || named(former_name(set, gates)).filter(|one| may_be_of(one, set));
    named(group_workload_name(set, gates)).or_else(former)
}

/// Whether a Workload of the former name is that of this set. One of an earlier set of the name is left to the garbage collector.
fn may_be_of<J: GenericJob>(workload: &Workload, set: &J) -> bool {
    let mut owners = workload.metadata.owner_references.iter().flatten();
    let is_free = !owners.any(|owner| set.kind().is_kind_of(&owner.api_version, &owner.kind));
    is_owned_by(workload, set) || (is_free && is_group_workload(workload))
}

/// A pod as a member of the group of this Workload, or of the next one; `None` if it is that already.
pub(super) fn adopted<J: GenericJob>(
    set: &J,
    pod: &Pod,
    workload: Option<&Workload>,
    gates: JobGates,
) -> Option<Pod> {
    let mut member = set.adopted(pod, gates)?;
    if let Some(workload) = workload {
        membership::join(&mut member, &name(workload), gates);
    }
    let is_former = |one: &&Workload| name(one) != group_workload_name(set, gates);
    if let Some(role) = workload.filter(is_former).and_then(|former| role_in(former, pod)) {
        let annotations = member.metadata.annotations.get_or_insert_default();
        annotations.insert(ROLE_HASH.to_owned(), role.to_owned());
    }
    (member != *pod).then_some(member)
}

/// The role of a pod in a former Workload, which an earlier version of Kueue may have named by a hash: without a role of its pod sets
/// the pod would be none of its members.
fn role_in<'w>(former: &'w Workload, pod: &'w Pod) -> Option<&'w str> {
    let sets = &former.spec.pod_sets;
    let own = pod.annotation(ROLE_HASH).filter(|role| sets.iter().any(|set| set.name == *role));
    let only = || match &sets[..] {
        [only] => Some(only.name.as_str()),
        _ => None,
    };
    own.or_else(only)
}

/// Constructs the Workload of the group of a set.
pub fn one_workload<J: GenericJob>(
    set: &J,
    priority: WorkloadPriority,
    copied: &KeysToCopy,
    gates: JobGates,
) -> Workload {
    let name = group_workload_name(set, gates);
    let mut workload = set_workload(set, name, priority, copied, gates);
    // It keeps the quota of a deleted Workload until the pods are gone.
    workload.metadata.finalizers = Some(vec![RESOURCE_IN_USE_FINALIZER.to_owned()]);
    workload
}

/// The next steps of a set that asks for `size` pods.
pub(super) fn reconcile<J: GenericJob + From<Pod>>(
    set: &J,
    size: u32,
    context: SetContext<'_>,
) -> Vec<ReconcileStep<J>> {
    let SetContext { workloads, pods, gates, now } = context;
    let own = workload_of(set, workloads, gates);
    let is_other = |one: &&&Workload| own.is_none_or(|own| name(own) != name(one));
    let is_former = |one: &Workload| name(one) == former_name(set, gates) && may_be_of(one, set);
    let others = workloads.iter().filter(is_other);
    let others = others.filter(|other| is_owned_by(other, set) || is_former(other));
    let others = others.filter(|other| !is_deleting(&other.metadata));
    let mut steps: Vec<ReconcileStep<J>> =
        others.map(|other| WorkloadStep::Delete.of(other)).collect();
    // The pods of a Workload that is being deleted go first. New ones wait for the next Workload.
    if own.is_some_and(|workload| is_deleting(&workload.metadata)) {
        return steps;
    }
    // Also without pods: its changes concern the set from now on.
    steps.extend(own.and_then(|workload| take_over(set, workload)));
    let adopted = pods.iter().filter_map(|pod| adopted(set, pod, own, gates));
    steps.extend(adopted.map(|pod| ReconcileStep::Job(JobStep::Adopt(Box::new(J::from(pod))))));
    let runs = runs_until(pods, now, gates).is_some();
    match own {
        // Pods that run have the flavors of a former Workload.
        None => steps.extend((size > 0 && !runs).then(|| create(set, gates))),
        Some(workload) if size == 0 => steps.extend(rest(set, workload, runs)),
        Some(workload) if workload.is_finished() => {}
        Some(workload) => steps.extend(serve(set, workload, size, gates)),
    }
    steps
}

/// Until when pods of a set hold its quota: `None` if none does. A pod that is being deleted counts for its grace period only, as in
/// any group.
pub fn runs_until(pods: &[&Pod], now: Timestamp, gates: JobGates) -> Option<Timestamp> {
    let running = pods.iter().filter(|pod| !pod.is_gated() && !pod.is_terminated());
    running.filter_map(|pod| pod.runs_until(now, gates)).max()
}

/// What becomes of the Workload of a set without pods.
fn rest<J: GenericJob>(set: &J, workload: &Workload, runs: bool) -> Option<ReconcileStep<J>> {
    if workload.is_finished() {
        // The set may come back.
        return Some(WorkloadStep::Delete.of(workload));
    }
    let reserved = workload.has_quota_reservation();
    if !workload.is_active() {
        // It is evicted, and waits for its activation and not for pods.
        let releases = reserved && workload.is_evicted() && !runs;
        return releases.then(|| WorkloadStep::ReleaseQuota.of(workload));
    }
    let is_settled = !reserved && workload.status.is_on_hold();
    (!is_settled && !runs).then(|| {
        let kind = set.kind().name();
        WorkloadStep::Hold(format!("{kind} scaled to zero; workload on hold")).of(workload)
    })
}

/// What the Workload of a set with pods follows.
fn serve<J: GenericJob>(
    set: &J,
    workload: &Workload,
    size: u32,
    gates: JobGates,
) -> Vec<ReconcileStep<J>> {
    let counts = workload.spec.pod_sets.iter().map(|set| i64::from(set.count.unwrap_or(1)));
    if counts.sum::<i64>() != i64::from(size) {
        // Whatever went round the webhook: without quota the Workload keeps its place.
        return vec![if workload.has_quota_reservation() {
            WorkloadStep::Delete.of(workload)
        } else {
            let spec = WorkloadSpec { pod_sets: set.pod_sets(gates), ..workload.spec.clone() };
            ReconcileStep::UpdateWorkload(Box::new(Workload { spec, ..workload.clone() }))
        }];
    }
    if workload.status.is_on_hold() && workload.is_active() {
        return vec![WorkloadStep::EndHold.of(workload)];
    }
    // The priority stays that of the creation.
    let gates = follow_gates(set, workload, gates);
    gates.into_iter().chain(follow_queue(set, workload)).collect()
}

#[cfg(test)]
mod tests {
    use crds::names::conditions::FINISHED;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        JobObject, Kinds,
        replicas::tests::{reconciled, unreadable_template},
    };

    fn set(replicas: u32) -> JobObject {
        let object = json!({
            "metadata": {
                "name": "d", "namespace": "ns", "uid": "u",
                "labels": {
                    "kueue.x-k8s.io/queue-name": "main", "kueue.x-k8s.io/priority-class": "high",
                },
            },
            "spec": {
                "replicas": replicas,
                "template": { "spec": { "containers": [{ "name": "c" }] } },
            },
        });
        let kind = Kinds::built_in().of_framework("statefulset").expect("it is built in");
        kind.decode(object).expect("a set decodes")
    }

    /// The Workload of a set of two pods with this condition `QuotaReserved`.
    fn workload(reserved: (&str, &str)) -> Workload {
        let mut workload = one_workload(
            &set(2),
            WorkloadPriority::default(),
            &KeysToCopy::default(),
            JobGates::default(),
        );
        let (status, reason) = reserved;
        let condition = json!([{ "type": "QuotaReserved", "status": status, "reason": reason }]);
        workload.status.conditions = serde_json::from_value(condition).expect("conditions");
        workload
    }

    const RUNS: (&str, &str) = ("True", "QuotaReserved");
    const WAITS: (&str, &str) = ("False", "WaitingForQuota");
    const ON_HOLD: (&str, &str) = ("False", "OnHold");

    fn pod(fields: &Value) -> Pod {
        let mut pod = json!({
            "metadata": {
                "name": "d-0", "namespace": "ns",
                "annotations": { "kueue.x-k8s.io/pod-suspending-parent": "statefulset" },
            },
            "spec": { "schedulingGates": [{ "name": "kueue.x-k8s.io/admission" }] },
        });
        json_patch::merge(&mut pod, fields);
        serde_json::from_value(pod).expect("a pod decodes")
    }

    fn steps(
        replicas: u32,
        workload: Option<&Workload>,
        pods: &[Pod],
    ) -> Vec<ReconcileStep<JobObject>> {
        let (workloads, pods): (Vec<&Workload>, Vec<&Pod>) =
            (workload.into_iter().collect(), pods.iter().collect());
        reconciled(&set(replicas), &workloads, &pods)
    }

    #[test]
    fn a_set_with_a_topology_that_cannot_be_read_gets_no_workload() {
        let object = json!({
            "metadata": {
                "name": "d", "namespace": "ns", "uid": "u",
                "labels": { "kueue.x-k8s.io/queue-name": "main" },
            },
            "spec": { "replicas": 2, "template": unreadable_template() },
        });
        let kind = Kinds::built_in().of_framework("statefulset").expect("it is built in");
        let bad = kind.decode(object).expect("a set decodes");
        let steps = reconciled(&bad, &[], &[]);
        assert!(matches!(steps[..], [ReconcileStep::Refuse { .. }]), "{steps:?}");
    }

    fn name_of_workload() -> String {
        name(&workload(WAITS))
    }

    #[test]
    fn the_group_has_one_workload_which_keeps_its_quota_when_it_is_deleted() {
        assert_eq!(steps(2, None, &[]), [ReconcileStep::CreateWorkload]);
        assert_eq!(steps(0, None, &[]), []);
        assert_eq!(steps(2, Some(&workload(RUNS)), &[]), []);
        let text = json!(workload(RUNS));
        let annotations = &text["metadata"]["annotations"];
        assert_eq!(annotations["kueue.x-k8s.io/is-group-workload"], "true");
        assert_eq!(annotations.get("kueue.x-k8s.io/component-workload-index"), None);
        assert_eq!(text["metadata"]["finalizers"], json!(["kueue.x-k8s.io/resource-in-use"]));
        assert_eq!(text["metadata"]["ownerReferences"][0].get("controller"), None);
    }

    /// The Workload of the set as an earlier version of Kueue has made it.
    fn former() -> Workload {
        let mut workload = workload(RUNS);
        // printf 'StatefulSet\napps\nd\n' | sha1sum
        workload.metadata.name = Some("statefulset-d-84e49".to_owned());
        workload
    }

    #[test]
    fn a_set_keeps_the_workload_that_an_earlier_version_has_made() {
        let mut former = former();
        assert_eq!(steps(2, Some(&former), &[]), []);
        let [ReconcileStep::Job(JobStep::Adopt(member))] =
            &steps(2, Some(&former), &[pod(&json!({}))])[..]
        else {
            panic!("the pod joins")
        };
        let member = member.as_pod().expect("a pod").clone();
        let group = member.group(JobGates::default()).name;
        assert_eq!(Some(group), former.metadata.name.as_deref());
        assert_eq!(steps(2, Some(&former), std::slice::from_ref(&member)), [], "it is a member");
        former.metadata.owner_references = None;
        let [ReconcileStep::Workload { name, write: WorkloadStep::AddOwners(owners) }] =
            &steps(2, Some(&former), &[])[..]
        else {
            panic!("the Workload is taken over")
        };
        assert_eq!((Some(name), &*owners[0].uid), (former.metadata.name.as_ref(), "u"));
        // Not that of an earlier set of the name.
        let mut gone = owners.clone();
        gone[0].uid = "earlier".to_owned();
        former.metadata.owner_references = Some(gone);
        assert_eq!(steps(2, Some(&former), &[]), [ReconcileStep::CreateWorkload]);
    }

    #[test]
    fn pods_of_a_former_workload_keep_the_role_that_it_knows() {
        let mut former = former();
        former.spec.pod_sets[0].name = "1a2b3c4d".to_owned();
        let running = pod(&json!({
            "metadata": { "annotations": { "kueue.x-k8s.io/role-hash": "1a2b3c4d" } },
            "spec": { "schedulingGates": null },
        }));
        for pod in [running, pod(&json!({}))] {
            let adopts = steps(2, Some(&former), &[pod]);
            let [ReconcileStep::Job(JobStep::Adopt(member))] = &adopts[..] else {
                panic!("the pod joins")
            };
            let member = member.as_pod().expect("a pod").clone();
            assert_eq!(member.annotation(ROLE_HASH), Some("1a2b3c4d"));
            assert_eq!(steps(2, Some(&former), &[member]), [], "it is a member");
        }
    }

    #[test]
    fn a_set_without_pods_owns_a_former_workload_as_well() {
        let mut former = former();
        former.metadata.owner_references = None;
        let owned = steps(0, Some(&former), &[]);
        assert!(
            matches!(
                owned.first(),
                Some(ReconcileStep::Workload { write: WorkloadStep::AddOwners(_), .. })
            ),
            "{owned:?}"
        );
    }

    #[test]
    fn a_former_workload_beside_that_of_the_name_is_deleted() {
        let (former, workload) = (former(), workload(RUNS));
        let both = reconciled(&set(2), &[&former, &workload], &[]);
        assert_eq!(
            both,
            [ReconcileStep::Workload { name: name(&former), write: WorkloadStep::Delete }]
        );
        let mut free = former;
        free.metadata.owner_references = None;
        let both = reconciled(&set(2), &[&free, &workload], &[]);
        assert_eq!(
            both,
            [ReconcileStep::Workload { name: name(&free), write: WorkloadStep::Delete }],
            "no set owns it"
        );
    }

    #[test]
    fn a_set_that_is_scaled_to_zero_is_on_hold_once_no_pod_runs() {
        let hold = ReconcileStep::Workload {
            name: name_of_workload(),
            write: WorkloadStep::Hold("StatefulSet scaled to zero; workload on hold".to_owned()),
        };
        let running = pod(&json!({ "spec": { "schedulingGates": null } }));
        // The time is that of the epoch.
        let deleted = |seconds: u32, grace: u32| {
            let at = format!("1969-12-31T23:59:{seconds}Z");
            let metadata = json!({ "deletionTimestamp": at, "deletionGracePeriodSeconds": grace });
            pod(&json!({ "metadata": metadata, "spec": { "schedulingGates": null } }))
        };
        for (reserved, pods, expected) in [
            (RUNS, vec![running], vec![]),
            (RUNS, vec![deleted(50, 30)], vec![]),
            (RUNS, vec![deleted(20, 30)], vec![hold.clone()]),
            (RUNS, vec![], vec![hold.clone()]),
            (WAITS, vec![pod(&json!({}))], vec![hold]),
            (ON_HOLD, vec![], vec![]),
        ] {
            assert_eq!(steps(0, Some(&workload(reserved)), &pods), expected, "{reserved:?}");
        }
    }

    #[test]
    fn an_inactive_workload_is_released_and_not_put_on_hold() {
        let running = pod(&json!({ "spec": { "schedulingGates": null } }));
        let inactive = |reserved, evicted: bool| {
            let mut workload = workload(reserved);
            workload.spec.active = Some(false);
            let condition = json!({ "type": "Evicted", "status": "True", "reason": "Deactivated" });
            let condition = serde_json::from_value(condition).expect("a condition");
            workload.status.conditions.extend(evicted.then_some(condition));
            workload
        };
        let release =
            ReconcileStep::Workload { name: name_of_workload(), write: WorkloadStep::ReleaseQuota };
        let released = ("False", "Deactivated");
        for (reserved, evicted, pods, expected) in [
            (RUNS, false, vec![], vec![]),
            (RUNS, true, vec![running], vec![]),
            (RUNS, true, vec![], vec![release]),
            (released, true, vec![], vec![]),
            (WAITS, false, vec![], vec![]),
        ] {
            let workload = inactive(reserved, evicted);
            assert_eq!(steps(0, Some(&workload), &pods), expected, "{reserved:?} {evicted}");
        }
        assert_eq!(steps(2, Some(&inactive(ON_HOLD, false)), &[]), [], "it stays out of its queue");
    }

    #[test]
    fn a_set_comes_back_with_any_number_of_pods() {
        let end =
            ReconcileStep::Workload { name: name_of_workload(), write: WorkloadStep::EndHold };
        assert_eq!(steps(2, Some(&workload(ON_HOLD)), &[]), [end]);
        let held = workload(ON_HOLD);
        let [ReconcileStep::UpdateWorkload(updated)] = &steps(3, Some(&held), &[])[..] else {
            panic!("the Workload follows the number of pods")
        };
        assert_eq!(updated.spec.pod_sets[0].count, Some(3));
        assert_eq!(updated.spec.queue_name, "main");
        let mut finished = workload(ON_HOLD);
        finished.status.conditions[0].r#type = FINISHED.to_owned();
        finished.status.conditions[0].status = "True".to_owned();
        let delete =
            ReconcileStep::Workload { name: name_of_workload(), write: WorkloadStep::Delete };
        assert_eq!(steps(0, Some(&finished), &[]), [delete], "the end does not bar the way");
    }

    #[test]
    fn a_set_with_pods_of_another_parent_gets_no_workload() {
        let mut object = set(2).to_create();
        object["metadata"]["uid"] = json!("u");
        let parent = json!({ "kueue.x-k8s.io/pod-suspending-parent": "example.com/other" });
        object["spec"]["template"]["metadata"] = json!({ "annotations": parent });
        let kind = Kinds::built_in().of_framework("statefulset").expect("it is built in");
        let set: JobObject = kind.decode(object).expect("a set decodes");
        assert_eq!(reconciled(&set, &[], &[]), []);
        let mut own = workload(RUNS);
        let delete =
            ReconcileStep::Workload { name: name_of_workload(), write: WorkloadStep::Delete };
        assert_eq!(reconciled(&set, &[&own], &[&pod(&json!({}))]), [delete], "pods stay");
        let mut finished = own.clone();
        let over = json!([{ "type": "Finished", "status": "True", "reason": "Succeeded" }]);
        finished.status.conditions = serde_json::from_value(over).expect("conditions");
        assert_eq!(reconciled(&set, &[&finished], &[]), []);
        own.metadata.owner_references = None;
        assert_eq!(reconciled(&set, &[&own], &[]), [], "another program's");
    }

    #[test]
    fn a_scale_round_the_webhook_makes_a_new_workload() {
        let delete =
            ReconcileStep::Workload { name: name_of_workload(), write: WorkloadStep::Delete };
        assert_eq!(steps(4, Some(&workload(RUNS)), &[]), [delete]);
        let update = steps(4, Some(&workload(WAITS)), &[]);
        assert!(matches!(update[..], [ReconcileStep::UpdateWorkload(_)]));
        // The pods of the former Workload are stopped first.
        let members = |pod: Pod| {
            let member = set(4).adopted(&pod, JobGates::default());
            steps(4, None, &[member.expect("it joins")])
        };
        assert_eq!(members(pod(&json!({ "spec": { "schedulingGates": null } }))), []);
        assert_eq!(members(pod(&json!({}))), [ReconcileStep::CreateWorkload]);
    }

    #[test]
    fn held_pods_join_until_the_workload_is_deleted() {
        let adopts = |workload: &Workload, pod: Pod| {
            let steps = steps(2, Some(workload), &[pod]);
            steps.iter().any(|step| matches!(step, ReconcileStep::Job(JobStep::Adopt(_))))
        };
        assert!(adopts(&workload(RUNS), pod(&json!({}))));
        let other = json!({ "metadata": { "annotations": {
            "kueue.x-k8s.io/pod-suspending-parent": "leaderworkerset.x-k8s.io/leaderworkerset",
        } } });
        assert!(!adopts(&workload(RUNS), pod(&other)), "another set holds it");
        let mut deleted = workload(RUNS);
        deleted.metadata.deletion_timestamp =
            serde_json::from_value(json!("2026-01-01T00:00:00Z")).ok();
        assert!(!adopts(&deleted, pod(&json!({}))), "it would be stopped at once");
    }

    #[test]
    fn a_member_keeps_the_class_that_it_joined_with() {
        let class = "kueue.x-k8s.io/priority-class";
        let member = set(2).adopted(&pod(&json!({})), JobGates::default()).expect("it joins");
        assert_eq!(member.label(class), Some("high"));
        assert_eq!(set(2).adopted(&member, JobGates::default()), None);
        let mut unlabelled = member;
        unlabelled.metadata.labels.get_or_insert_default().remove(class);
        assert_eq!(set(2).adopted(&unlabelled, JobGates::default()), None);
        let grown = set(3).adopted(&unlabelled, JobGates::default()).expect("another total");
        assert_eq!((grown.group_total(), grown.label(class)), (Some(3), None));
    }
}
