//! The Workload of a group (docs/reference/kueue.md §7.9).

use std::{borrow::Cow, collections::BTreeMap};

use crds::{
    names::{
        RESOURCE_IN_USE_FINALIZER,
        annotations::{IS_GROUP_WORKLOAD, POD_GROUP_TOTAL_COUNT},
        labels::POD_GROUP_POD_INDEX,
    },
    v1beta2::{MAX_POD_SETS, PodSet, Workload},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::{
    members::{active_order, age, sort_active},
    role_requests::RoleComparison,
};
use crate::{
    GenericJob, JobGates,
    construct_workload::{
        KeysToCopy, PrioritySource, WorkloadPriority, annotations, priority_source_among,
        workload_spec,
    },
    go_parse,
    pods::Pod,
    topology_request,
};

/// Why a group has no Workload yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComposeError {
    /// Members are missing.
    #[error("'{group}' group has fewer runnable pods than expected")]
    Incomplete {
        /// The group.
        group: String,
    },
    /// Members do not agree about the number of members.
    #[error(
        "pods '{first}' and '{second}' of group '{group}' have different values of '{POD_GROUP_TOTAL_COUNT}'"
    )]
    Totals {
        /// The group.
        group: String,
        /// A member.
        first: String,
        /// One that differs from it.
        second: String,
    },
    /// Members have different values of a label or annotation that is copied to the Workload.
    #[error("pods '{first}' and '{second}' of group '{group}' have different values of '{key}'")]
    Keys {
        /// The group.
        group: String,
        /// The key.
        key: String,
        /// A member.
        first: String,
        /// One that differs from it.
        second: String,
    },
    /// The index of a member is none of the group.
    #[error(
        "pod '{pod}' of group '{group}' has no valid value of '{POD_GROUP_POD_INDEX}': expected 0 to {}",
        total - 1
    )]
    Index {
        /// The group.
        group: String,
        /// The pod.
        pod: String,
        /// The number of members.
        total: i64,
    },
    /// Members of a role of which none requests at least as much as every other one.
    #[error(
        "pods '{first}' and '{second}' of group '{group}' have the role '{role}', but neither requests at least as much as the other"
    )]
    Requests {
        /// The group.
        group: String,
        /// The role.
        role: String,
        /// A member.
        first: String,
        /// One that requests more of another resource.
        second: String,
    },
    /// Members are in different queues.
    #[error("pods '{first}' and '{second}' of group '{group}' have different queue names")]
    Queues {
        /// The group.
        group: String,
        /// A member.
        first: String,
        /// One that differs from it.
        second: String,
    },
    /// Members have too many roles.
    #[error("group '{group}' has {n_roles} roles; at most {MAX_POD_SETS} are possible")]
    Roles {
        /// The group.
        group: String,
        /// Their number.
        n_roles: usize,
    },
    /// The topology annotations of the pod of a role cannot be read.
    #[error("pod '{pod}' of group '{group}' has no valid topology: {problem}")]
    Topology {
        /// The group.
        group: String,
        /// The pod.
        pod: String,
        /// The annotation, and why.
        problem: String,
    },
    /// The annotation with the number of members is missing or no positive number.
    #[error("pod '{pod}' of group '{group}' has no valid value of '{POD_GROUP_TOTAL_COUNT}'")]
    NoTotal {
        /// The group.
        group: String,
        /// The pod.
        pod: String,
    },
}

/// The pods that a group is composed of, and those beyond its total.
#[derive(Debug, PartialEq)]
pub struct Composition<'a> {
    /// Pod sets, in the order of their roles.
    pub pod_sets: Vec<PodSet>,
    /// Members that become owners of the Workload.
    pub members: Vec<&'a Pod>,
    /// Members beyond the total.
    pub excess: Vec<&'a Pod>,
}

