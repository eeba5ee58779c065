//! `replay`.

use std::path::PathBuf;

/// Replay recorded answers of the real API against ours.
#[derive(clap::Args)]
pub(crate) struct Replay {
    /// Files of cases, one JSON object a line; `.gz` is unpacked.
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

impl Replay {
    /// A fresh control plane comes up for it and goes with it. Fails when a case does.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Runtime::new()?;
        let report = runtime.block_on(e2e::replays::replay(&self.files))?;
        println!("{report}");
        anyhow::ensure!(report.failed() == 0, "{} cases failed", report.failed());
        Ok(())
    }
}
