//! The list of workers as a table.

use std::collections::BTreeSet;

use super::{CapacitySummary, ClusterList, ClusterSummary, DrainState};
use crate::{
    amounts::short,
    output::HumanText,
    table::{ABSENT, TextTable},
};

/// Resources with a column in every table; accelerators follow, all others are in the wide table.
const ALWAYS: [&str; 2] = ["cpu", "memory"];

/// Resources that are no accelerators although they have no column in the narrow table.
const WIDE_ONLY: [&str; 3] = ["pods", "ephemeral-storage", "storage"];

impl HumanText for ClusterList {
    fn text(&self, wide: bool) -> String {
        if self.clusters.is_empty() {
            return "No MultiKueueClusters: `sluicectl join` registers a worker.\n".to_owned();
        }
        let resources = self.columns(wide);
        let mut header = vec!["NAME".to_owned(), "ACTIVE".to_owned(), "REASON".to_owned()];
        header.extend(["REPORT".to_owned(), "NODES".to_owned()]);
        header.extend(resources.iter().map(|name| format!("{} FREE", name.to_uppercase())));
        header.extend(["WORKLOADS".to_owned(), "DRAIN".to_owned()]);
        if wide {
            header.extend(["MODE", "CONFIGS", "TOKEN EXPIRES", "MESSAGE"].map(str::to_owned));
        }
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        let mut table = TextTable::with_header(&header);
        for cluster in &self.clusters {
            table.add(cluster.row(&resources, wide));
        }
        table.render(0)
    }
}

impl ClusterList {
    /// The resources with a column.
    fn columns(&self, wide: bool) -> Vec<String> {
        let reports = self.clusters.iter().filter_map(|cluster| cluster.capacity.as_ref());
        let reported: BTreeSet<&String> =
            reports.flat_map(|report| report.resources.keys()).collect();
        let further = reported.into_iter().filter(|name| !ALWAYS.contains(&name.as_str()));
        let further = further.filter(|name| {
            let hidden = WIDE_ONLY.contains(&name.as_str()) || name.starts_with("hugepages-");
            wide || !hidden
        });
        ALWAYS.iter().map(|name| (*name).to_owned()).chain(further.cloned()).collect()
    }
}

impl ClusterSummary {
    fn row(&self, resources: &[String], wide: bool) -> Vec<String> {
        let report = self.capacity.as_ref();
        let mut cells = vec![
            self.name.clone(),
            self.active.clone(),
            self.reason.clone(),
            report.map(report_age).unwrap_or_default(),
            report.map(|report| report.nodes.to_string()).unwrap_or_default(),
        ];
        cells.extend(resources.iter().map(|name| free_of_total(report, name)));
        cells.extend([self.workloads.to_string(), self.drain_text()]);
        if wide {
            cells.push(report.map(|report| report.mode.clone()).unwrap_or_default());
            cells.push(self.configs.join(","));
            cells.push(self.token_expires.clone().unwrap_or_default());
            cells.push(self.message.clone());
        }
        cells
    }

    fn drain_text(&self) -> String {
        self.drain.as_ref().map(DrainState::text).unwrap_or_default()
    }
}

fn report_age(report: &CapacitySummary) -> String {
    match report.age_seconds {
        Some(seconds @ 0..120) => format!("{seconds}s ago"),
        Some(seconds) => format!("{}m ago", seconds / 60),
        None => "no time".to_owned(),
    }
}

/// `free/total`.
fn free_of_total(report: Option<&CapacitySummary>, resource: &str) -> String {
    let found = report.and_then(|report| report.resources.get(resource));
    found.map_or(ABSENT.to_owned(), |one| format!("{}/{}", short(&one.free), short(&one.total)))
}
