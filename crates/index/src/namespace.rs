//! Namespaces, LimitRanges and RuntimeClasses.
//!
//! LimitRanges and RuntimeClasses change the requests of pending Workloads, so these have to be entered again.
//! Source: docs/reference/kueue.md §2.5 (last paragraph), §2.7.

use std::collections::{BTreeMap, BTreeSet};

use crds::pod::PodSpec;
use k8s_openapi::api::{core::v1::LimitRange, node::v1::RuntimeClass};

use crate::requests::{
    OwnedExactAmounts,
    limit_ranges::{NamespaceLimits, amounts, summarize},
    pod_requests::PodDefaults,
};

/// Workloads that the caller must enter again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AffectedWorkloads {
    /// No Workload.
    None,
    /// Workloads of a namespace without quota.
    InNamespace(String),
    /// Workloads of these LocalQueues (`namespace/name`) without quota.
    InLocalQueues(BTreeSet<String>),
    /// Workloads with a RuntimeClass and without quota.
    OfRuntimeClass(String),
}

/// LimitRanges and overheads: what completes the requests of pods.
#[derive(Debug, Default)]
pub(crate) struct PodDefaultsTable {
    /// LimitRanges by namespace and name, and their summary per namespace.
    limit_ranges: BTreeMap<String, BTreeMap<String, LimitRange>>,
    namespace_limits: BTreeMap<String, NamespaceLimits>,
    /// Overheads of RuntimeClasses.
    overheads: BTreeMap<String, OwnedExactAmounts>,
}

impl PodDefaultsTable {
    /// Enters a LimitRange.
    pub(crate) fn limit_range(
        &mut self,
        namespace: &str,
        name: &str,
        range: Option<&LimitRange>,
    ) -> AffectedWorkloads {
        let ranges = self.limit_ranges.entry(namespace.to_owned()).or_default();
        match range {
            None => ranges.remove(name),
            Some(range) => ranges.insert(name.to_owned(), range.clone()),
        };
        let limits = summarize(ranges.values());
        // No entry is kept for a namespace without LimitRanges.
        if ranges.is_empty() {
            self.limit_ranges.remove(namespace);
        }
        let same = self
            .namespace_limits
            .get(namespace)
            .map_or(limits == Default::default(), |old| *old == limits);
        // Another LimitRange with the same summary changes no request.
        if same {
            return AffectedWorkloads::None;
        }
        self.namespace_limits.insert(namespace.to_owned(), limits);
        AffectedWorkloads::InNamespace(namespace.to_owned())
    }

    /// Enters a RuntimeClass.
    pub(crate) fn runtime_class(
        &mut self,
        name: &str,
        class: Option<&RuntimeClass>,
    ) -> AffectedWorkloads {
        let overhead = class.and_then(|class| class.overhead.as_ref());
        let fixed = amounts(overhead.and_then(|overhead| overhead.pod_fixed.as_ref()));
        let old = if fixed.is_empty() {
            self.overheads.remove(name)
        } else {
            self.overheads.insert(name.to_owned(), fixed.clone())
        };
        // Only the overhead of a RuntimeClass counts in requests.
        if old.unwrap_or_default() == fixed {
            return AffectedWorkloads::None;
        }
        AffectedWorkloads::OfRuntimeClass(name.to_owned())
    }

    /// What completes the requests of pods of a namespace.
    pub(crate) fn of_pod(&self, namespace: &str, pod: Option<&PodSpec>) -> PodDefaults<'_> {
        let class = pod.and_then(|pod| pod.runtime_class_name.as_ref());
        PodDefaults {
            limits: self.namespace_limits.get(namespace),
            overhead: class.and_then(|class| self.overheads.get(class)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_changed_limit_range_affects_its_namespace() {
        let mut index = PodDefaultsTable::default();
        let range = |cpu: &str| -> LimitRange {
            let limits = json!([{"type": "Container", "default": {"cpu": cpu}}]);
            serde_json::from_value(json!({"spec": {"limits": limits}})).expect("a LimitRange")
        };
        let all = || AffectedWorkloads::InNamespace("a".into());
        assert_eq!(index.limit_range("a", "one", Some(&range("1"))), all());
        assert_eq!(index.limit_range("a", "one", Some(&range("1"))), AffectedWorkloads::None);
        assert_eq!(
            index.limit_range("a", "two", Some(&range("2"))),
            AffectedWorkloads::None,
            "the first counts"
        );
        assert_eq!(index.limit_range("a", "one", None), all());
        assert_eq!(index.limit_range("a", "two", None), all());
        assert_eq!(index.limit_range("a", "two", None), AffectedWorkloads::None);
    }

    #[test]
    fn a_changed_runtime_class_overhead_affects_its_workloads() {
        let mut index = PodDefaultsTable::default();
        let class: RuntimeClass = serde_json::from_value(json!({
            "handler": "kata", "overhead": {"podFixed": {"cpu": "250m"}},
        }))
        .expect("a RuntimeClass");
        let plain = RuntimeClass::default();
        assert_eq!(index.runtime_class("runc", Some(&plain)), AffectedWorkloads::None);
        assert_eq!(
            index.runtime_class("kata", Some(&class)),
            AffectedWorkloads::OfRuntimeClass("kata".into())
        );
        assert_eq!(index.runtime_class("kata", Some(&class)), AffectedWorkloads::None);
        assert_eq!(
            index.runtime_class("kata", None),
            AffectedWorkloads::OfRuntimeClass("kata".into())
        );
    }
}
