//! The ungater of elastic jobs: which gated pods may start with the quota of a workload slice (docs/reference/kueue.md §4.13).
//!
//! A slice grants its pod sets a number of pods. Pods without the gate use the grant, whichever slice let them start; what is
//! left goes to gated pods in the order of their names.

use std::collections::BTreeMap;

use crds::{
    names::annotations::{ELASTIC_JOB, WORKLOAD_SLICE_NAME, WORKLOAD_SLICE_REPLACEMENT_FOR},
    v1beta2::Workload,
};

/// A pod of an elastic job that has not ended.
#[derive(Clone, Copy, Debug)]
pub struct ElasticPod<'a> {
    /// Its name.
    pub name: &'a str,
    /// Name of its pod set.
    pub pod_set: &'a str,
    /// It has the gate of elastic jobs.
    pub gated: bool,
    /// It is being deleted.
    pub deleting: bool,
}

/// The slice of a chain that grants pods: the admitted one that no other admitted one replaces, of several the latest. An evicted one
/// neither grants nor replaces, because its pods end.
#[must_use]
pub fn granting_slice<'a>(slices: &[&'a Workload]) -> Option<&'a Workload> {
    let admitted: Vec<&Workload> = slices.iter().copied().filter(|one| one.runs()).collect();
    let is_replaced = |old: &Workload| admitted.iter().any(|one| replaces(one, old));
    let last = admitted.iter().copied().filter(|one| !is_replaced(one));
    last.max_by_key(|one| {
        (one.metadata.creation_timestamp.as_ref().map(|time| time.0), &one.metadata.uid)
    })
}

/// The name of the chain of slices that an elastic Workload is of, which its pods carry. One that was made without slices is alone.
#[must_use]
pub fn chain_of(workload: &Workload) -> Option<&str> {
    let annotations = workload.metadata.annotations.as_ref()?;
    let alone =
        || workload.metadata.name.as_ref().filter(|_| annotations.contains_key(ELASTIC_JOB));
    annotations.get(WORKLOAD_SLICE_NAME).or_else(alone).map(String::as_str)
}

