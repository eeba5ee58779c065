//! Each part of a dispatching installation fails once, each in another phase of the work (`e2e::fault_matrix`). `sluice-bench
//! matrix` runs every part in every phase.

use anyhow::{Result, ensure};
use e2e::fault_matrix::{DispatchedWork, MatrixCell, run};

async fn runs_once(work: DispatchedWork, first: usize) -> Result<()> {
    let cells = MatrixCell::diagonal(work, first);
    let wanted = cells.len();
    let reports = run(cells, 1).await?;
    ensure!(reports.len() == wanted, "{reports:?}");
    eprintln!("{reports:?}");
    Ok(())
}

#[tokio::test]
async fn a_job_runs_once_whatever_fails_while_it_is_dispatched() -> Result<()> {
    runs_once(DispatchedWork::Job, 0).await
}

#[tokio::test]
async fn a_group_of_pods_runs_once_whatever_fails_while_it_is_dispatched() -> Result<()> {
    runs_once(DispatchedWork::PodGroup, 3).await
}
