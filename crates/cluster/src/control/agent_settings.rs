//! What an agent is configured with.

use super::{agent_policy::AgentPolicy, core::CoreConfig, manager_settings::core_config};
use crate::{config::Configuration, gates::Gates};

/// Settings of an agent: the defaults of a manager, without a PodsReady policy, and with one queue that is not in the API.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    pub(super) core: CoreConfig,
    pub(super) policy: AgentPolicy,
    /// The origin that the counts of a report call its own.
    pub(super) origin: String,
}

impl AgentSettings {
    /// Settings of an agent that runs what `policy` allows.
    #[must_use]
    pub fn new(policy: AgentPolicy) -> Self {
        let file = Configuration::default();
        let mut core = core_config(&file, &Gates::default());
        core.scheduler.index.agent_mode = true;
        core.pods_ready = None;
        core.scheduler.block_admission = false;
        core.owns_workloads = false;
        Self { core, policy, origin: file.multi_kueue.origin }
    }
}
