//! The output: a table that is redrawn in a terminal, a line per change elsewhere.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write, stdout};
use std::time::Duration;

use rustix::termios::tcgetwinsize;

use crate::job_table::{JobRow, JobState};
use crate::view::View;

/// The default width of a terminal.
const SIZE: (usize, usize) = (24, 80);

/// The output of the demo.
pub(crate) enum Screen {
    /// A table that was drawn with so many lines.
    Terminal { drawn: usize },
    /// The last printed state per Job.
    Lines { printed: BTreeMap<String, JobRow> },
}

impl Screen {
    pub(crate) fn of_stdout() -> Self {
        if stdout().is_terminal() {
            Self::Terminal { drawn: 0 }
        } else {
            Self::Lines { printed: BTreeMap::new() }
        }
    }

    /// Prints the current state.
    pub(crate) fn show(&mut self, rows: &[JobRow], after: Duration) -> std::io::Result<()> {
        match self {
            Self::Terminal { drawn } => {
                let (height, width) = size();
                let text = View { rows, after, height, width }.to_string();
                let mut out = stdout().lock();
                if *drawn > 0 {
                    // Up to the first line of the last table, and all from there is wiped.
                    write!(out, "\x1b[{drawn}A\x1b[J")?;
                }
                *drawn = text.lines().count();
                out.write_all(text.as_bytes())?;
                out.flush()
            }
            Self::Lines { printed } => {
                for row in rows {
                    if printed.get(&row.name).is_none_or(|before| differs(before, row)) {
                        tell(row, after)?;
                        printed.insert(row.name.clone(), row.clone());
                    }
                }
                Ok(())
            }
        }
    }
}

/// A pending Job is printed again if its reason changes, another one only if its state changes.
fn differs(before: &JobRow, now: &JobRow) -> bool {
    let state = (before.state, &before.place) != (now.state, &now.place);
    state || (now.state == JobState::Waiting && before.why != now.why)
}

fn tell(row: &JobRow, after: Duration) -> std::io::Result<()> {
    let JobRow { name, state, place, why, .. } = row;
    let after = after.as_secs_f64();
    let line = format!("{after:>6.1} s  {name:<10} {:<8} {place:<8} {why}", state.word());
    writeln!(stdout(), "{}", line.trim_end())
}

fn size() -> (usize, usize) {
    match tcgetwinsize(stdout()) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => (size.ws_row.into(), size.ws_col.into()),
        _ => SIZE,
    }
}
