//! Chains of slices of elastic jobs: their clones share pods.
//!
//! The pods of a job are made from one template, which names the slice that started them; all slices and all pods name the chain. So
//! pods are counted for the chain, by the key of its first slice, and the clone of any other job is a chain of its own.

use runtime::watch::Key;

use crate::control::{
    elastic_chains::chain_key, key_map::KeyMap, key_set::KeySet, workloads::WorkloadChange,
};

/// The chain of each clone that is a slice.
#[derive(Debug, Default)]
pub(super) struct SliceChains {
    chains: KeyMap<Key, Key>,
    clones: KeyMap<Key, KeySet<Key>>,
}

impl SliceChains {
    /// Takes a change of a clone. Returns the clones of its chain, if it is of an elastic job.
    pub(super) fn clone_changed(&mut self, change: &WorkloadChange) -> Vec<Key> {
        let key = &change.key;
        let chain = change.after.as_deref().and_then(|clone| chain_key(key, clone));
        let before = match &chain {
            Some(chain) => self.chains.insert(key.clone(), chain.clone()),
            None => self.chains.remove(key),
        };
        if let Some(before) = &before {
            self.clones.remove_member(before, key);
        }
        if let Some(chain) = &chain {
            self.clones.entry(chain.clone()).or_default().insert(key.clone());
        }
        let mut concerned: Vec<Key> =
            before.iter().chain(&chain).flat_map(|chain| self.clones_of(chain)).collect();
        concerned.sort_unstable();
        concerned.dedup();
        concerned
    }

    /// The chain of a clone: what its pods are counted for.
    pub(super) fn of<'a>(&'a self, clone: &'a Key) -> &'a Key {
        self.chains.get(clone).unwrap_or(clone)
    }

    /// The clones of a chain; of an unknown one the clone with its name.
    pub(super) fn clones_of(&self, chain: &Key) -> Vec<Key> {
        match self.clones.get(chain) {
            Some(clones) => clones.iter().cloned().collect(),
            None => vec![chain.clone()],
        }
    }
}
