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

    /// Recorded names of objects that differ from one in a single number of a placeholder: `<r5:3>` instead of `<r5:1>`.
    pub(crate) fn alike(&self, kind: &str, recorded: &str) -> Vec<String> {
        let names = self.bound.keys().filter(|(of, name)| {
            of == kind && name != recorded && differing_placeholders(recorded, name).is_some()
        });
        names.map(|(_, name)| name.clone()).collect()
    }

    /// Lets two recorded names of one kind stand for each other's objects, and all names that were derived from them as well.
    pub(crate) fn exchange(&mut self, one: &str, other: &str) {
        let Some((of_one, of_other)) = differing_placeholders(one, other) else { return };
        let derived: Vec<(String, String)> =
            self.bound.keys().filter(|(_, name)| name.contains(&of_one)).cloned().collect();
        for key in derived {
            let counterpart = (key.0.clone(), key.1.replace(&of_one, &of_other));
            let (Some(name), Some(of_counterpart)) =
                (self.bound.get(&key).cloned(), self.bound.get(&counterpart).cloned())
            else {
                continue;
            };
            self.bound.insert(key, of_counterpart);
            self.bound.insert(counterpart, name);
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
    let (Some(mut text), Some(rest)) = (text.strip_prefix(head), after_placeholder(rest)) else {
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

/// What follows a placeholder. Its name may have placeholders of its own: `<uid:Pod/d-<r5:1>>`.
fn after_placeholder(name: &str) -> Option<&str> {
    let mut depth = 1;
    let end = name.char_indices().find(|(_, c)| {
        depth += match c {
            '<' => 1,
            '>' => -1,
            _ => 0,
        };
        depth == 0
    });
    end.and_then(|(at, _)| name.get(at + 1..))
}

/// The placeholders in which two recorded names differ, if they differ in one and have the same kind: `<r5:1>` and `<r5:3>`.
fn differing_placeholders(one: &str, other: &str) -> Option<(String, String)> {
    let parts =
        |name: &str| -> Vec<String> { name.split_inclusive('>').map(str::to_owned).collect() };
    let (one, other) = (parts(one), parts(other));
    let mut differing = one.iter().zip(&other).filter(|(one, other)| one != other);
    let (of_one, of_other) = differing.next().filter(|_| one.len() == other.len())?;
    let ((head, of_one), (other_head, of_other)) =
        (of_one.split_once('<')?, of_other.split_once('<')?);
    let same_kind = of_one.split_once(':')?.0 == of_other.split_once(':')?.0;
    (differing.next().is_none() && head == other_head && same_kind)
        .then(|| (format!("<{of_one}"), format!("<{of_other}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_objects_exchange_their_names_with_all_that_is_derived() {
        let mut names = TraceNames::of("t-1");
        for (number, pod) in [(1, "one"), (2, "two"), (3, "three")] {
            names.bind("Pod", &format!("d-<pth:1>-<r5:{number}>"), pod);
            let workload = format!("pod-d-<pth:1>-<r5:{number}>-<h5:1>");
            names.bind("Workload", &workload, &format!("of-{pod}"));
        }
        names.bind("Pod", "e-<pth:1>-<r5:1>", "of another set");
        let alike = names.alike("Pod", "d-<pth:1>-<r5:3>");
        assert_eq!(alike, ["d-<pth:1>-<r5:1>", "d-<pth:1>-<r5:2>"]);
        names.exchange("d-<pth:1>-<r5:3>", "d-<pth:1>-<r5:1>");
        let name = |kind, recorded| names.name(kind, recorded).expect("bound");
        assert_eq!(name("Pod", "d-<pth:1>-<r5:3>"), "one");
        assert_eq!(name("Workload", "pod-d-<pth:1>-<r5:3>-<h5:1>"), "of-one");
        assert_eq!(name("Workload", "pod-d-<pth:1>-<r5:1>-<h5:1>"), "of-three");
        assert_eq!(name("Pod", "d-<pth:1>-<r5:2>"), "two");
    }

    #[test]
    fn placeholders_stand_for_any_text() {
        let mut names = TraceNames::of("t-1");
        assert!(names.matches("job-j-<h5:1>", "job-j-0a1b2"));
        assert!(names.matches("<ns>-tiny has <varies>", "t-1-tiny has 3 cpu"));
        assert!(!names.matches("job-j-<h5:1>-x", "job-j-0a1b2"));
        assert!(names.matches("UID: <uid:Pod/d-<r5:1>>.", "UID: 0a1b."));
        assert!(!names.matches("UID: <uid:Pod/d-<r5:1>>.", "UID: 0a1b"));
        assert_eq!(names.name("Workload", "job-j-<h5:1>"), None);
        names.bind("Workload", "job-j-<h5:1>", "job-j-0a1b2");
        assert_eq!(names.name("Workload", "job-j-<h5:1>").as_deref(), Some("job-j-0a1b2"));
        assert_eq!(names.fill("/<ns>/job-j-<h5:1>"), "/t-1/job-j-0a1b2");
        assert!(names.is_bound("Workload", "job-j-0a1b2"));
    }
}
