//! Replays recorded scheduling cases and compares decisions.
//!
//! A case is a line of JSON: objects, events by step, and what Kueue's scheduler decided. The runner plays the API
//! server and the job controllers: it applies events, runs cycles, releases victims one step after their eviction, and
//! compares what comes out.

pub mod case;
pub mod compare;
pub mod convert;
pub mod pods;
pub mod quantity;
pub mod run;

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::Context;

/// What one file gave.
#[derive(Debug, Default)]
pub struct Tally {
    /// Cases with the same decisions.
    pub passed: usize,
    /// Cases with other decisions: id and first difference.
    pub failed: Vec<(String, String)>,
    /// Heads with reason and message compared, and equal.
    pub words: (usize, usize),
    /// Heads whose words differ: case, Workload, expected, found.
    pub misspoken: Vec<String>,
}

/// Replays all cases of a file, plain or gzipped.
pub fn replay(path: &Path) -> anyhow::Result<Tally> {
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
        let played = run::run(&case).with_context(|| format!("replaying {}", case.id))?;
        compare::compare(&case, &played, &mut tally);
    }
    Ok(tally)
}
