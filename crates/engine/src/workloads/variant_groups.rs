//! Which Workloads are variants of one another (gate ConcurrentAdmission).

use crate::ids::WorkloadId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Variant groups by the uid of their parent. Shared with what-ifs that do not change them.
#[derive(Debug, Default, Clone)]
pub(crate) struct VariantGroups(Arc<VariantTables>);

#[derive(Debug, Default, Clone)]
struct VariantTables {
    of: BTreeMap<WorkloadId, Box<str>>,
    members: BTreeMap<Box<str>, BTreeSet<WorkloadId>>,
}

impl VariantGroups {
    /// Sets the group of a Workload, or removes it from its group.
    pub(crate) fn set(&mut self, id: WorkloadId, parent: Option<&str>) {
        let known = self.0.of.get(&id).map(|known| &**known);
        // Cloned for what-ifs only if it changes.
        if known == parent {
            return;
        }
        let tables = Arc::make_mut(&mut self.0);
        if let Some(old) = tables.of.remove(&id)
            && let Some(members) = tables.members.get_mut(&old)
        {
            members.remove(&id);
            if members.is_empty() {
                tables.members.remove(&old);
            }
        }
        if let Some(new) = parent {
            tables.of.insert(id, new.into());
            tables.members.entry(new.into()).or_default().insert(id);
        }
    }

    pub(crate) fn siblings(&self, id: WorkloadId) -> impl Iterator<Item = WorkloadId> + '_ {
        let parent = self.0.of.get(&id).and_then(|parent| self.0.members.get(parent));
        parent.into_iter().flatten().copied().filter(move |&one| one != id)
    }
}
