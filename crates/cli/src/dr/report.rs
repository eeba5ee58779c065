//! The plan as a table, or as data.

use serde::Serialize;

use super::plan::{PlanRow, RowState, counts};
use crate::{output::HumanText, table::TextTable};

const HEADER: [&str; 6] = ["NAMESPACE", "WORKLOAD", "JOBS", "CLUSTER", "STATE", "REASON"];

/// What every rebuilt job lacks: its copy was made without it.
const LOST: &str = "Rebuilt jobs have no owner and no time to live after their end. Jobs that no worker has are lost.\n";

/// The result of a run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RebuildReport {
    /// Nothing was written.
    pub dry_run: bool,
    /// The origin of the copies.
    pub origin: String,
    /// Workers with an entry that names another manager cluster.
    pub of_another_manager: Vec<String>,
    /// A row per Workload.
    pub workloads: Vec<PlanRow>,
}

impl RebuildReport {
    /// How many Workloads a failed write has left incomplete.
    #[must_use]
    pub fn n_failed(&self) -> usize {
        self.workloads.iter().filter(|row| row.state == RowState::Failed).count()
    }
}

impl HumanText for RebuildReport {
    fn text(&self, wide: bool) -> String {
        if self.workloads.is_empty() {
            return format!("No copies with the origin {}.\n", self.origin);
        }
        let further: &[&str] = if wide { &["REMOVED FROM"] } else { &[] };
        let mut table = TextTable::with_header(&[&HEADER[..], further].concat());
        for row in &self.workloads {
            let mut cells = vec![
                row.namespace.clone(),
                row.workload.clone(),
                row.jobs.join(","),
                row.clusters.join(","),
                row.state.text().to_owned(),
                row.reason.clone().unwrap_or_default(),
            ];
            if wide {
                cells.push(row.removed_from.join(","));
            }
            table.add(cells);
        }
        let counts = counts(&self.workloads);
        let counts: Vec<String> =
            counts.into_iter().map(|(state, count)| format!("{count} {state}")).collect();
        let end = if self.dry_run { "nothing was written" } else { "done" };
        let mut text = format!("{}\n{}; {end}.\n{LOST}", table.render(0), counts.join(", "));
        if !self.of_another_manager.is_empty() {
            let workers = self.of_another_manager.join(", ");
            text.push_str(&format!("Of another manager cluster until then: {workers}.\n"));
        }
        text
    }
}
