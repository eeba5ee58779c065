//! The duration of each part.

use std::fmt;
use std::time::{Duration, Instant};

/// Measures parts one after the other.
pub(crate) struct Stopwatch {
    begun: Instant,
    last: Instant,
    laps: Vec<(&'static str, Duration)>,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        let now = Instant::now();
        Self { begun: now, last: now, laps: Vec::new() }
    }

    /// A part is over.
    pub(crate) fn lap(&mut self, part: &'static str) {
        let now = Instant::now();
        self.laps.push((part, now - self.last));
        self.last = now;
    }
}

impl fmt::Display for Stopwatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (part, took) in &self.laps {
            writeln!(f, "{part:<28} {:>5.1} s", took.as_secs_f64())?;
        }
        write!(f, "{:<28} {:>5.1} s", "all of it", (self.last - self.begun).as_secs_f64())
    }
}
