//! Which members of a group stand for its pod sets, which are too many, and which are replaced (docs/reference/kueue.md §7.9).

use std::{borrow::Cow, cmp::Reverse, collections::BTreeMap};

use crds::v1beta2::PodSet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::pods::Pod;

/// Creation and name.
type Age<'a> = (Option<&'a Time>, Option<&'a str>);

/// The members of a group by what they are to its Workload.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Members<'a> {
    /// Members that count for a pod set.
    pub(super) kept: Vec<&'a Pod>,
    /// Active members beyond the count of their pod set.
    pub(super) excess: Vec<&'a Pod>,
    /// Inactive members for which there are active ones, and those of a serving group that only their finalizer keeps.
    pub(super) replaced: Vec<&'a Pod>,
}

/// Assigns members to the pod sets of a Workload. A member of another role is none of these: it waits.
///
/// `is_held` says of a member whether it keeps its gate, because it requests more than its role.
pub(super) fn assign<'a>(
    pods: &[&'a Pod],
    pod_sets: &[PodSet],
    is_held: &dyn Fn(&Pod) -> bool,
) -> Members<'a> {
    let mut of_role: BTreeMap<Cow<'a, str>, Vec<&'a Pod>> = BTreeMap::new();
    for pod in pods {
        of_role.entry(pod.role()).or_default().push(pod);
    }
    let mut members = Members::default();
    for set in pod_sets {
        let pods = of_role.remove(set.name.as_str()).unwrap_or_default();
        assign_role(pods, expected(set), is_held, &mut members);
    }
    members
}

/// Whether a pod set has fewer active members than pods. One that keeps its gate is none.
pub(super) fn is_any_absent(
    pods: &[&Pod],
    pod_sets: &[PodSet],
    is_held: &dyn Fn(&Pod) -> bool,
) -> bool {
    pod_sets.iter().any(|set| {
        let active =
            |pod: &&&Pod| pod.is_runnable_or_succeeded() && pod.role() == set.name && !is_held(pod);
        pods.iter().filter(active).take(expected(set)).count() < expected(set)
    })
}

/// The number of pods of a pod set.
fn expected(set: &PodSet) -> usize {
    usize::try_from(set.count.unwrap_or(1)).unwrap_or(0)
}

fn assign_role<'a>(
    pods: Vec<&'a Pod>,
    count: usize,
    is_held: &dyn Fn(&Pod) -> bool,
    members: &mut Members<'a>,
) {
    let (mut active, mut inactive): (Vec<&Pod>, Vec<&Pod>) =
        pods.into_iter().partition(|pod| pod.is_runnable_or_succeeded());
    members.replaced.extend(inactive.extract_if(.., |pod| pod.has_served()));
    // A sort of thousands of members costs more than all else here, and decides nothing unless some of them leave.
    if active.len() > count {
        sort_active(&mut active);
        // One that cannot start takes no place of one that can.
        active.sort_by_cached_key(|pod| is_held(pod));
        members.excess.extend(active.split_off(count));
    }
    // An inactive member is the history of its role until another one stands in for it.
    let n_pods = active.len() + inactive.len();
    let n_replaced = n_pods.saturating_sub(count).min(inactive.len());
    if n_replaced > 0 {
        sort_inactive(&mut inactive);
        members.replaced.extend(inactive.split_off(inactive.len() - n_replaced));
    }
    members.kept.extend(active);
    members.kept.extend(inactive);
}

/// The first ones are kept: with a finalizer, without a gate, the oldest.
pub(super) fn sort_active(pods: &mut [&Pod]) {
    pods.sort_by_key(|pod| active_order(pod));
}

/// The order of [`sort_active`].
pub(super) fn active_order(pod: &Pod) -> (bool, bool, Age<'_>) {
    (!pod.has_finalizer(), pod.is_gated(), age(pod))
}

/// The last ones are replaced first: those without a finalizer, those that are being deleted, and those that have been inactive the
/// longest. A failed pod keeps its history longer than one that only waits to go.
fn sort_inactive(pods: &mut [&Pod]) {
    pods.sort_by_key(|pod| {
        (!pod.has_finalizer(), pod.is_deleting(), Reverse(pod.last_active()), age(pod))
    });
}

/// Orders by creation. Times have a precision of seconds, so that the name decides between equal ones.
pub(super) fn age(pod: &Pod) -> Age<'_> {
    (pod.metadata.creation_timestamp.as_ref(), pod.metadata.name.as_deref())
}
