//! Each part of a dispatching installation fails in each phase of a Job (`e2e::fault_matrix`).
//!
//! There is a table only if every Job ran once and no bystander waited.

use anyhow::{Result, bail};
use clap::Args;
use e2e::fault_matrix::{BrokenPart, CellReport, JobPhase, MatrixCell, run as run_cells};

/// What fails.
#[derive(Args)]
pub(crate) struct MatrixOptions {
    /// Only cells with these words in their name, such as `agent` or `running`.
    #[arg(long)]
    only: Vec<String>,
    /// Environments at once.
    #[arg(long, default_value_t = 2)]
    environments: usize,
}

/// Runs and prints.
pub(crate) async fn run(options: &MatrixOptions) -> Result<()> {
    let meant = |cell: &MatrixCell| {
        let names = [cell.part.name(), cell.phase.name()];
        options.only.iter().all(|word| names.contains(&word.as_str()))
    };
    let cells: Vec<MatrixCell> = MatrixCell::all().into_iter().filter(meant).collect();
    if cells.is_empty() {
        bail!("no cell has the words {:?}", options.only);
    }
    println!("{} cells", cells.len());
    let reports = run_cells(cells, options.environments).await?;
    println!("seconds from the end of the fault to the end of everything");
    let phases: Vec<&str> = JobPhase::ALL.into_iter().map(JobPhase::name).collect();
    println!("{:14}{}", "", phases.iter().map(|one| format!("{one:>12}")).collect::<String>());
    for part in BrokenPart::ALL {
        let times = JobPhase::ALL.into_iter().map(|phase| time(&reports, part, phase));
        println!("{:14}{}", part.name(), times.collect::<String>());
    }
    Ok(())
}

fn time(reports: &[CellReport], part: BrokenPart, phase: JobPhase) -> String {
    let cell = MatrixCell { part, phase };
    let report = reports.iter().find(|report| report.cell == cell);
    let time = report.map(|report| format!("{:.1}", report.mended_in.as_secs_f64()));
    format!("{:>12}", time.unwrap_or_default())
}
