//! Objects that belong to no queue: labels of namespaces, and values of priority classes.

use std::collections::BTreeMap;

use crate::control::key_map::KeyMap;
use crds::v1beta2::{Workload, WorkloadPriorityClass};
use jobs::{
    construct_workload::{PrioritySource, WorkloadPriority, class_ref},
    reconcile::is_clone,
};
use k8s_openapi::api::{core::v1::Namespace, scheduling::v1::PriorityClass};

/// Labels of namespaces, and values of classes.
#[derive(Debug, Default)]
pub(crate) struct NamespacesAndPriorities {
    namespaces: KeyMap<Box<str>, BTreeMap<String, String>>,
    priorities: KeyMap<Box<str>, Class>,
    workload_priorities: KeyMap<Box<str>, i32>,
}

#[derive(Clone, Copy, Debug)]
struct Class {
    value: i32,
    is_default: bool,
}

impl NamespacesAndPriorities {
    /// The labels of a namespace; `None` if there is no such namespace.
    pub(crate) fn namespace(&self, name: &str) -> Option<&BTreeMap<String, String>> {
        self.namespaces.get(name)
    }

    /// The priority of a job; `None` if its class does not exist.
    pub(crate) fn priority(&self, source: &PrioritySource) -> Option<WorkloadPriority> {
        let value = match source {
            PrioritySource::WorkloadPriorityClass(name) => {
                *self.workload_priorities.get(name.as_str())?
            }
            PrioritySource::PriorityClass(name) => self.priorities.get(name.as_str())?.value,
            PrioritySource::ClusterDefault => return Some(self.default_priority()),
        };
        Some(WorkloadPriority { value, class: class_ref(source) })
    }

    /// The value that a Workload gets from its WorkloadPriorityClass, if that exists.
    ///
    /// Not of a MultiKueue copy: its priority is that of its manager, which would write its value back for ever where the
    /// class has another value (docs/reference/multikueue.md §2.5). Nor of a variant: its priority is that of its parent, which may
    /// have been edited (docs/reference/kueue.md §2.8).
    pub(crate) fn class_priority(&self, workload: &Workload) -> Option<i32> {
        if is_clone(workload) || workload.parent().is_some() {
            return None;
        }
        let class = workload.spec.priority_class_ref.as_ref()?;
        let value = self.workload_priorities.get(class.name.as_str());
        // The value of a PriorityClass is read once, at creation (docs/reference/kueue.md §2.8).
        value.copied().filter(|_| class.kind == "WorkloadPriorityClass")
    }

    /// Records a namespace.
    pub(crate) fn set_namespace(&mut self, name: Box<str>, object: Option<&Namespace>) {
        match object {
            Some(object) => {
                self.namespaces.insert(name, object.metadata.labels.clone().unwrap_or_default());
            }
            None => {
                self.namespaces.remove(&name);
            }
        }
    }

    /// Records a PriorityClass.
    pub(crate) fn set_priority_class(&mut self, name: Box<str>, object: Option<&PriorityClass>) {
        match object {
            Some(class) => {
                let is_default = class.global_default == Some(true);
                let class = Class { value: class.value.unwrap_or(0), is_default };
                self.priorities.insert(name, class);
            }
            None => {
                self.priorities.remove(&name);
            }
        }
    }

    /// Records a WorkloadPriorityClass.
    pub(crate) fn set_workload_priority_class(
        &mut self,
        name: Box<str>,
        object: Option<&WorkloadPriorityClass>,
    ) {
        match object {
            Some(class) => {
                self.workload_priorities.insert(name, class.value);
            }
            None => {
                self.workload_priorities.remove(&name);
            }
        }
    }

    fn default_priority(&self) -> WorkloadPriority {
        let default = self.priorities.iter().filter(|(_, class)| class.is_default);
        // The API server admits one default class; a race may leave several, of which the lowest counts.
        match default.min_by_key(|(_, class)| class.value) {
            Some((name, class)) => {
                let source = PrioritySource::PriorityClass(name.to_string());
                WorkloadPriority { value: class.value, class: class_ref(&source) }
            }
            None => WorkloadPriority::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    #[test]
    fn of_several_default_classes_the_lowest_counts() {
        let mut known = NamespacesAndPriorities::default();
        for (name, value) in [("b", 20), ("a", 10), ("c", 30)] {
            let class =
                json!({ "metadata": { "name": name }, "value": value, "globalDefault": true });
            let class: PriorityClass = serde_json::from_value(class).expect("a class");
            known.set_priority_class(name.into(), Some(&Arc::new(class)));
        }
        let priority = known.priority(&PrioritySource::ClusterDefault).expect("a default");
        assert_eq!(priority.value, 10);
    }
}
