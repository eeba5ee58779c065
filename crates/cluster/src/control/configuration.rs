//! What belongs to nobody's queue: namespaces, priorities, defaults of resources.

use std::collections::BTreeMap;

use crds::v1beta2::{PriorityClassRef, WorkloadPriorityClass};
use index::AffectedWorkloads;
use jiff::Timestamp;
use jobs::construct_workload::{PrioritySource, WorkloadPriority, class_ref};
use k8s_openapi::{
    Metadata, Resource,
    api::{
        core::v1::{LimitRange, Namespace},
        node::v1::RuntimeClass,
        scheduling::v1::PriorityClass,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use runtime::watch::{Change, Key};

use super::{Control, due::What};

/// Labels of namespaces, and values of classes.
#[derive(Debug, Default)]
pub(crate) struct Configuration {
    namespaces: BTreeMap<Box<str>, BTreeMap<String, String>>,
    priorities: BTreeMap<Box<str>, Class>,
    workload_priorities: BTreeMap<Box<str>, i32>,
}

#[derive(Clone, Copy, Debug)]
struct Class {
    value: i32,
    is_default: bool,
}

impl Configuration {
    /// The labels of a namespace, if there is such.
    pub(crate) fn namespace(&self, name: &str) -> Option<&BTreeMap<String, String>> {
        self.namespaces.get(name)
    }

    /// A priority, looked up; none if the class is missing.
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

    /// The value of a WorkloadPriorityClass.
    pub(crate) fn workload_priority(&self, class: &PriorityClassRef) -> Option<i32> {
        self.workload_priorities.get(class.name.as_str()).copied()
    }

    fn default_priority(&self) -> WorkloadPriority {
        let default = self.priorities.iter().filter(|(_, class)| class.is_default);
        match default.max_by_key(|(_, class)| class.value) {
            Some((name, class)) => {
                let source = PrioritySource::PriorityClass(name.to_string());
                WorkloadPriority { value: class.value, class: class_ref(&source) }
            }
            None => WorkloadPriority::default(),
        }
    }
}

/// One object of a change at a time: as it is now, or gone.
pub(super) fn each<K: Metadata<Ty = ObjectMeta>>(
    change: Change<K>,
    mut apply: impl FnMut(Key, Option<K>),
) {
    let key = |object: &K| Key {
        namespace: object.metadata().namespace.as_deref().map(Into::into),
        name: object.metadata().name.as_deref().unwrap_or_default().into(),
    };
    match change {
        Change::Apply(object) => apply(key(&object), Some(object)),
        Change::Delete(gone) => apply(gone, None),
        Change::Reset { objects, removed } => {
            removed.into_iter().for_each(|gone| apply(gone, None));
            objects.into_iter().for_each(|object| apply(key(&object), Some(object)));
        }
    }
}

/// Whether a change completes a list.
pub(super) fn is_list<K>(change: &Change<K>) -> bool {
    matches!(change, Change::Reset { .. })
}

impl Control {
    /// Enters every object of a change, and notes that its kind was listed.
    pub(super) fn take<K>(
        &mut self,
        change: Change<K>,
        mut apply: impl FnMut(&mut Self, Key, Option<K>),
    ) where
        K: Metadata<Ty = ObjectMeta> + Resource,
    {
        let listed = is_list(&change);
        each(change, |key, object| apply(self, key, object));
        if listed {
            self.listed(K::KIND);
        }
    }

    pub(super) fn namespaces(&mut self, change: Change<Namespace>) {
        self.take(change, |this, key, object| {
            let labels = object.map(|object| object.metadata.labels.unwrap_or_default());
            let names = this.engine.names_mut();
            let events = this.index.namespace(names, &key.name, labels.as_ref());
            this.tell(events);
            match labels {
                Some(labels) => this.configuration.namespaces.insert(key.name, labels),
                None => this.configuration.namespaces.remove(&key.name),
            };
            this.all_jobs_due();
        });
    }

    pub(super) fn limit_ranges(&mut self, change: Change<LimitRange>, now: Timestamp) {
        self.take(change, |this, key, object| {
            let namespace = key.namespace.clone().unwrap_or_default();
            let affected = this.index.limit_range(&namespace, &key.name, object.as_ref());
            this.affected(&affected, now);
        });
    }

    pub(super) fn runtime_classes(&mut self, change: Change<RuntimeClass>, now: Timestamp) {
        self.take(change, |this, key, object| {
            let affected = this.index.runtime_class(&key.name, object.as_ref());
            this.affected(&affected, now);
        });
    }

    fn affected(&mut self, affected: &AffectedWorkloads, now: Timestamp) {
        match affected {
            AffectedWorkloads::None => {}
            AffectedWorkloads::InNamespace(name) => {
                self.enter_again(now, |key, _| key.namespace.as_deref() == Some(name));
            }
            AffectedWorkloads::OfRuntimeClass(name) => self.enter_again(now, |_, workload| {
                let sets = workload.spec.pod_sets.iter();
                let mut pods = sets.filter_map(|set| set.template.spec.as_ref());
                pods.any(|pod| pod.runtime_class_name.as_ref() == Some(name))
            }),
        }
    }

    pub(super) fn priority_classes(&mut self, change: Change<PriorityClass>) {
        self.take(change, |this, key, object| {
            let priorities = &mut this.configuration.priorities;
            match object {
                Some(class) => {
                    let is_default = class.global_default == Some(true);
                    priorities
                        .insert(key.name, Class { value: class.value.unwrap_or(0), is_default });
                }
                None => {
                    priorities.remove(&key.name);
                }
            }
            this.all_jobs_due();
        });
    }

    /// The value of such a class is written into every Workload that refers to it.
    pub(super) fn workload_priority_classes(&mut self, change: Change<WorkloadPriorityClass>) {
        self.take(change, |this, key, object| {
            match object {
                Some(class) => {
                    this.configuration.workload_priorities.insert(key.name.clone(), class.value);
                }
                None => {
                    this.configuration.workload_priorities.remove(&key.name);
                }
            }
            let refers = |record: &super::Record| {
                let class = record.object().spec.priority_class_ref.as_ref();
                class.is_some_and(|class| *class.name == *key.name)
            };
            let concerned = this.workloads.iter().filter(|(_, record)| refers(record));
            let concerned: Vec<Key> = concerned.map(|(key, _)| key.clone()).collect();
            for key in concerned {
                this.due.now(What::Workload(key));
            }
            this.all_jobs_due();
        });
    }
}
