//! A Job that would have to preempt on its worker, as far as its manager sees. No agent runs there at first: the clone stays as
//! it was created, and the scenario plays the scheduler of the worker.

use anyhow::{Context, Result};
use crds::{
    names::{
        conditions::BLOCKED_ON_PREEMPTION_GATES, gates::MULTI_KUEUE, reasons::PREEMPTION_GATED,
    },
    v1beta2::Workload,
};
use e2e::installation::TIMEOUT;
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{observed_job::ObservedJob, setup::NAMESPACE};

impl ObservedJob<'_> {
    /// Until its gate is open, or, with an agent, until it is over.
    pub(super) async fn gated(&self) -> Result<()> {
        self.submit(self.job()).await?;
        if self.again {
            return self.until_over().await;
        }
        let (worker, clones) = (self.worker()?, self.worker()?.api::<Workload>(NAMESPACE));
        let is_there = |all: &[Workload]| !all.is_empty();
        let all = worker.until_all(&clones, "", "the clone is there", TIMEOUT, is_there).await?;
        let clone = all.first().context("a clone")?;
        let blocked = json!({"status": {"conditions": [{
            "type": BLOCKED_ON_PREEMPTION_GATES, "status": "True", "reason": PREEMPTION_GATED,
            "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]}});
        let params = PatchParams::default();
        clones.patch_status(&clone.name_any(), &params, &Patch::Merge(&blocked)).await?;
        self.until_gate_is_open().await
    }

    /// Until the manager has opened the gate of its clone.
    pub(crate) async fn until_gate_is_open(&self) -> Result<()> {
        let (worker, clones) = (self.worker()?, self.worker()?.api::<Workload>(NAMESPACE));
        let is_open =
            |all: &[Workload]| all.iter().any(|one| one.status.open_gate(MULTI_KUEUE).is_some());
        worker.until_all(&clones, "", "the gate is open", TIMEOUT, is_open).await?;
        Ok(())
    }
}
