//! Checks of the webhook that upstream does not make for some kinds (docs/reference/kueue.md §5.3).

use serde::Deserialize;

/// Which checks the webhook makes of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each check is independent of the others")]
pub struct JobChecks {
    /// Updates are refused for the syntax of the queue name or of the time limit.
    pub syntax_of_updates: bool,
    /// A job has at most as many pod sets as a Workload.
    pub number_of_pod_sets: bool,
    /// Topology annotations of templates are well formed.
    pub topology: bool,
    /// Pod set groups must have two pod sets that agree.
    pub pod_set_groups: bool,
    /// An elastic job in a queue keeps the scheduling gates of its templates.
    pub elastic_gates: bool,
    /// An elastic job requires and prefers no topology.
    pub elastic_topology: bool,
    /// The annotation `pod-index-offset` of a template is a number, and immutable.
    pub pod_index_offset: bool,
}

impl Default for JobChecks {
    fn default() -> Self {
        Self {
            syntax_of_updates: true,
            number_of_pod_sets: true,
            topology: true,
            pod_set_groups: true,
            elastic_gates: true,
            elastic_topology: true,
            pod_index_offset: false,
        }
    }
}
