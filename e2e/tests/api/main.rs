//! The API on a real API server: CRDs, conversion and webhooks respond like Kueue's.

mod typed;

use std::{fs, path::PathBuf};

use anyhow::Result;
use e2e::replays;

/// Every recorded case: none is skipped.
#[tokio::test(flavor = "multi_thread")]
async fn recorded_cases_get_the_recorded_responses() -> Result<()> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../crds/tests/apioracle");
    let entries = fs::read_dir(folder)?;
    let files: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    let report = replays::replay(&files).await?;
    println!("{report}");
    assert_eq!(report.failed(), 0, "{report}");
    assert_eq!(report.skipped(), 0, "{report}");
    assert!(report.passed() > 1600, "{report}");
    Ok(())
}
