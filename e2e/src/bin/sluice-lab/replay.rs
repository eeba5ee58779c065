//! `replay`.

use std::path::PathBuf;

/// Replay recorded requests and compare the responses.
#[derive(clap::Args)]
pub(crate) struct Replay {
    /// Files of cases, one JSON object a line; `.gz` is unpacked.
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

impl Replay {
    /// Starts a fresh control plane for the replay and removes it afterwards. Fails if a case fails.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Runtime::new()?;
        let report = runtime.block_on(e2e::replays::replay(&self.files))?;
        println!("{report}");
        anyhow::ensure!(report.failed() == 0, "{} cases failed", report.failed());
        Ok(())
    }
}
