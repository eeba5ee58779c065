//! The table, as high and wide as the terminal. Pure.
//!
//! The samples come first, then what still moves, then the rest; what finds no place is counted.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::scene::{Row, State};

/// Lines beside the rows: counts, heads, what was left out, and the prompt's own.
const AROUND: usize = 5;

/// See the module.
pub(crate) struct View<'a> {
    pub(crate) rows: &'a [Row],
    pub(crate) after: Duration,
    pub(crate) height: usize,
    pub(crate) width: usize,
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_by_key(|row| {
            (is_made(row), if is_made(row) { row.state } else { State::Running })
        });
        let shown = rows.len().min(self.height.saturating_sub(AROUND));
        let (shown, rest) = rows.split_at(shown);
        writeln!(f, "{}", cut(&counts(self.rows, self.after), self.width))?;
        writeln!(f, "{}", cut(&by_place(self.rows), self.width))?;
        for row in shown {
            let Row { name, state, place, why, .. } = row;
            let line = format!("{name:<10} {:<8} {place:<8} {why}", state.word());
            writeln!(f, "{}", coloured(&cut(&line, self.width), row.state))?;
        }
        if !rest.is_empty() {
            writeln!(f, "… and {} more: {}", rest.len(), by_state(rest.iter().copied()))?;
        }
        Ok(())
    }
}

/// Those that were made for the show are called `small-N` with N of two digits mostly; samples are few.
fn is_made(row: &Row) -> bool {
    let number = row.name.strip_prefix("small-").and_then(|number| number.parse::<usize>().ok());
    number.is_some_and(|number| number > 4)
}

fn counts(rows: &[Row], after: Duration) -> String {
    format!("{:>5.1} s   {} Jobs: {}", after.as_secs_f64(), rows.len(), by_state(rows.iter()))
}

fn by_state<'a>(rows: impl Iterator<Item = &'a Row>) -> String {
    let mut counts: BTreeMap<State, usize> = BTreeMap::new();
    for row in rows {
        *counts.entry(row.state).or_default() += 1;
    }
    let told = State::ALL.into_iter().filter_map(|state| {
        let count = counts.get(&state)?;
        Some(format!("{count} {}", state.word()))
    });
    told.collect::<Vec<_>>().join(", ")
}

/// How many run, or ran, on each worker.
fn by_place(rows: &[Row]) -> String {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.place.is_empty()) {
        let (busy, over) = counts.entry(&row.place).or_default();
        let count = if row.state == State::Finished { over } else { busy };
        *count += 1;
    }
    let told =
        counts.iter().map(|(place, (busy, over))| format!("{place}: {busy} there, {over} done"));
    format!("          {}", told.collect::<Vec<_>>().join("   "))
}

/// The first `width` characters.
fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

fn coloured(line: &str, state: State) -> String {
    let code = match state {
        State::Waiting => "33",
        State::Placed => "36",
        State::Running => "32",
        State::Failed => "31",
        State::Finished => "2",
    };
    format!("\x1b[{code}m{line}\x1b[0m")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, state: State, place: &str) -> Row {
        let (name, place) = (name.to_owned(), place.to_owned());
        Row { name, state, place, why: "because it is so".to_owned(), succeeded: 0 }
    }

    #[test]
    fn samples_come_first_then_what_moves_and_the_rest_is_counted() {
        let rows = [
            row("small-11", State::Finished, "worker-1"),
            row("small-12", State::Waiting, ""),
            row("small-13", State::Running, "worker-2"),
            row("too-large", State::Waiting, ""),
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
