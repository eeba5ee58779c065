//! Whether the reservation of a Workload accounts for a pod that names the Workload (docs/reference/kueue.md §4.11).
//!
//! A name may be used again: pods of an earlier job run on while a later Workload of that name holds a reservation. Owners tell them
//! apart. Only an owner of the same kind with another uid proves a pod to be of another job: a pod may belong to the job through
//! objects between them.

use std::collections::BTreeSet;

use crds::{meta::controller, v1beta2::Workload};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

const POD: (&str, &str) = ("v1", "Pod");

/// The controller of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodController {
    api_version: Box<str>,
    kind: Box<str>,
    uid: Box<str>,
}

/// The owners of a Workload.
#[derive(Debug)]
pub struct ReservationOwners<'a> {
    kinds: BTreeSet<(&'a str, &'a str)>,
    uids: BTreeSet<&'a str>,
}

impl PodController {
    /// The controller of an object, if it has one.
    #[must_use]
    pub fn of(metadata: &ObjectMeta) -> Option<Self> {
        controller(metadata).map(|owner| Self {
            api_version: owner.api_version.as_str().into(),
            kind: owner.kind.as_str().into(),
            uid: owner.uid.as_str().into(),
        })
    }
}

impl<'a> ReservationOwners<'a> {
    /// The owners of a Workload.
    #[must_use]
    pub fn of(workload: &'a Workload) -> Self {
        let owners = workload.metadata.owner_references.as_deref().unwrap_or_default();
        let kind = |one: &'a OwnerReference| (&*one.api_version, &*one.kind);
        Self {
            kinds: owners.iter().map(kind).collect(),
            uids: owners.iter().map(|one| &*one.uid).collect(),
        }
    }

    /// Whether the Workload accounts for a pod with this uid and controller.
    #[must_use]
    pub fn account_for(&self, uid: Option<&str>, controller: Option<&PodController>) -> bool {
        if self.kinds.contains(&POD) {
            return uid.is_some_and(|uid| self.uids.contains(uid));
        }
        let Some(controller) = controller else {
            return true;
        };
        !self.kinds.contains(&(&*controller.api_version, &*controller.kind))
            || self.uids.contains(&*controller.uid)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn owner(api_version: &str, kind: &str, uid: &str) -> Value {
        json!({"apiVersion": api_version, "kind": kind, "name": uid, "uid": uid, "controller": true})
    }

    /// Whether a Workload of this owner accounts for a pod of this uid and owner.
    fn accounts(owner: Option<Value>, (uid, controller): (&str, Option<Value>)) -> bool {
        let metadata = |owner: Option<Value>| json!({"ownerReferences": Vec::from_iter(owner)});
        let workload = json!({"metadata": metadata(owner), "spec": {"podSets": []}});
        let workload: Workload = serde_json::from_value(workload).expect("a Workload");
        let pod: ObjectMeta = serde_json::from_value(metadata(controller)).expect("metadata");
        let controller = PodController::of(&pod);
        ReservationOwners::of(&workload).account_for(Some(uid), controller.as_ref())
    }

    #[test]
    fn an_owner_of_the_same_kind_with_another_uid_is_of_another_job() {
        let job = |uid| Some(owner("batch/v1", "Job", uid));
        assert!(accounts(job("one"), ("p", job("one"))));
        assert!(!accounts(job("two"), ("p", job("one"))));
        let set = Some(owner("jobset.x-k8s.io/v1alpha2", "JobSet", "two"));
        assert!(accounts(set, ("p", job("one"))), "the Job may be one of the JobSet");
        assert!(accounts(job("two"), ("p", None)));
        assert!(accounts(None, ("p", job("one"))), "of a Workload without owners");
    }

    #[test]
    fn a_group_accounts_for_the_pods_that_own_its_workload() {
        let pod = |uid| Some(owner("v1", "Pod", uid));
        assert!(accounts(pod("p"), ("p", None)));
        let job = Some(owner("batch/v1", "Job", "one"));
        assert!(accounts(pod("p"), ("p", job.clone())));
        assert!(!accounts(pod("q"), ("p", job)));
    }
}