/// Composes a group of its runnable and succeeded members.
///
/// # Errors
/// If members are missing or contradict each other. The next change of a member may mend that.
pub fn compose<'a>(
    group: &str,
    pods: &[&'a Pod],
    comparison: RoleComparison<'_>,
    gates: JobGates,
) -> Result<Composition<'a>, ComposeError> {
    let mut active: Vec<&Pod> =
        pods.iter().copied().filter(|pod| pod.is_runnable_or_succeeded()).collect();
    let incomplete = || ComposeError::Incomplete { group: group.to_owned() };
    // The others are compared with the oldest, so that the order of the watch does not decide about the error.
    let oldest = active.iter().copied().min_by_key(|pod| age(pod)).ok_or_else(incomplete)?;
    let Some(total) = oldest.group_total() else {
        return Err(ComposeError::NoTotal { group: group.to_owned(), pod: name(oldest) });
    };
    let n_members = usize::try_from(total).unwrap_or(usize::MAX);
    let is_incomplete = active.len() < n_members;
    // Members that are missing are named before members that contradict each other.
    if is_incomplete && !oldest.wants_fast_admission() {
        return Err(incomplete());
    }
    check_agreement(group, oldest, &active)?;
    check_indices(group, total, &active)?;
    // Not before: a group of thousands is looked at with each of its first members, and the sort costs more than all else here.
    sort_active(&mut active);
    if is_incomplete {
        // The role of the first pod is that of all of them.
        let of_role = by_role(&active).remove(&oldest.role()).unwrap_or_default();
        let pod = covering(group, &of_role, comparison, gates)?.unwrap_or(oldest);
        let count = i32::try_from(n_members).unwrap_or(i32::MAX);
        check_topology(group, pod, gates)?;
        let pod_sets = vec![pod.pod_set(&pod.role(), count, gates)];
        return Ok(Composition { pod_sets, members: active, excess: Vec::new() });
    }
    // In the order of `sort_active`: members with a finalizer, without a gate, and the oldest ones stay.
    let excess = active.split_off(n_members);
    let of_role = by_role(&active);
    if of_role.len() > MAX_POD_SETS {
        let n_roles = of_role.len();
        return Err(ComposeError::Roles { group: group.to_owned(), n_roles });
    }
    let mut pod_sets = Vec::new();
    for (role, pods) in of_role {
        let Some(pod) = covering(group, &pods, comparison, gates)? else {
            continue;
        };
        check_topology(group, pod, gates)?;
        let count = i32::try_from(pods.len()).unwrap_or(i32::MAX);
        pod_sets.push(pod.pod_set(&role, count, gates));
    }
    Ok(Composition { pod_sets, members: active, excess })
}

/// The pod that gives its role the template: the oldest one, unless another one requests more. Quota is that of the template, and no pod
/// may need more.
fn covering<'a>(
    group: &str,
    pods: &[&'a Pod],
    comparison: RoleComparison<'_>,
    gates: JobGates,
) -> Result<Option<&'a Pod>, ComposeError> {
    let Some(oldest) = super::oldest(pods) else {
        return Ok(None);
    };
    let set_of = |pod: &Pod| pod.pod_set(&pod.role(), 1, gates);
    let (mut covering, mut set) = (oldest, set_of(oldest));
    for &pod in pods {
        if comparison.exceeds(pod, &set, gates) {
            (covering, set) = (pod, set_of(pod));
        }
    }
    // The oldest one covers all of them if none exceeded it.
    let left = (!std::ptr::eq(covering, oldest))
        .then(|| pods.iter().find(|pod| comparison.exceeds(pod, &set, gates)))
        .flatten();
    left.map_or(Ok(Some(covering)), |other| {
        let (group, role) = (group.to_owned(), covering.role().into_owned());
        Err(ComposeError::Requests { group, role, first: name(covering), second: name(other) })
    })
}

fn by_role<'a>(pods: &[&'a Pod]) -> BTreeMap<Cow<'a, str>, Vec<&'a Pod>> {
    let mut of_role: BTreeMap<Cow<'_, str>, Vec<&Pod>> = BTreeMap::new();
    for &pod in pods {
        of_role.entry(pod.role()).or_default().push(pod);
    }
    of_role
}

/// The pod that a pod set has its template from has a topology that can be read, if any.
fn check_topology(group: &str, pod: &Pod, gates: JobGates) -> Result<(), ComposeError> {
    topology_request::problem(pod, gates).map_or(Ok(()), |problem| {
        Err(ComposeError::Topology { group: group.to_owned(), pod: name(pod), problem })
    })
}

/// Compares members with one of them. The first that differs is named, in the order of `sort_active`.
fn check_agreement(group: &str, one: &Pod, pods: &[&Pod]) -> Result<(), ComposeError> {
    let other_queue = |pod: &Pod| pod.queue_name() != one.queue_name();
    let other_total =
        |pod: &Pod| pod.annotation(POD_GROUP_TOTAL_COUNT) != one.annotation(POD_GROUP_TOTAL_COUNT);
    let differing = pods.iter().filter(|pod| other_queue(pod) || other_total(pod));
    let Some(other) = differing.min_by_key(|pod| active_order(pod)) else {
        return Ok(());
    };
    let (group, first, second) = (group.to_owned(), name(one), name(other));
    Err(if other_queue(other) {
        ComposeError::Queues { group, first, second }
    } else {
        ComposeError::Totals { group, first, second }
    })
}

/// The index of a member, if it has one, is below the number of members. An empty one counts as none: the webhook writes it for a
/// pod without the label that its annotation names.
fn check_indices(group: &str, total: i64, pods: &[&Pod]) -> Result<(), ComposeError> {
    let members = u64::try_from(total).unwrap_or_default();
    let is_valid = |index: &str| go_parse::unsigned(index).is_some_and(|index| index < members);
    let is_invalid = |pod: &&Pod| {
        let index = pod.label(POD_GROUP_POD_INDEX).filter(|index| !index.is_empty());
        !index.is_none_or(is_valid)
    };
    let first = pods.iter().copied().filter(is_invalid).min_by_key(|pod| age(pod));
    first.map_or(Ok(()), |pod| {
        Err(ComposeError::Index { group: group.to_owned(), pod: name(pod), total })
    })
}

