//! Chains of workload slices: which Workloads are slices of the same elastic job.
//!
//! All slices of a job and all its pods name the first slice, which may be gone. Pods of an earlier slice run on with a later one, so
//! what is decided about pods is decided for a chain, with the slice that grants (docs/reference/kueue.md §4.13).

use ::jobs::elastic_ungater::{chain_of, granting_slice};
use crds::v1beta2::Workload;
use runtime::watch::Key;

use super::{
    concurrent_admission::parent_key,
    key_map::KeyMap,
    key_set::KeySet,
    workloads::{TrackedWorkload, WorkloadChange, Workloads},
};

/// Elastic Workloads by their chain.
#[derive(Debug, Default)]
pub(crate) struct ElasticChains(KeyMap<Key, KeySet<Key>>);

impl ElasticChains {
    /// Takes a change of a Workload. Returns the chain that it is a slice of now.
    pub(crate) fn workload_changed(&mut self, change: &WorkloadChange) -> Option<Key> {
        let chain = |workload: Option<&Workload>| chain_key(&change.key, workload?);
        let (before, after) = (chain(change.before.as_deref()), chain(change.after.as_deref()));
        if let Some(chain) = before.filter(|before| Some(before) != after.as_ref()) {
            self.0.remove_member(&chain, &change.key);
        }
        if let Some(chain) = &after {
            self.0.entry(chain.clone()).or_default().insert(change.key.clone());
        }
        after
    }

    /// The slices of a chain.
    pub(crate) fn slices(&self, chain: &Key) -> impl Iterator<Item = &Key> {
        self.0.get(chain).into_iter().flatten()
    }

    /// The slice of a chain that its pods start with.
    pub(crate) fn granting<'a>(
        &self,
        chain: &Key,
        workloads: &'a Workloads,
    ) -> Option<&'a Workload> {
        let records = self.slices(chain).filter_map(|key| workloads.get(key));
        let slices: Vec<&Workload> = records.map(|record| &**record.object()).collect();
        granting_slice(&slices)
    }

    /// The Workload that pods of this name start with: the granting slice of the chain, or else the Workload itself.
    pub(crate) fn workload_of_pods<'a>(
        &self,
        name: &Key,
        workloads: &'a Workloads,
    ) -> Option<&'a Workload> {
        if self.slices(name).next().is_some() {
            return self.granting(name, workloads);
        }
        workloads.get(name).map(TrackedWorkload::object).map(|object| &**object)
    }
}

/// The name that the pods of a Workload are found by: that of its chain, or else its own.
pub(crate) fn name_in_pods(key: &Key, workload: &Workload) -> Key {
    chain_key(key, workload).unwrap_or_else(|| key.clone())
}

/// The names that pods may have of a Workload: its own, that of its chain, and that of the parent that it is a variant of.
pub(crate) fn names_in_pods(key: &Key, workload: &Workload) -> impl Iterator<Item = Key> {
    let chain = chain_key(key, workload).filter(|chain| chain != key);
    [Some(key.clone()), chain, parent_key(workload)].into_iter().flatten()
}

/// The chain of an elastic Workload, by the key of its first slice.
pub(crate) fn chain_key(key: &Key, workload: &Workload) -> Option<Key> {
    let name = chain_of(workload)?;
    Some(Key { namespace: key.namespace.clone(), name: name.into() })
}
