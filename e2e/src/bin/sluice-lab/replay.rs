//! `replay`.

use std::path::PathBuf;

use anyhow::Context;

/// Replay recorded requests and compare the responses.
#[derive(clap::Args)]
pub(crate) struct Replay {
    /// Files of cases, one JSON object a line; `.gz` is unpacked.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Write here, a line each, what differs beside what decides about a case: messages of conditions, and other fields.
    #[arg(long, value_name = "FILE")]
    details: Option<PathBuf>,
}

impl Replay {
    /// Starts a fresh control plane for the replay and removes it afterwards. Fails if a case fails.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Runtime::new()?;
        let report = runtime.block_on(e2e::replays::replay(&self.files))?;
        if let Some(file) = &self.details {
            let lines: String =
                report.differing_details().iter().map(|line| format!("{line}\n")).collect();
            std::fs::write(file, lines).with_context(|| format!("writing {}", file.display()))?;
        }
        println!("{report}");
        anyhow::ensure!(report.failed() == 0, "{} cases failed", report.failed());
        Ok(())
    }
}
