//! Waits until all labs of this process are removed.
//!
//! A lab ends when its owner releases it; its supervisor kills the processes and removes the directory last.

use std::time::Duration;

use anyhow::{Result, bail};
use lab::StateRoot;
use tokio::time::Instant;

/// Timeout from the release to the last file.
const GONE_WITHIN: Duration = Duration::from_secs(20);

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Waits until the directories of all labs of this process are removed.
pub(crate) async fn wait_until_gone() -> Result<()> {
    let root = StateRoot::of_user()?;
    let ours = format!("sluice-demo-{}-", std::process::id());
    let deadline = Instant::now() + GONE_WITHIN;
    loop {
        let directories = root.directories()?;
        let left = directories.iter().find(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&ours))
        });
        let Some(left) = left else {
            return Ok(());
        };
        if Instant::now() > deadline {
            bail!("{} is still there", left.display());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