impl Composition<'_> {
    /// The composition, if no two members have different values of a key that is copied to their Workload.
    pub(super) fn agreeing_about(
        self,
        copied: &KeysToCopy,
        group: &str,
    ) -> Result<Self, ComposeError> {
        self.copied_labels(copied, group)?;
        self.copied_annotations(copied, group)?;
        Ok(self)
    }

    fn copied_labels(
        &self,
        copied: &KeysToCopy,
        group: &str,
    ) -> Result<BTreeMap<String, String>, ComposeError> {
        self.copied_values(group, copied, copied.labels(), |pod, key| pod.label(key))
    }

    fn copied_annotations(
        &self,
        copied: &KeysToCopy,
        group: &str,
    ) -> Result<BTreeMap<String, String>, ComposeError> {
        self.copied_values(group, copied, copied.annotations(), |pod, key| pod.annotation(key))
    }

    /// The value of each key, which some members may lack. A key that only metrics ask for is left out where members differ.
    fn copied_values<'k>(
        &self,
        group: &str,
        all: &KeysToCopy,
        keys: impl Iterator<Item = &'k String>,
        value: impl for<'p> Fn(&'p Pod, &str) -> Option<&'p str>,
    ) -> Result<BTreeMap<String, String>, ComposeError> {
        let mut copied = BTreeMap::new();
        for key in keys {
            let mut with_key = self.members.iter().filter(|pod| value(pod, key).is_some());
            let Some(first) = with_key.next() else {
                continue;
            };
            let wanted = value(first, key);
            if let Some(other) = with_key.find(|pod| value(pod, key) != wanted) {
                if all.measured.contains(key) {
                    continue;
                }
                let (group, key) = (group.to_owned(), key.clone());
                let (first, second) = (name(first), name(other));
                return Err(ComposeError::Keys { group, key, first, second });
            }
            copied.extend(wanted.map(|wanted| (key.clone(), wanted.to_owned())));
        }
        Ok(copied)
    }
}

/// Source of the priority of a group: the class of Workloads of the oldest member, or else the class of pods of the first pod set
/// that has one.
#[must_use]
pub fn priority_source(
    group: &str,
    pods: &[&Pod],
    comparison: RoleComparison<'_>,
    gates: JobGates,
) -> PrioritySource {
    let composed = || compose(group, pods, comparison, gates);
    let pod_sets = || composed().map(|one| one.pod_sets).unwrap_or_default();
    let oldest = pods.iter().min_by_key(|pod| age(pod));
    oldest.map_or(PrioritySource::ClusterDefault, |pod| priority_source_among(*pod, pod_sets))
}

/// Constructs the Workload of a composed group. Its priority and time limit are those of the first member.
#[must_use]
pub fn group_workload(
    group: &str,
    composition: &Composition<'_>,
    priority: WorkloadPriority,
    copied: &KeysToCopy,
    gates: JobGates,
) -> Option<Workload> {
    let first = composition.members.iter().min_by_key(|pod| age(pod))?;
    // Keys to be copied are left out here: they come from all members (docs/reference/kueue.md §7.9).
    let mut annotations = annotations(*first, &KeysToCopy::default(), gates);
    annotations.insert(IS_GROUP_WORKLOAD.to_owned(), "true".to_owned());
    annotations.extend(composition.copied_annotations(copied, group).ok()?);
    let labels = composition.copied_labels(copied, group).ok()?;
    Some(Workload {
        metadata: ObjectMeta {
            name: Some(group.to_owned()),
            namespace: first.metadata.namespace.clone(),
            labels: Some(labels).filter(|labels| !labels.is_empty()),
            annotations: Some(annotations),
            finalizers: Some(vec![RESOURCE_IN_USE_FINALIZER.to_owned()]),
            owner_references: Some(owner_references(&composition.members)),
            ..ObjectMeta::default()
        },
        spec: workload_spec(*first, composition.pod_sets.clone(), priority),
        ..Workload::default()
    })
}

/// Every member owns the Workload and none controls it: it goes when the last one is gone.
pub(crate) fn owner_references(members: &[&Pod]) -> Vec<OwnerReference> {
    let mut members = members.to_vec();
    // The order of the watch must not make a difference between two lists of owners.
    members.sort_by_key(|pod| pod.metadata.name.as_deref());
    let references = members.into_iter().map(|pod| OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        name: name(pod),
        uid: pod.metadata.uid.clone().unwrap_or_default(),
        controller: None,
        block_owner_deletion: None,
    });
    references.collect()
}

fn name(pod: &Pod) -> String {
    pod.metadata.name.clone().unwrap_or_default()
}
