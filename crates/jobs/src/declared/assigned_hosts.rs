//! Which of the hosts that a worker's agent has assigned a start binds the pods of a declared job to
//! (docs/reference/dispatch.md §4).

use crds::meta::annotation;

use super::{DeclaredJob, JobFields, PlacedBy};
use crate::start::pod_set_info::PodSetInfo;

impl PlacedBy {
    fn marks(&self, job: &DeclaredJob) -> bool {
        let key = &self.annotation;
        let templates = job.resolved.pod_sets.iter().map(|set| &set.template);
        annotation(&job.metadata, key).is_some()
            || templates.flat_map(|one| &one.metadata).any(|one| one.annotations.contains_key(key))
            || self.within.iter().flat_map(|at| at.all(&job.object)).any(|all| all[key].is_string())
    }
}

impl JobFields {
    /// Whether a start may add a node affinity to the pods. A JobSet keeps its own while it is suspended, also one that patches make.
    fn takes_affinity(&self) -> bool {
        !self.immutable_affinity && self.training.is_none()
    }
}

impl DeclaredJob {
    /// The infos of a start, with the hosts that its pods can be bound to.
    pub(super) fn bound_to_hosts(&self, infos: &[PodSetInfo]) -> Vec<PodSetInfo> {
        let fields = self.fields();
        let placed_by = fields.and_then(|fields| fields.placed_by.as_ref());
        let most = if placed_by.is_some_and(|mark| mark.marks(self)) {
            // A host of the agent and a domain of the operator would contradict each other.
            0
        } else if fields.is_some_and(|fields| !fields.takes_affinity()) {
            1
        } else {
            usize::MAX
        };
        infos.iter().map(|info| info.on_at_most(most)).collect()
    }
}
