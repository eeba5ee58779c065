//! What makes a pod of a set a member of a group.

use crds::names::{
    MANAGED,
    annotations::{POD_GROUP_TOTAL_COUNT, ROLE_HASH},
    labels::{POD_GROUP_NAME, PREBUILT_WORKLOAD_NAME, QUEUE_NAME},
};

use crate::{JobGates, Pod};

/// The group that a pod joins, and what it is there.
pub(crate) struct Membership<'a> {
    /// Name of the group, and of its Workload.
    pub(crate) workload: String,
    /// Number of members.
    pub(crate) total: i64,
    /// Role of the pod.
    pub(crate) role: &'a str,
    /// The LocalQueue of pods that wait; empty for none.
    pub(crate) queue_name: &'a str,
}

impl Membership<'_> {
    /// The pod with this membership.
    pub(crate) fn of(self, pod: &Pod, gates: JobGates) -> Pod {
        let mut member = pod.clone();
        join(&mut member, &self.workload, gates);
        let annotations = member.metadata.annotations.get_or_insert_default();
        let labels = member.metadata.labels.get_or_insert_default();
        annotations.insert(POD_GROUP_TOTAL_COUNT.to_owned(), self.total.to_string());
        annotations.insert(ROLE_HASH.to_owned(), self.role.to_owned());
        // The watch of pods selects by it. Until then the pod is observed by the label of its set.
        labels.insert(MANAGED.to_owned(), "true".to_owned());
        // The webhook of pods refuses another queue for a pod that runs.
        if pod.is_gated() && !self.queue_name.is_empty() {
            labels.insert(QUEUE_NAME.to_owned(), self.queue_name.to_owned());
        }
        member
    }
}

/// Names the group of a member, and its Workload.
pub(super) fn join(member: &mut Pod, workload: &str, gates: JobGates) {
    let metadata = &mut member.metadata;
    let identifiers =
        if gates.identifier_annotations { &mut metadata.annotations } else { &mut metadata.labels };
    let identifiers = identifiers.get_or_insert_default();
    for key in [POD_GROUP_NAME, PREBUILT_WORKLOAD_NAME] {
        identifiers.insert(key.to_owned(), workload.to_owned());
    }
}
