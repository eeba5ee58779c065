//! Names, uids and times of a recording that differ from run to run.

use std::collections::BTreeMap;

/// The text of an object or a list about which nothing is compared.
pub(crate) const VARIES: &str = "<varies>";

/// Names of a case: those of the recording, with those of this run.
#[derive(Debug, Default)]
pub(crate) struct TraceNames {
    namespace: String,
    /// By kind and recorded name.
    bound: BTreeMap<(String, String), String>,
}

impl TraceNames {
    pub(crate) fn of(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), bound: BTreeMap::new() }
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A recorded text with the namespace and the names of this run.
    pub(crate) fn fill(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        for ((_, recorded), name) in &self.bound {
            filled = filled.replace(recorded, name);
        }
        filled.replace("<ns>", &self.namespace)
    }

    /// The name that a recorded one has in this run, if it is known.
    pub(crate) fn name(&self, kind: &str, recorded: &str) -> Option<String> {
        if let Some(name) = self.bound.get(&(kind.to_owned(), recorded.to_owned())) {
            return Some(name.clone());
        }
        let filled = recorded.replace("<ns>", &self.namespace);
        (!filled.contains('<')).then_some(filled)
    }

    /// Whether an object has a recorded name already.
    pub(crate) fn is_bound(&self, kind: &str, name: &str) -> bool {
        self.bound.iter().any(|((of, _), bound)| of == kind && bound == name)
    }

    pub(crate) fn bind(&mut self, kind: &str, recorded: &str, name: &str) {
        if recorded.contains('<') {
            self.bound.insert((kind.to_owned(), recorded.to_owned()), name.to_owned());
        }
    }

    /// Whether a text is the recorded one: every placeholder stands for any text.
    pub(crate) fn matches(&self, recorded: &str, text: &str) -> bool {
        is_like(&recorded.replace("<ns>", &self.namespace), text)
    }
}

/// Whether a text has the fixed parts of a pattern in their order, with anything in place of `<…>`.
fn is_like(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('<') else {
        return pattern == text;
    };
    let (Some(mut text), Some((_, rest))) = (text.strip_prefix(head), rest.split_once('>')) else {
        return false;
    };
    loop {
        if is_like(rest, text) {
            return true;
        }
        let mut chars = text.chars();
        if chars.next().is_none() {
            return false;
        }
        text = chars.as_str();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_stand_for_any_text() {
        let mut names = TraceNames::of("t-1");
        assert!(names.matches("job-j-<h5:1>", "job-j-0a1b2"));
        assert!(names.matches("<ns>-tiny has <varies>", "t-1-tiny has 3 cpu"));
        assert!(!names.matches("job-j-<h5:1>-x", "job-j-0a1b2"));
        assert_eq!(names.name("Workload", "job-j-<h5:1>"), None);
        names.bind("Workload", "job-j-<h5:1>", "job-j-0a1b2");
        assert_eq!(names.name("Workload", "job-j-<h5:1>").as_deref(), Some("job-j-0a1b2"));
        assert_eq!(names.fill("/<ns>/job-j-<h5:1>"), "/t-1/job-j-0a1b2");
        assert!(names.is_bound("Workload", "job-j-0a1b2"));
    }
}
