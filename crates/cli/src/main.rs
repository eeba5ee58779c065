//! `sluicectl`: see the library `cli` and docs/sluicectl.md.

use std::{
    ffi::OsStr,
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use clap::{CommandFactory, FromArgMatches};
use cli::args::CliArgs;

/// The name under which kubectl runs a plugin `sluice`.
const PLUGIN: &str = "kubectl-sluice";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    runtime::failpoint::set_up();
    let args = match parse() {
        Ok(args) => args,
        Err(error) => error.exit(),
    };
    match cli::run::run(&args, &print).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("sluicectl: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

/// As a plugin, the help shows how kubectl is called.
fn parse() -> Result<CliArgs, clap::Error> {
    let own = std::env::args_os().next();
    let stem = own.as_deref().and_then(|path| Path::new(path).file_stem());
    let command = match stem == Some(OsStr::new(PLUGIN)) {
        true => CliArgs::command().bin_name("kubectl sluice"),
        false => CliArgs::command(),
    };
    CliArgs::from_arg_matches(&command.try_get_matches()?)
}

/// A reader that has enough, such as `head`, is no failure.
fn print(text: &str) {
    let mut out = io::stdout().lock();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}
