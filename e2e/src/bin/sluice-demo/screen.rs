//! Where the show is seen: a table that is drawn anew in a terminal, a line per change elsewhere.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write, stdout};
use std::time::Duration;

use rustix::termios::tcgetwinsize;

use crate::scene::{Row, State};
use crate::view::View;

/// What a terminal has that does not say.
const SIZE: (usize, usize) = (24, 80);

/// See the module.
pub(crate) enum Screen {
    /// A table that was drawn with so many lines.
    Terminal { drawn: usize },
    /// What was last said of each Job.
    Lines { told: BTreeMap<String, Row> },
}

impl Screen {
    pub(crate) fn of_stdout() -> Self {
        if stdout().is_terminal() {
            Self::Terminal { drawn: 0 }
        } else {
            Self::Lines { told: BTreeMap::new() }
        }
    }

    /// Shows how things are.
    pub(crate) fn show(&mut self, rows: &[Row], after: Duration) -> std::io::Result<()> {
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
            Self::Lines { told } => {
                for row in rows {
                    if told.get(&row.name).is_none_or(|before| differs(before, row)) {
                        tell(row, after)?;
                        told.insert(row.name.clone(), row.clone());
                    }
                }
                Ok(())
            }
        }
    }
}

/// Only what waits is told again when but its reason is another.
fn differs(before: &Row, now: &Row) -> bool {
    let state = (before.state, &before.place) != (now.state, &now.place);
    state || (now.state == State::Waiting && before.why != now.why)
}

fn tell(row: &Row, after: Duration) -> std::io::Result<()> {
    let Row { name, state, place, why, .. } = row;
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
