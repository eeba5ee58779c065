//! The runtime's lease and watches against a real API server, with faults between. All tests of this binary share one lab.

mod lease;
mod watch;

use std::time::Duration;

use anyhow::Result;
use harness::{TestLab, secs};

/// Two cores with other work on them are slow; a test that hangs should still end.
const TIMEOUT: Duration = secs(60);

/// The lab of this binary: a manager cluster is enough.
async fn lab() -> Result<&'static TestLab> {
    Ok(TestLab::shared(0).await?)
}
