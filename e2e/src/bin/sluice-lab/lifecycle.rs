//! `up` and `down`.

use lab::up::{self, LabOwner, Options};
use lab::{LabState, Phase, StateRoot};

use crate::{LabName, whole_installation};

/// Start a lab.
#[derive(clap::Args)]
pub(crate) struct Up {
    #[command(flatten)]
    lab: LabName,
    /// How many worker clusters, besides the manager.
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Write the API servers' audit logs: one line per request.
    #[arg(long)]
    audit: bool,
    /// Install Sluice: a manager, an agent on each worker, registered workers, a queue over them.
    #[arg(long)]
    sluice: bool,
    /// Run in the foreground, and stop the lab when this process ends.
    #[arg(long)]
    foreground: bool,
}

impl Up {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let options = Options {
            name: self.lab.name,
            workers: self.workers,
            audit: self.audit,
            owner: if self.foreground { LabOwner::ThisProcess } else { LabOwner::Detached },
            sluice_lab: std::env::current_exe()?,
        };
        let root = StateRoot::of_user()?;
        let up = up::up(&root, &options, &|line| eprintln!("{line}"))?;
        if self.sluice {
            whole_installation::start(&root, &up.state)?;
        }
        print_ready(&up.state);
        if self.sluice {
            whole_installation::print_commands(&up.state)?;
        }
        if self.foreground {
            // Closing the lifeline ends the lab; this process holds it.
            loop {
                std::thread::park();
            }
        }
        Ok(())
    }
}

fn print_ready(lab: &LabState) {
    for cluster in &lab.clusters {
        println!("{:<10} {}  {}", cluster.name, cluster.server(), cluster.kubeconfig().display());
    }
    if let Phase::Ready { after_millis } = lab.phase {
        println!(
            "lab {:?} ready in {}.{} s, {} MB resident",
            lab.name,
            after_millis / 1000,
            after_millis % 1000 / 100,
            lab.resident() / 1_000_000
        );
    }
}

/// Stop a lab.
#[derive(clap::Args)]
pub(crate) struct Down {
    #[command(flatten)]
    lab: LabName,
}

impl Down {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        up::down(&StateRoot::of_user()?, &self.lab.name)?;
        println!("lab {:?} is down", self.lab.name);
        Ok(())
    }
}
