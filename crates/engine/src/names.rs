//! Names to dense ids and back.
//!
//! The caller interns a name once and uses the id in every event after that. A name keeps its id for the life of the
//! engine, except that a Workload's id is reused after the Workload is gone.

use std::collections::HashMap;
use std::marker::PhantomData;

use crate::ids::{
    CheckId, CohortId, FlavorId, LocalQueueId, NamespaceId, QueueId, ResourceId, TopologyId,
    TopologyNodeId, WorkloadId,
};

/// One table of names.
#[derive(Debug)]
pub struct Interner<Id> {
    ids: HashMap<Box<str>, u32>,
    names: Vec<Box<str>>,
    free: Vec<u32>,
    kind: PhantomData<Id>,
}

impl<Id> Default for Interner<Id> {
    fn default() -> Self {
        Self { ids: HashMap::new(), names: Vec::new(), free: Vec::new(), kind: PhantomData }
    }
}

impl<Id: From<usize> + Into<usize> + Copy> Interner<Id> {
    /// The id of `name`, new or known.
    pub fn intern(&mut self, name: &str) -> Id {
        if let Some(&id) = self.ids.get(name) {
            return Id::from(id as usize);
        }
        // Only ids of Workloads are given back; the order of reuse does not show in any decision.
        let index = match self.free.pop() {
            Some(index) => {
                self.names[index as usize] = name.into();
                index
            }
            None => {
                self.names.push(name.into());
                u32::try_from(self.names.len() - 1).expect("invariant: fewer than 2^32 names")
            }
        };
        self.ids.insert(name.into(), index);
        Id::from(index as usize)
    }

    /// The id of a known name.
    pub fn get(&self, name: &str) -> Option<Id> {
        self.ids.get(name).map(|&id| Id::from(id as usize))
    }

    /// The name behind an id.
    pub fn name(&self, id: Id) -> &str {
        &self.names[id.into()]
    }

    /// How many ids were handed out.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// True before the first name.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Gives an id back. The caller guarantees that nothing refers to it any more.
    pub(crate) fn forget(&mut self, id: Id) {
        let index: usize = id.into();
        self.ids.remove(&self.names[index]);
        self.names[index] = "".into();
        self.free.push(u32::try_from(index).expect("invariant: ids are 32 bits wide"));
    }
}

/// All name tables of one engine.
#[derive(Debug, Default)]
pub struct Names {
    /// Resource names.
    pub resources: Interner<ResourceId>,
    /// ResourceFlavors.
    pub flavors: Interner<FlavorId>,
    /// ClusterQueues.
    pub queues: Interner<QueueId>,
    /// Cohorts. Ids of a table of their own, mapped to tree nodes by the engine.
    pub cohorts: Interner<CohortId>,
    /// LocalQueues, as `namespace/name`.
    pub local_queues: Interner<LocalQueueId>,
    /// Namespaces.
    pub namespaces: Interner<NamespaceId>,
    /// Workloads, as `namespace/name`.
    pub workloads: Interner<WorkloadId>,
    /// Topologies.
    pub topologies: Interner<TopologyId>,
    /// Kubernetes nodes.
    pub nodes: Interner<TopologyNodeId>,
    /// AdmissionChecks.
    pub checks: Interner<CheckId>,
}
