//! Each part of a dispatching installation fails in each phase of dispatched work.
//!
//! | file | concept |
//! |---|---|
//! | `environment` | a hub, a worker behind a proxy, and a bystander |
//! | `broken_part` | what fails, and how it is mended |
//! | `dispatched_work` | a Job, or a group of pods |
//! | `work_phase` | how far it is when the part fails |
//!
//! The work is dispatched to one worker. When it has reached its phase, the part fails for some seconds. On another worker Jobs
//! of a bystander go on: while the hub works, one is submitted and ends before the part is mended. In the end the work ran once,
//! as the ledger of the observer has it, and nothing of it is left anywhere.

mod broken_part;
mod dispatched_work;
mod environment;
mod work_phase;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use harness::{RunVerdict, secs};
use tokio::{sync::Mutex, time::Instant};

pub use self::{broken_part::BrokenPart, dispatched_work::DispatchedWork, work_phase::WorkPhase};

use self::environment::{BYSTANDER, FaultEnvironment, TARGET};
use crate::installation::TIMEOUT;

/// For how long a part fails at least: longer than the deadline of a probe and than a heartbeat of a connection.
const FAILS_FOR: Duration = secs(7);

/// What fails, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixCell {
    /// The part.
    pub part: BrokenPart,
    /// What is dispatched.
    pub work: DispatchedWork,
    /// How far it is.
    pub phase: WorkPhase,
}

/// How a cell ended.
#[derive(Clone, Debug)]
pub struct CellReport {
    /// The cell.
    pub cell: MatrixCell,
    /// From the end of the fault until nothing of the Job was left.
    pub mended_in: Duration,
}

impl MatrixCell {
    /// Every part in every phase of this work.
    #[must_use]
    pub fn all(work: DispatchedWork) -> Vec<Self> {
        let of = |part: &BrokenPart| WorkPhase::ALL.map(|phase| Self { part: *part, work, phase });
        BrokenPart::ALL.iter().flat_map(of).collect()
    }

    /// One cell of each part, and of each phase at least. The first part fails in the phase of this number.
    #[must_use]
    pub fn diagonal(work: DispatchedWork, first: usize) -> Vec<Self> {
        let phases = WorkPhase::ALL.into_iter().cycle().skip(first);
        let cells = BrokenPart::ALL.into_iter().zip(phases);
        cells.map(|(part, phase)| Self { part, work, phase }).collect()
    }

    fn name(self) -> String {
        format!("{}-{}-{}", self.work.name(), self.part.name(), self.phase.name())
    }
}

/// Runs the cells, spread over so many environments that run at once.
///
/// # Errors
/// If something was lost or ran twice, or a bystander had to wait.
pub async fn run(cells: Vec<MatrixCell>, environments: usize) -> Result<Vec<CellReport>> {
    let queue = Mutex::new(cells.into_iter());
    let loops = (0..environments).map(|_| async {
        let mut reports = Vec::new();
        let lab = FaultEnvironment::lab().await?;
        let mut environment = FaultEnvironment::open(&lab).await?;
        loop {
            let Some(cell) = queue.lock().await.next() else {
                return anyhow::Ok(reports);
            };
            let report = Box::pin(run_cell(cell, &mut environment)).await;
            reports.push(report.with_context(|| environment.explain(&cell.name()))?);
        }
    });
    Ok(try_join_all(loops).await?.into_iter().flatten().collect())
}

async fn run_cell(cell: MatrixCell, environment: &mut FaultEnvironment<'_>) -> Result<CellReport> {
    let MatrixCell { part, work, phase } = cell;
    let name = cell.name();
    let before = format!("{name}-before");
    // The bystander runs when the part fails, and ends meanwhile or afterwards.
    environment.submit(BYSTANDER, &before, 3).await?;
    work.submit(environment, &name, phase.runs_for()).await?;
    phase.reached(work, environment, &name).await.context("reaching the phase")?;
    part.fail(environment).await.context("breaking the part")?;
    let failed = Instant::now();
    let meanwhile = bystander_goes_on(part, environment, &name).await;
    // The part fails for a while also if the bystander was quick.
    tokio::time::sleep_until(failed + FAILS_FOR).await;
    part.mend(environment).await.context("mending the part")?;
    let mended = Instant::now();
    meanwhile.context("the bystander while the part fails")?;
    match phase {
        WorkPhase::Deleting => work.until_gone(environment.hub(), &name).await?,
        _ => work.until_complete(environment.hub(), &name).await?,
    }
    environment.until_nothing_is_left(TARGET).await?;
    let mended_in = mended.elapsed();
    work.expect(environment, &name, phase.verdict()).await?;
    environment.until_complete(BYSTANDER, &before).await?;
    let bystander = environment.bystander.judge(&before, 1, TIMEOUT).await?;
    ensure!(bystander.verdict == RunVerdict::Once, "{bystander}");
    Ok(CellReport { cell, mended_in })
}

async fn bystander_goes_on(
    part: BrokenPart,
    environment: &FaultEnvironment<'_>,
    name: &str,
) -> Result<()> {
    if part.stops_the_hub() {
        return Ok(());
    }
    let during = format!("{name}-during");
    environment.submit(BYSTANDER, &during, 1).await?;
    environment.until_complete(BYSTANDER, &during).await
}
