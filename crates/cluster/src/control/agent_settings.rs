//! What an agent is configured with.

use ::jobs::Kinds;
use config::{Configuration, JobKinds, gates::Gates};
use crds::v1beta2::ProvisioningRequestConfigSpec;
use index::AdmissionMode;

use super::{agent_policy::AgentPolicy, core::CoreConfig, manager_settings::core_config};

/// Settings of an agent: the defaults of a manager, without a PodsReady policy.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    pub(super) core: CoreConfig,
    pub(super) policy: AgentPolicy,
    /// Kinds of jobs that run here.
    pub(super) kinds: Kinds,
    /// The origin that the counts of a report call its own.
    pub(super) origin: String,
    /// How clones are admitted.
    pub(super) mode: AdmissionMode,
    /// How it asks an autoscaler for nodes, if it does.
    pub(super) provisioning: Option<ProvisioningRequestConfigSpec>,
    /// The namespace of the agent's Lease.
    pub(super) namespace: String,
    /// Differs for each process.
    pub(super) boot: Box<str>,
}

impl AgentSettings {
    /// Settings of an agent that runs what `policy` allows, of the known kinds of jobs, and admits by the room of the nodes.
    #[must_use]
    pub fn new(policy: AgentPolicy, known: &Kinds) -> Self {
        let file = Configuration::default();
        let kinds = policy.allowed(known);
        let mut core = core_config(&file, &Gates::default(), &JobKinds::all(&kinds));
        // A copy needs no queue name, and neither does the owner of a child.
        core.jobs.without_queue_name = true;
        // A copy without its clone waits for it, or for its end.
        core.jobs.creates_workloads = false;
        core.jobs.finishes_orphans = false;
        // The manager compares them with the defaults of its own cluster, and copies no pod that requests too much.
        core.jobs.gates.verify_role_requests = false;
        core.scheduler.index.agent = Some(AdmissionMode::Thin);
        // The manager decides about claims; a clone that is here was accepted.
        core.scheduler.index.refuse_device_claims = false;
        core.pods_ready = None;
        core.scheduler.block_admission = false;
        // Those of a worker are clones, which their manager explains.
        core.scheduler.explains_admission = false;
        core.owns_workloads = false;
        let (namespace, boot) = (String::new(), "".into());
        let (mode, origin) = (AdmissionMode::Thin, file.multi_kueue.origin);
        Self { core, policy, kinds, origin, mode, provisioning: None, namespace, boot }
    }

    /// The settings of an agent that asks an autoscaler for nodes with this config.
    #[must_use]
    pub fn provisioning(self, config: Option<ProvisioningRequestConfigSpec>) -> Self {
        Self { provisioning: config, ..self }
    }

    /// Whether it asks an autoscaler for nodes.
    #[must_use]
    pub fn asks_for_nodes(&self) -> bool {
        self.provisioning.is_some()
    }

    /// The settings of an agent that admits in this mode.
    #[must_use]
    pub fn admitting(mut self, mode: AdmissionMode) -> Self {
        self.core.scheduler.index.agent = Some(mode);
        // The manager that has closed the gate of a clone opens it.
        self.core.scheduler.engine.multi_kueue_orchestrated_preemption =
            mode == AdmissionMode::Quota;
        Self { mode, ..self }
    }

    /// Whether clones are admitted by the ClusterQueues of the cluster.
    #[must_use]
    pub fn has_queues(&self) -> bool {
        self.mode == AdmissionMode::Quota
    }

    /// The settings of an agent in this namespace and with this id of its process.
    #[must_use]
    pub fn with_lease(self, namespace: &str, boot: &str) -> Self {
        Self { namespace: namespace.to_owned(), boot: boot.into(), ..self }
    }

    /// Kinds of jobs that are watched.
    #[must_use]
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }
}
