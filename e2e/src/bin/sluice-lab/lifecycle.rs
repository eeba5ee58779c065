//! `up`, `down` and `preflight`.

use std::process::ExitCode;

use images::ray;
use lab::real_nodes::inotify::InotifyDemand;
use lab::real_nodes::memory;
use lab::real_nodes::node::RealNodeCounts;
use lab::real_nodes::preflight::LACKING_EXIT_CODE;
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
    /// Give each worker real nodes beside the simulated ones: kubelet, containerd and runc in namespaces of their own. Needs root.
    #[arg(long, value_name = "PER WORKER", default_value_t = 0, default_missing_value = "1", num_args = 0..=1)]
    real_nodes: usize,
    /// Give the manager cluster real nodes, too.
    #[arg(long, value_name = "NODES", default_value_t = 0, default_missing_value = "1", num_args = 0..=1)]
    manager_nodes: usize,
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
            real_nodes: RealNodeCounts {
                manager: self.manager_nodes,
                each_worker: self.real_nodes,
                more_of_last: 0,
            },
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

/// Say whether real nodes can run here.
#[derive(clap::Args)]
pub(crate) struct Preflight {
    #[command(flatten)]
    lab: LabName,
    /// The clusters of all labs that run at once, managers included.
    #[arg(long, value_name = "N", default_value_t = 2)]
    clusters: usize,
    /// Their real nodes.
    #[arg(long, value_name = "N", default_value_t = 1)]
    nodes: usize,
    /// Gibibytes that their containers need.
    #[arg(long, value_name = "N", default_value_t = 0)]
    memory: u64,
    /// The image with the real Ray is made or taken from the cache.
    #[arg(long)]
    ray: bool,
}

impl Preflight {
    /// If something is missing, one line for each point and an exit code of its own.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let demand = InotifyDemand { clusters: self.clusters, nodes: self.nodes };
        let root = StateRoot::of_user()?;
        let mut lacking = up::lacking_for_real_nodes(&root, &self.lab.name, demand)?;
        lacking.extend(memory::lacking(self.memory));
        lacking.extend(ray::lacking().filter(|_| self.ray));
        if lacking.is_empty() {
            println!("real nodes can run here");
            return Ok(ExitCode::SUCCESS);
        }
        for point in lacking {
            println!("real nodes cannot run here: {point}");
        }
        Ok(ExitCode::from(LACKING_EXIT_CODE))
    }
}
