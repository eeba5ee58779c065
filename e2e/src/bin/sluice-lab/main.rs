//! `sluice-lab`: real Kubernetes control planes on this machine. See e2e/README.md.
#![expect(clippy::print_stdout, reason = "a command line tool's output")]

mod components;
mod internal;
mod lifecycle;
mod load;
mod make_nodes;
mod replay;
mod show;
mod whole_installation;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use lab::StateRoot;

#[derive(Parser)]
#[command(name = "sluice-lab", about = "Real Kubernetes control planes on this machine", version)]
struct LabCli {
    #[command(subcommand)]
    command: Command,
}

/// One module per group of subcommands. A new one needs one line here and one in `run`.
#[derive(Subcommand)]
enum Command {
    /// Start a lab: one manager and some worker clusters.
    Up(lifecycle::Up),
    /// Stop a lab and remove its files.
    Down(lifecycle::Down),
    /// Say whether real nodes can run on this machine.
    Preflight(lifecycle::Preflight),
    /// Show all labs, their clusters and processes.
    Status(show::Status),
    /// Print the path of a cluster's kubeconfig.
    Kubeconfig(show::KubeconfigCommand),
    /// Print a component's log.
    Logs(show::Logs),
    /// Run kubectl against a cluster.
    Kubectl(show::Kubectl),
    /// Stop a component with SIGSTOP: connections stay, nothing answers.
    Pause(components::ComponentTarget),
    /// Resume a paused component.
    Resume(components::ComponentTarget),
    /// Kill a component; it stays dead until it is restarted.
    Kill(components::ComponentTarget),
    /// Start a component again, killing it first when it runs.
    Restart(components::Restart),
    /// Create nodes in a cluster, simulated by kwok.
    Nodes(make_nodes::NodesCommand),
    /// Import images of an archive into all real nodes of a cluster.
    Load(load::LoadImages),
    /// Replay recorded requests and compare the responses.
    Replay(replay::Replay),
    #[command(name = lab::supervisor::SUBCOMMAND, hide = true)]
    Supervise(internal::Supervise),
    #[command(name = lab::real_nodes::gateway::SUBCOMMAND, hide = true)]
    Gateway(internal::Gateway),
    #[command(name = lab::real_nodes::init::SUBCOMMAND, hide = true)]
    Node(internal::Node),
    #[command(name = lab::real_nodes::init::RESTART_SUBCOMMAND, hide = true)]
    NodeProgram(internal::NodeProgram),
    #[command(name = lab::real_nodes::init::IMPORT_SUBCOMMAND, hide = true)]
    NodeImport(internal::NodeImport),
    #[command(name = lab::tether::SUBCOMMAND, hide = true)]
    Tether(internal::Tether),
}

/// Which lab a command is about.
#[derive(clap::Args)]
struct LabName {
    /// The lab's name.
    #[arg(long = "lab", visible_alias = "name", env = "SLUICE_LAB", default_value = "default")]
    name: String,
}

impl LabName {
    fn load(&self) -> anyhow::Result<lab::LabState> {
        Ok(StateRoot::of_user()?.lab(&self.name)?)
    }
}

fn main() -> ExitCode {
    match run(LabCli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("sluice-lab: {}", without_repetition(&error));
            ExitCode::FAILURE
        }
    }
}

/// The error with its causes, but for those that its text names already.
fn without_repetition(error: &anyhow::Error) -> String {
    error.chain().skip(1).fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    let done = match command {
        Command::Up(command) => command.run(),
        Command::Down(command) => command.run(),
        Command::Preflight(command) => return command.run(),
        Command::Status(command) => command.run(),
        Command::Kubeconfig(command) => command.run(),
        Command::Logs(command) => command.run(),
        Command::Kubectl(command) => command.run(),
        Command::Pause(target) => target.pause(),
        Command::Resume(target) => target.resume(),
        Command::Kill(target) => target.kill(),
        Command::Restart(command) => command.run(),
        Command::Nodes(command) => command.run(),
        Command::Load(command) => command.run(),
        Command::Replay(command) => command.run(),
        Command::Supervise(command) => command.run(),
        Command::Gateway(command) => command.run(),
        Command::Node(command) => command.run(),
        Command::NodeProgram(command) => command.run(),
        Command::NodeImport(command) => command.run(),
        Command::Tether(command) => command.run(),
    };
    done.map(|()| ExitCode::SUCCESS)
}
