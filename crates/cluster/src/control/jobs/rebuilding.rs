//! Groups of pods that `sluicectl dr rebuild` is making (docs/reference/dispatch.md §11).

use ::jobs::{GenericJob, rebuilt::is_rebuilding};
use runtime::watch::Key;

use super::Jobs;

impl Jobs {
    /// Whether any member of a group is being rebuilt: without it the others would look like a group that has lost a pod.
    pub(crate) fn is_group_rebuilding(&self, group: &Key) -> bool {
        let mut members = self.members_of(group).filter_map(|key| self.get(key));
        members.any(|(_, job)| is_rebuilding(job.metadata()))
    }
}
