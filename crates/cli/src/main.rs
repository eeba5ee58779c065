//! `sluicectl`: see the library `cli` and docs/sluicectl.md.

use std::{
    ffi::OsStr,
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use clap::{CommandFactory, FromArgMatches};
use cli::{args::CliArgs, stdout::OutputState};

/// The name under which kubectl runs a plugin `sluice`.
const PLUGIN: &str = "kubectl-sluice";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    runtime::failpoint::set_up();
    let args = match parse() {
        Ok(args) => args,
        Err(error) => error.exit(),
    };
    let output = OutputState::new(args.command.changes());
    match cli::run::run(&args, &|text| print(&output, text)).await {
        Ok(()) => ExitCode::from(output.done()),
        Err(failure) => {
            complain(&failure.to_string());
            ExitCode::from(failure.exit().code())
        }
    }
}

/// As a plugin, the help shows how kubectl is called.
fn parse() -> Result<CliArgs, clap::Error> {
    let own = std::env::args_os().next();
    let stem = own.as_deref().and_then(|path| Path::new(path).file_stem());
    let command = if stem == Some(OsStr::new(PLUGIN)) {
        CliArgs::command().bin_name("kubectl sluice")
    } else {
        CliArgs::command()
    };
    CliArgs::from_arg_matches(&command.try_get_matches()?)
}

fn print(output: &OutputState, text: &str) {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if let Err(error) = &written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        complain(&format!("cannot write the output: {error}"));
    }
    if let Some(code) = output.after(&written) {
        std::process::exit(code.into());
    }
}

/// Writes a line for a user. Without a place for it, the exit code alone says that something failed.
fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "sluicectl: {text}");
}
