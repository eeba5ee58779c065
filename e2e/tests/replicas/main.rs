//! Two managers under load, with faults (e2e::fault_run).

use anyhow::{Result, ensure};
use e2e::fault_run::{FaultPlan, run};

#[tokio::test]
async fn all_work_runs_once_while_leaders_are_killed_and_the_api_server_hangs() -> Result<()> {
    let report = run(&FaultPlan::default()).await?;
    ensure!(report.kills >= 2, "{report:?}");
    eprintln!("{report:?}");
    Ok(())
}
