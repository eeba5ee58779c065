//! Each part of a dispatching installation fails once, each in another phase of a Job (`e2e::fault_matrix`). `sluice-bench matrix` runs
//! every part in every phase.

use anyhow::{Result, ensure};
use e2e::fault_matrix::{MatrixCell, run};

#[tokio::test]
async fn a_job_runs_once_whatever_fails_while_it_is_dispatched() -> Result<()> {
    let cells = MatrixCell::diagonal();
    let wanted = cells.len();
    let reports = run(cells, 1).await?;
    ensure!(reports.len() == wanted, "{reports:?}");
    eprintln!("{reports:?}");
    Ok(())
}
