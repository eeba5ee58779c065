//! The words of one line: `kind name key=value flag …`.

use engine::spec::QueueEligibility;

/// The words of one line.
pub(super) struct Words<'a>(Vec<&'a str>);

impl<'a> Words<'a> {
    pub(super) fn of(line: &'a str) -> Self {
        Self(line.split_whitespace().collect())
    }

    pub(super) fn kind(&self) -> &'a str {
        self.at(0)
    }

    pub(super) fn name(&self) -> &'a str {
        self.at(1)
    }

    pub(super) fn at(&self, place: usize) -> &'a str {
        self.0.get(place).copied().unwrap_or_default()
    }

    /// Everything after the name.
    pub(super) fn rest(&self) -> &[&'a str] {
        self.0.get(2..).unwrap_or_default()
    }

    /// The parts between `+`; kind and name belong to the first.
    pub(super) fn parts(&self) -> Vec<Self> {
        self.0.split(|word| *word == "+").map(|part| Self(part.to_vec())).collect()
    }

    pub(super) fn has(&self, flag: &str) -> bool {
        self.0.contains(&flag)
    }

    /// All pairs.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&'a str, &'a str)> + '_ {
        self.0.iter().filter_map(|word| word.split_once('='))
    }

    /// The values of a key that may occur more than once.
    pub(super) fn all<'b>(&'b self, key: &'b str) -> impl Iterator<Item = &'a str> + 'b {
        self.pairs().filter(move |(one, _)| *one == key).map(|(_, value)| value)
    }

    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        self.pairs().find(|(one, _)| *one == key).map(|(_, value)| value)
    }

    pub(super) fn number(&self, key: &str) -> Option<i64> {
        self.text(key).map(|value| value.parse().expect("a number"))
    }

    pub(super) fn eligibility(&self) -> QueueEligibility {
        match self.text("hold") {
            None => QueueEligibility::Eligible,
            Some("requeue") => QueueEligibility::AwaitsRequeue,
            Some("out") => QueueEligibility::Excluded,
            Some(other) => unreachable!("unknown eligibility {other}"),
        }
    }
}

/// `key:value`, or a key alone.
pub(super) fn pair(text: &str) -> (Box<str>, Option<Box<str>>) {
    match text.split_once(':') {
        Some((key, value)) => (key.into(), Some(value.into())),
        None => (text.into(), None),
    }
}

/// `key:value`.
pub(super) fn label(text: &str) -> (Box<str>, Box<str>) {
    let (key, value) = pair(text);
    (key, value.unwrap_or_default())
}
