//! The outcome of a replay.

use std::{collections::BTreeMap, fmt};

use crate::{
    compare::Difference,
    traces::{DetailCounts, MESSAGES},
};

/// The outcome of a replay. Printed, it ends with `N passed, M failed`.
#[derive(Debug, Default)]
pub struct ReplayReport {
    pub(crate) passed: usize,
    /// Those of them that failed beside others, and passed alone.
    pub(crate) passed_alone: usize,
    pub(crate) failed: Vec<(String, Vec<Difference>)>,
    pub(crate) excepted: BTreeMap<&'static str, usize>,
    /// Steps of these cases that are as recorded, after the first difference.
    pub(crate) n_further: usize,
    /// These cases of which a later step differs, too, and ends the comparison.
    pub(crate) cut: Vec<CutCase>,
    pub(crate) skipped: BTreeMap<String, usize>,
    /// Events of operators that depend on the delay of a watch, and are not compared.
    pub(crate) n_exempt_events: usize,
    pub(crate) details: DetailCounts,
}

/// A case of which the rest is not compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CutCase {
    /// Its name.
    pub case: String,
    /// The step that differs after a wanted difference.
    pub step: u64,
}

impl ReplayReport {
    /// How many cases did as upstream does.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.passed
    }

    /// How many did not.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.failed.len()
    }

    /// The steps after a wanted difference that are as recorded.
    #[must_use]
    pub fn further_steps(&self) -> usize {
        self.n_further
    }

    /// The cases that are compared up to what follows from a wanted difference.
    #[must_use]
    pub fn cut(&self) -> &[CutCase] {
        &self.cut
    }

    /// What differs beside the essence of objects; a case passes in spite of it.
    #[must_use]
    pub fn differing_details(&self) -> &[String] {
        &self.details.differences
    }

    /// The share of messages of conditions that are as recorded, in percent; 0 if none were compared.
    #[must_use]
    pub fn equal_messages_percent(&self) -> usize {
        self.details.equal_percent(MESSAGES)
    }

    /// How many cases were not run.
    #[must_use]
    pub fn skipped(&self) -> usize {
        self.skipped.values().sum()
    }

    /// Adds the outcome of another replay.
    pub fn absorb(&mut self, other: Self) {
        self.passed += other.passed;
        self.passed_alone += other.passed_alone;
        self.n_further += other.n_further;
        self.n_exempt_events += other.n_exempt_events;
        self.cut.extend(other.cut);
        self.failed.extend(other.failed);
        self.details.absorb(other.details);
        for (reason, count) in other.excepted {
            *self.excepted.entry(reason).or_default() += count;
        }
        for (kind, count) in other.skipped {
            *self.skipped.entry(kind).or_default() += count;
        }
    }
}

impl fmt::Display for ReplayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (id, differences) in &self.failed {
            writeln!(f, "FAILED {id}")?;
            for difference in differences {
                writeln!(f, "  {:?}: {}", difference.level, difference.text)?;
            }
        }
        for (reason, count) in &self.excepted {
            writeln!(f, "{count} passed with an expected difference: {reason}")?;
        }
        if self.n_further + self.cut.len() > 0 {
            writeln!(
                f,
                "{} steps after an expected difference as recorded; {} cases end at what follows from one",
                self.n_further,
                self.cut.len()
            )?;
        }
        for cut in &self.cut {
            writeln!(f, "  {} ends early, at step {}", cut.case, cut.step)?;
        }
        if self.passed_alone > 0 {
            writeln!(f, "{} passed alone, after a failure beside others", self.passed_alone)?;
        }
        for (class, count) in &self.details.counts {
            let all = count.same + count.different;
            writeln!(f, "{} of {all} {class} as recorded", count.same)?;
        }
        if self.n_exempt_events > 0 {
            writeln!(f, "{} events of operators not compared", self.n_exempt_events)?;
        }
        for (reason, count) in &self.skipped {
            writeln!(f, "{count} skipped: {reason}")?;
        }
        write!(f, "{} passed, {} failed", self.passed, self.failed.len())?;
        match self.skipped() {
            0 => Ok(()),
            skipped => write!(f, ", {skipped} skipped"),
        }
    }
}
