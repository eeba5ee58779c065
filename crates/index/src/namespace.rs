//! Namespaces, their LimitRanges, and RuntimeClasses.
//!
//! LimitRanges and RuntimeClasses change what pending Workloads ask for, so these are entered again. Source:
//! docs/reference/kueue.md §2.5 (last paragraph), §2.7.

use std::collections::BTreeMap;

use engine::{Event, Names};
use k8s_openapi::api::{core::v1::LimitRange, node::v1::RuntimeClass};

use crate::index::Index;
use crate::labels;
use crate::requests::defaults::{amounts, summarize};

/// Workloads that the caller must enter again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Affected {
    /// None.
    Nobody,
    /// Those of a namespace that hold no quota.
    Namespace(String),
    /// Those that use a RuntimeClass and hold no quota.
    RuntimeClass(String),
}

impl Index {
    /// Enters a namespace.
    pub fn namespace(
        &mut self,
        names: &mut Names,
        name: &str,
        labels: Option<&BTreeMap<String, String>>,
    ) -> Vec<Event> {
        vec![Event::Namespace(names.namespaces.intern(name), labels.map(labels::pairs))]
    }

    /// Enters a LimitRange.
    pub fn limit_range(
        &mut self,
        namespace: &str,
        name: &str,
        range: Option<&LimitRange>,
    ) -> Affected {
        let ranges = self.ranges.entry(namespace.to_owned()).or_default();
        match range {
            None => ranges.remove(name),
            Some(range) => ranges.insert(name.to_owned(), range.clone()),
        };
        let limits = summarize(ranges.values());
        if ranges.is_empty() {
            self.ranges.remove(namespace);
        }
        let same =
            self.limits.get(namespace).map_or(limits == Default::default(), |old| *old == limits);
        if same {
            return Affected::Nobody;
        }
        self.limits.insert(namespace.to_owned(), limits);
        Affected::Namespace(namespace.to_owned())
    }

    /// Enters a RuntimeClass.
    pub fn runtime_class(&mut self, name: &str, class: Option<&RuntimeClass>) -> Affected {
        let overhead = class.and_then(|class| class.overhead.as_ref());
        let fixed = amounts(overhead.and_then(|overhead| overhead.pod_fixed.as_ref()));
        let old = match fixed.is_empty() {
            true => self.classes.remove(name),
            false => self.classes.insert(name.to_owned(), fixed.clone()),
        };
        if old.unwrap_or_default() == fixed {
            return Affected::Nobody;
        }
        Affected::RuntimeClass(name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::settings::Settings;

    #[test]
    fn a_limit_range_concerns_its_namespace_when_it_says_something_new() {
        let mut index = Index::new(Settings::default());
        let range = |cpu: &str| -> LimitRange {
            let limits = json!([{"type": "Container", "default": {"cpu": cpu}}]);
            serde_json::from_value(json!({"spec": {"limits": limits}})).expect("a LimitRange")
        };
        let all = || Affected::Namespace("a".into());
        assert_eq!(index.limit_range("a", "one", Some(&range("1"))), all());
        assert_eq!(index.limit_range("a", "one", Some(&range("1"))), Affected::Nobody);
        assert_eq!(
            index.limit_range("a", "two", Some(&range("2"))),
            Affected::Nobody,
            "the first counts"
        );
        assert_eq!(index.limit_range("a", "one", None), all());
        assert_eq!(index.limit_range("a", "two", None), all());
        assert_eq!(index.limit_range("a", "two", None), Affected::Nobody);
    }

    #[test]
    fn a_runtime_class_concerns_those_who_pay_its_overhead() {
        let mut index = Index::new(Settings::default());
        let class: RuntimeClass = serde_json::from_value(json!({
            "handler": "kata", "overhead": {"podFixed": {"cpu": "250m"}},
        }))
        .expect("a RuntimeClass");
        let plain = RuntimeClass::default();
        assert_eq!(index.runtime_class("runc", Some(&plain)), Affected::Nobody);
        assert_eq!(
            index.runtime_class("kata", Some(&class)),
            Affected::RuntimeClass("kata".into())
        );
        assert_eq!(index.runtime_class("kata", Some(&class)), Affected::Nobody);
        assert_eq!(index.runtime_class("kata", None), Affected::RuntimeClass("kata".into()));
    }
}
