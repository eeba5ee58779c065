//! The queues as a table: a row per flavor and resource.

use crds::quantity::Quantity;

use super::{QueueList, QueueSummary, QuotaUsage};
use crate::{amounts::short, output::HumanText, table::TextTable};

/// A cell that repeats the one above.
const SAME: &str = " ";

const HEADER: [&str; 8] =
    ["QUEUE", "PENDING", "RESERVING", "ADMITTED", "FLAVOR", "RESOURCE", "USED", "NOMINAL"];

const WIDE: [&str; 7] =
    ["RESERVED", "BORROWED", "MAX BORROWED", "MAX LENT", "COHORT", "ACTIVE", "MESSAGE"];

impl HumanText for QueueList {
    fn text(&self, wide: bool) -> String {
        if self.cluster_queues.is_empty() {
            return "No ClusterQueues.\n".to_owned();
        }
        let further: &[&str] = if wide { &WIDE } else { &[] };
        let mut table = TextTable::with_header(&[&HEADER, further].concat());
        for queue in &self.cluster_queues {
            queue.rows(wide).into_iter().for_each(|row| table.add(row));
        }
        table.render(0)
    }
}

impl QueueSummary {
    fn rows(&self, wide: bool) -> Vec<Vec<String>> {
        // A queue without quota has a row too.
        let quotas: Vec<Option<&QuotaUsage>> = if self.quotas.is_empty() {
            vec![None]
        } else {
            self.quotas.iter().map(Some).collect()
        };
        let rows = quotas.into_iter().enumerate().map(|(n_row, quota)| {
            let once = |text: String| if n_row == 0 { text } else { SAME.to_owned() };
            let mut row = vec![once(self.name.clone())];
            let counts = [self.pending, self.reserving, self.admitted];
            row.extend(counts.map(|count| once(count.to_string())));
            row.push(quota.map(|one| one.flavor.clone()).unwrap_or_default());
            row.push(quota.map(|one| one.resource.clone()).unwrap_or_default());
            let amount = |of: fn(&QuotaUsage) -> Option<&Quantity>| {
                quota.and_then(of).map(short).unwrap_or_default()
            };
            row.extend([amount(|one| Some(&one.used)), amount(|one| Some(&one.nominal))]);
            if wide {
                row.extend([amount(|one| Some(&one.reserved)), amount(|one| Some(&one.borrowed))]);
                row.push(amount(|one| one.borrowing_limit.as_ref()));
                row.push(amount(|one| one.lending_limit.as_ref()));
                row.extend(
                    [self.cohort.clone(), self.active_text(), self.message.clone()].map(once),
                );
            }
            row
        });
        rows.collect()
    }

    fn active_text(&self) -> String {
        match self.active.as_str() {
            "True" => "True".to_owned(),
            other => format!("{other} ({})", self.reason),
        }
    }
}
