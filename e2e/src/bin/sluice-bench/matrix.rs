//! Each part of a dispatching installation fails in each phase of a Job and of a group of pods (`e2e::fault_matrix`).
//!
//! There is a table only if everything ran once and no bystander waited.

use anyhow::{Result, bail};
use clap::Args;
use e2e::fault_matrix::{
    BrokenPart, CellReport, DispatchedWork, MatrixCell, WorkPhase, run as run_cells,
};

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
        let names = [cell.work.name(), cell.part.name(), cell.phase.name()];
        options.only.iter().all(|word| names.contains(&word.as_str()))
    };
    let all = DispatchedWork::ALL.into_iter().flat_map(MatrixCell::all);
    let cells: Vec<MatrixCell> = all.filter(meant).collect();
    if cells.is_empty() {
        bail!("no cell has the words {:?}", options.only);
    }
    println!("{} cells", cells.len());
    let reports = run_cells(cells, options.environments).await?;
    println!("seconds from the end of the fault to the end of everything");
    for work in DispatchedWork::ALL {
        let phases = WorkPhase::ALL.map(|phase| format!("{:>12}", phase.name()));
        println!("{:14}{}", work.name(), phases.concat());
        for part in BrokenPart::ALL {
            let cell = |phase| MatrixCell { part, work, phase };
            let times = WorkPhase::ALL.map(|phase| time(&reports, cell(phase)));
            println!("{:14}{}", part.name(), times.concat());
        }
    }
    Ok(())
}

fn time(reports: &[CellReport], cell: MatrixCell) -> String {
    let report = reports.iter().find(|report| report.cell == cell);
    let time = report.map(|report| format!("{:.1}", report.mended_in.as_secs_f64()));
    format!("{:>12}", time.unwrap_or_default())
}