/// The pods that start now, by their index.
#[must_use]
pub fn pods_to_start(slice: &Workload, pods: &[ElasticPod<'_>]) -> Vec<usize> {
    let mut left = granted(slice);
    for pod in pods.iter().filter(|pod| !pod.gated) {
        // A pod that is being deleted still uses its share.
        if let Some(left) = left.get_mut(pod.pod_set) {
            *left -= 1;
        }
    }
    let mut gated: Vec<usize> = (0..pods.len()).collect();
    gated.retain(|&at| pods[at].gated && !pods[at].deleting);
    gated.sort_by_key(|&at| pods[at].name);
    gated.retain(|&at| {
        let Some(left) = left.get_mut(pods[at].pod_set) else { return false };
        *left -= 1;
        *left >= 0
    });
    gated
}

/// Pods that a slice grants each pod set: those that it was admitted for, or fewer after it shrank.
fn granted(slice: &Workload) -> BTreeMap<&str, i32> {
    let assignments = slice.status.admission.iter().flat_map(|one| &one.pod_set_assignments);
    let admitted: BTreeMap<&str, Option<i32>> =
        assignments.map(|one| (one.name.as_str(), one.count)).collect();
    let sets = slice.spec.pod_sets.iter();
    sets.filter_map(|set| {
        let wanted = set.count.unwrap_or(1);
        let admitted = admitted.get(set.name.as_str())?;
        Some((set.name.as_str(), admitted.unwrap_or(wanted).min(wanted)))
    })
    .collect()
}

fn replaces(slice: &Workload, old: &Workload) -> bool {
    let annotations = slice.metadata.annotations.as_ref();
    let claim = annotations.and_then(|all| all.get(WORKLOAD_SLICE_REPLACEMENT_FOR));
    let name = old.metadata.name.as_deref().unwrap_or_default();
    let namespace = old.metadata.namespace.as_deref().unwrap_or_default();
    claim.is_some_and(|claim| claim.strip_prefix(namespace) == Some(&*format!("/{name}")))
}

#[cfg(test)]
mod tests {
    use crds::names::conditions::{ADMITTED, EVICTED, FINISHED};
    use serde_json::{Value, json};

    use super::*;

    fn slice(
        name: &str,
        replaces: Option<&str>,
        conditions: &[&str],
        counts: (i32, i32),
    ) -> Workload {
        let (wanted, admitted) = counts;
        let conditions: Vec<Value> =
            conditions.iter().map(|one| json!({ "type": one, "status": "True" })).collect();
        let mut annotations = json!({ WORKLOAD_SLICE_NAME: "first" });
        if let Some(old) = replaces {
            annotations[WORKLOAD_SLICE_REPLACEMENT_FOR] = json!(format!("ns/{old}"));
        }
        serde_json::from_value(json!({
            "metadata": { "name": name, "namespace": "ns", "annotations": annotations },
            "spec": { "podSets": [{ "name": "main", "count": wanted }] },
            "status": {
                "conditions": conditions,
                "admission": { "clusterQueue": "cq", "podSetAssignments": [
                    { "name": "main", "count": admitted },
                ] },
            },
        }))
        .expect("a Workload decodes")
    }

    fn pod(name: &str, gated: bool) -> ElasticPod<'_> {
        ElasticPod { name, pod_set: "main", gated, deleting: false }
    }

    fn started<'a>(slice: &Workload, pods: &[ElasticPod<'a>]) -> Vec<&'a str> {
        pods_to_start(slice, pods).into_iter().map(|at| pods[at].name).collect()
    }

    #[test]
    fn gated_pods_start_in_the_order_of_names_as_far_as_granted() {
        let three = slice("a", None, &[ADMITTED], (3, 3));
        let pods = [pod("d", true), pod("b", true), pod("c", true), pod("a", false)];
        assert_eq!(started(&three, &pods), ["b", "c"]);
        assert_eq!(started(&slice("a", None, &[ADMITTED], (1, 3)), &pods), Vec::<&str>::new());
        let mut leaving = pods;
        leaving[1].deleting = true;
        assert_eq!(started(&three, &leaving), ["c", "d"], "a pod that ends takes no new share");
        leaving[3].deleting = true;
        assert_eq!(started(&three, &leaving), ["c", "d"], "but keeps the one that it has");
        let other = [ElasticPod { pod_set: "other", ..pod("a", true) }];
        assert_eq!(started(&three, &other), Vec::<&str>::new(), "of no pod set of the slice");
    }

    #[test]
    fn the_last_admitted_slice_grants() {
        let old = slice("a", None, &[ADMITTED], (3, 3));
        let name = |slices: &[&Workload]| {
            granting_slice(slices).and_then(|one| one.metadata.name.clone()).unwrap_or_default()
        };
        let pending = slice("b", Some("a"), &[], (5, 0));
        assert_eq!(name(&[&old, &pending]), "a");
        let new = slice("b", Some("a"), &[ADMITTED], (5, 5));
        assert_eq!(name(&[&new, &old]), "b");
        assert_eq!(name(&[&old, &new]), "b", "in any order");
        let over = slice("a", None, &[ADMITTED, FINISHED], (3, 3));
        assert_eq!(name(&[&over, &new]), "b");
        let evicted = slice("b", Some("a"), &[ADMITTED, EVICTED], (5, 5));
        assert_eq!(name(&[&over, &evicted]), "", "its pods end");
        assert_eq!(name(&[&old, &evicted]), "a", "those of the old one go on");
    }

    #[test]
    fn of_unlinked_admitted_slices_the_latest_grants() {
        let created = |name: &str, second: u32, uid: &str| {
            let mut slice = slice(name, None, &[ADMITTED], (3, 3));
            let time = json!(format!("2026-01-01T00:00:0{second}Z"));
            slice.metadata.creation_timestamp = serde_json::from_value(time).expect("a time");
            slice.metadata.uid = Some(uid.to_owned());
            slice
        };
        let name = |slices: &[&Workload]| {
            granting_slice(slices).and_then(|one| one.metadata.name.clone()).unwrap_or_default()
        };
        let (early, late) = (created("a", 1, "u2"), created("b", 2, "u1"));
        assert_eq!((name(&[&early, &late]), name(&[&late, &early])), ("b".into(), "b".into()));
        let twin = created("c", 2, "u0");
        assert_eq!((name(&[&twin, &late]), name(&[&late, &twin])), ("b".into(), "b".into()));
    }
}
