//! The table, fitted to the terminal. Pure.
//!
//! Samples come first, then active Jobs, then the others; hidden rows are counted.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::job_table::{JobRow, JobState};

/// Lines besides the rows: counts, headings, the number of hidden rows, and the prompt.
const AROUND: usize = 5;

/// The table of one frame.
pub(crate) struct View<'a> {
    pub(crate) rows: &'a [JobRow],
    pub(crate) after: Duration,
    pub(crate) height: usize,
    pub(crate) width: usize,
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows: Vec<&JobRow> = self.rows.iter().collect();
        rows.sort_by_key(|row| {
            (is_made(row), if is_made(row) { row.state } else { JobState::Running })
        });
        let shown = rows.len().min(self.height.saturating_sub(AROUND));
        let (shown, rest) = rows.split_at(shown);
        writeln!(f, "{}", cut(&counts(self.rows, self.after), self.width))?;
        writeln!(f, "{}", cut(&by_place(self.rows), self.width))?;
        for row in shown {
            let JobRow { name, state, place, why, .. } = row;
            let line = format!("{name:<10} {:<8} {place:<8} {why}", state.word());
            writeln!(f, "{}", coloured(&cut(&line, self.width), row.state))?;
        }
        if !rest.is_empty() {
            writeln!(f, "… and {} more: {}", rest.len(), by_state(rest.iter().copied()))?;
        }
        Ok(())
    }
}

/// Generated Jobs are named `small-N`; samples are few.
fn is_made(row: &JobRow) -> bool {
    let number = row.name.strip_prefix("small-").and_then(|number| number.parse::<usize>().ok());
    number.is_some_and(|number| number > 4)
}

fn counts(rows: &[JobRow], after: Duration) -> String {
    format!("{:>5.1} s   {} Jobs: {}", after.as_secs_f64(), rows.len(), by_state(rows.iter()))
}

fn by_state<'a>(rows: impl Iterator<Item = &'a JobRow>) -> String {
    let mut counts: BTreeMap<JobState, usize> = BTreeMap::new();
    for row in rows {
        *counts.entry(row.state).or_default() += 1;
    }
    let states = JobState::ALL.into_iter().filter_map(|state| {
        let count = counts.get(&state)?;
        Some(format!("{count} {}", state.word()))
    });
    states.collect::<Vec<_>>().join(", ")
}

/// How many run, or ran, on each worker.
fn by_place(rows: &[JobRow]) -> String {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.place.is_empty()) {
        let (busy, over) = counts.entry(&row.place).or_default();
        let count = if row.state == JobState::Finished { over } else { busy };
        *count += 1;
    }
    let places =
        counts.iter().map(|(place, (busy, over))| format!("{place}: {busy} there, {over} done"));
    format!("          {}", places.collect::<Vec<_>>().join("   "))
}

/// The first `width` characters.
fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

fn coloured(line: &str, state: JobState) -> String {
    let code = match state {
        JobState::Waiting => "33",
        JobState::Placed => "36",
        JobState::Running => "32",
        JobState::Failed => "31",
        JobState::Finished => "2",
    };
    format!("\x1b[{code}m{line}\x1b[0m")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, state: JobState, place: &str) -> JobRow {
        let (name, place) = (name.to_owned(), place.to_owned());
        JobRow { name, state, place, why: "because it is so".to_owned(), succeeded: 0 }
    }

    #[test]
    fn samples_come_first_then_active_jobs_and_the_rest_is_counted() {
        let rows = [
            row("small-11", JobState::Finished, "worker-1"),
            row("small-12", JobState::Waiting, ""),
            row("small-13", JobState::Running, "worker-2"),
            row("too-large", JobState::Waiting, ""),
        ];
        let view = View { rows: &rows, after: Duration::from_millis(1250), height: 7, width: 40 };
        let text = view.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "  1.2 s   4 Jobs: 2 waiting, 1 running,…");
        assert_eq!(lines[1], "          worker-1: 0 there, 1 done   w…");
        assert!(lines[2].contains("too-large  waiting"), "{text}");
        assert!(lines[3].contains("small-13   running  worker-2"), "{text}");
        assert_eq!(lines[4], "… and 2 more: 1 waiting, 1 finished");
        assert_eq!(lines.len(), 5);
    }
}
