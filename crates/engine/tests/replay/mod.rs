//! Replays recorded scheduling cases and compares decisions.
//!
//! A case is a line of JSON: objects, events by step, and the decisions of Kueue's scheduler. The runner stands in
//! for the API server and the job controllers: it applies events, runs cycles, releases preempted Workloads one
//! step after their eviction, and compares the results.

pub(crate) mod case;
pub(crate) mod compare;
pub(crate) mod convert;
pub(crate) mod pods;
pub(crate) mod quantity;
pub(crate) mod run;

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::Context;

/// What one file gave.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Cases with the same decisions.
    pub(crate) passed: usize,
    /// Cases with other decisions: id and first difference.
    pub(crate) failed: Vec<(String, String)>,
    /// Heads with reason and message compared, and equal.
    pub(crate) words: (usize, usize),
    /// Heads whose words differ: case, Workload, expected, found.
    pub(crate) misspoken: Vec<String>,
    /// Steps in which others were evaluated, or with another result.
    pub(crate) out_of_turn: Vec<String>,
}

/// Replays all cases of a file, plain or gzipped, with every head evaluated that upstream evaluates and without.
pub(crate) fn replay(path: &Path) -> anyhow::Result<Tally> {
    let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    let reader: Box<dyn Read> = if path.extension().is_some_and(|one| one == "gz") {
        Box::new(flate2::read::GzDecoder::new(file))
    } else {
        Box::new(file)
    };
    let mut tally = Tally::default();
    for (number, line) in BufReader::new(reader).lines().enumerate() {
        let line = line.with_context(|| format!("reading {}", path.display()))?;
        if line.trim().is_empty() {
            continue;
        }
        let case: case::Case = serde_json::from_str(&line)
            .with_context(|| format!("parsing {} line {}", path.display(), number + 1))?;
        let play = |reevaluate_refused| {
            run::run(&case, reevaluate_refused).with_context(|| format!("replaying {}", case.id))
        };
        let played = play(true)?;
        compare::compare(&case, &played, &mut tally);
        compare::turns(&case, &played, &mut tally);
        // Messages of skipped heads cannot be compared, only decisions.
        let mut quick = Tally::default();
        compare::compare(&case, &play(false)?, &mut quick);
        if tally.failed.last().is_none_or(|(id, _)| *id != case.id) && !quick.failed.is_empty() {
            tally.passed -= 1;
            tally.failed.append(&mut quick.failed);
        }
    }
    Ok(tally)
}
