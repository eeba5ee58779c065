//! Rules that the code does not meet everywhere yet.
//!
//! A rule measures subjects (a crate, a type, a function) and has a limit. `ratchet.tsv` lists the subjects that may exceed it, and by how
//! much: rule, subject, and the most that is allowed. A measure above the limit and above its row is a violation. Numbers only
//! shrink: `cargo run -p tidy` lowers every row to the present measure and removes rows of subjects that meet the limit.

use std::fmt;

use anyhow::Context;

/// What a rule measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// The rule.
    pub rule: &'static str,
    /// A crate, a type, or a function.
    pub subject: String,
    /// The measure.
    pub measured: usize,
    /// The limit of the rule for this subject.
    pub limit: usize,
    /// What the measure counts, for the message.
    pub detail: String,
}

/// A row: rule, subject, and the most that is allowed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct RatchetRow {
    rule: String,
    subject: String,
    allowed: usize,
}

/// The table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ratchet(Vec<RatchetRow>);

impl Ratchet {
    /// Reads the table: three columns, tab separated; lines that begin with `#` are comments.
    ///
    /// # Errors
    /// If a line does not have three columns, or the third is no number.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let rows = lines.map(|line| {
            let columns: Vec<&str> = line.split('\t').collect();
            let [rule, subject, allowed] = columns[..] else {
                anyhow::bail!("not three columns: {line:?}");
            };
            let allowed = allowed.parse().with_context(|| format!("no number: {line:?}"))?;
            Ok(RatchetRow { rule: rule.to_owned(), subject: subject.to_owned(), allowed })
        });
        Ok(Self(rows.collect::<anyhow::Result<_>>()?))
    }

    /// Measures above the limit of their rule and above their row.
    #[must_use]
    pub fn exceeded(&self, measures: &[Measure]) -> Vec<String> {
        let above = measures.iter().filter(|one| one.measured > self.allowed(one));
        above
            .map(|one| {
                let (rule, subject, allowed) = (one.rule, &one.subject, self.allowed(one));
                format!("{rule} {subject}: {} of {allowed}: {}", one.measured, one.detail)
            })
            .collect()
    }

    /// The table with every row lowered to its measure, and without rows that are not needed. Nothing is raised or added.
    #[must_use]
    pub fn lowered(&self, measures: &[Measure]) -> Self {
        let rows = self.0.iter().filter_map(|row| {
            let measure = measures.iter().find(|one| row.is_of(one))?;
            let needed = measure.measured > measure.limit;
            needed.then(|| RatchetRow { allowed: row.allowed.min(measure.measured), ..row.clone() })
        });
        let mut rows: Vec<RatchetRow> = rows.collect();
        rows.sort();
        Self(rows)
    }

    /// A table that allows exactly what is measured.
    #[must_use]
    pub fn of(measures: &[Measure]) -> Self {
        let rows = measures.iter().map(|one| RatchetRow {
            rule: one.rule.to_owned(),
            subject: one.subject.clone(),
            allowed: one.measured,
        });
        Self(rows.collect()).lowered(measures)
    }

    fn allowed(&self, measure: &Measure) -> usize {
        let row = self.0.iter().find(|row| row.is_of(measure));
        row.map_or(measure.limit, |row| row.allowed.max(measure.limit))
    }
}

impl RatchetRow {
    fn is_of(&self, measure: &Measure) -> bool {
        self.rule == measure.rule && self.subject == measure.subject
    }
}

impl fmt::Display for Ratchet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# rule\tsubject\tallowed (see src/ratchet.rs; numbers only shrink)")?;
        self.0
            .iter()
            .try_for_each(|row| writeln!(f, "{}\t{}\t{}", row.rule, row.subject, row.allowed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure(subject: &str, measured: usize) -> Measure {
        let (subject, detail) = (subject.to_owned(), "a, b".to_owned());
        Measure { rule: "cycle", subject, measured, limit: 6, detail }
    }

    #[test]
    fn a_measure_may_exceed_the_limit_only_up_to_its_row() {
        let ratchet = Ratchet::parse("# comment\ncycle\tengine\t9\n").expect("a table");
        let measures = [measure("engine", 9), measure("index", 6), measure("crds", 7)];
        assert_eq!(ratchet.exceeded(&measures), ["cycle crds: 7 of 6: a, b"]);
        assert_eq!(ratchet.exceeded(&[measure("engine", 10)]), ["cycle engine: 10 of 9: a, b"]);
    }

    #[test]
    fn rows_shrink_and_go_and_are_never_raised() {
        let ratchet = Ratchet::parse("cycle\ta\t9\ncycle\tb\t9\ncycle\tc\t9\ncycle\tgone\t9\n");
        let measures = [measure("a", 7), measure("b", 6), measure("c", 12), measure("d", 8)];
        let lowered = ratchet.expect("a table").lowered(&measures);
        assert_eq!(lowered, Ratchet::parse("cycle\ta\t7\ncycle\tc\t9\n").expect("a table"));
        assert_eq!(Ratchet::parse(&lowered.to_string()).expect("a table"), lowered);
    }

    #[test]
    fn a_malformed_table_is_an_error() {
        assert!(Ratchet::parse("cycle\tengine\n").is_err());
        assert!(Ratchet::parse("cycle\tengine\tmany\n").is_err());
    }
}
