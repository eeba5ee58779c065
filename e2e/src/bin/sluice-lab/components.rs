//! `pause`, `resume`, `kill` and `restart` of one component.

use lab::Component;
use lab::control::{self, ControlRequest};

use crate::LabName;

/// One component of one cluster.
#[derive(clap::Args)]
pub(crate) struct ComponentTarget {
    /// The cluster: manager, worker-1, …
    cluster: String,
    /// The component: etcd, apiserver, controller-manager, scheduler, kwok.
    component: Component,
    #[command(flatten)]
    lab: LabName,
}

impl ComponentTarget {
    pub(crate) fn pause(self) -> anyhow::Result<()> {
        Ok(self.lab.load()?.pause(&self.cluster, self.component)?)
    }

    pub(crate) fn resume(self) -> anyhow::Result<()> {
        Ok(self.lab.load()?.resume(&self.cluster, self.component)?)
    }

    pub(crate) fn kill(self) -> anyhow::Result<()> {
        Ok(self.lab.load()?.kill(&self.cluster, self.component)?)
    }
}

/// A component to be started again.
#[derive(clap::Args)]
pub(crate) struct Restart {
    #[command(flatten)]
    target: ComponentTarget,
    /// Arguments after the usual ones, until the next restart.
    #[arg(last = true)]
    extra: Vec<String>,
}

impl Restart {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let ComponentTarget { cluster, component, lab } = self.target;
        let request = ControlRequest::Restart { cluster, component, extra: self.extra };
        Ok(control::ask(&lab.load()?, &request)?)
    }
}
