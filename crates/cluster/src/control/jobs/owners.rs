//! Which Workloads belong to which job: by controller reference, or by the name that the job gives.

use std::collections::{BTreeMap, BTreeSet};

use crds::v1beta2::Workload;
use runtime::watch::Key;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// Workloads by the job that controls them.
    owned: BTreeMap<Key, BTreeSet<Key>>,
    /// Jobs by the Workload that they name.
    naming: BTreeMap<Key, BTreeSet<Key>>,
}

impl Owners {
    /// Records the controller of a Workload.
    pub(super) fn add_workload(&mut self, key: &Key, workload: &Workload) {
        if let Some(owner) = controller(key, workload) {
            self.owned.entry(owner).or_default().insert(key.clone());
        }
    }

    /// Forgets a Workload. Returns the job that controlled it.
    pub(super) fn remove_workload(&mut self, key: &Key, workload: &Workload) -> Option<Key> {
        let owner = controller(key, workload)?;
        remove(&mut self.owned, &owner, key);
        Some(owner)
    }

    /// Records that a job names a Workload.
    pub(super) fn add_name(&mut self, workload: Key, job: &Key) {
        self.naming.entry(workload).or_default().insert(job.clone());
    }

    /// Forgets that a job names a Workload.
    pub(super) fn remove_name(&mut self, workload: &Key, job: &Key) {
        remove(&mut self.naming, workload, job);
    }

    /// Workloads that a job controls, in the order of their names.
    pub(super) fn owned_by(&self, job: &Key) -> impl Iterator<Item = &Key> {
        self.owned.get(job).into_iter().flatten()
    }

    pub(super) fn owns_any(&self, job: &Key) -> bool {
        self.owned.contains_key(job)
    }

    /// Jobs that name a Workload.
    pub(super) fn naming(&self, workload: &Key) -> impl Iterator<Item = &Key> {
        self.naming.get(workload).into_iter().flatten()
    }

    /// The controller of a Workload and the jobs that name it.
    pub(super) fn jobs_of(&self, key: &Key, workload: &Workload) -> Vec<Key> {
        controller(key, workload).into_iter().chain(self.naming(key).cloned()).collect()
    }
}

/// The Job that controls a Workload.
pub(super) fn controller(key: &Key, workload: &Workload) -> Option<Key> {
    let mut owners = workload.metadata.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.controller == Some(true) && owner.kind == "Job")?;
    Some(Key { namespace: key.namespace.clone(), name: owner.name.as_str().into() })
}

fn remove(sets: &mut BTreeMap<Key, BTreeSet<Key>>, of: &Key, key: &Key) {
    if let Some(set) = sets.get_mut(of) {
        set.remove(key);
        if set.is_empty() {
            sets.remove(of);
        }
    }
}
