//! Objects that Workloads ask with: requests or templates, and the Workloads that are evaluated after their changes.

use std::{collections::BTreeSet, sync::Arc};

use crds::{decode::Decode, meta::controller, names::KUEUE_GROUP};
use kube::Resource;
use runtime::{api_object::ApiObject, watch::Key};

use crate::control::{
    key_map::KeyMap,
    key_set::KeySet,
    outbox::{Stamp, Tracked, decode},
};

/// Objects that Workloads ask with, and the Workloads of each.
#[derive(Debug)]
pub(super) struct AskedObjects<K> {
    objects: KeyMap<Key, Tracked<K>>,
    /// By the Workload that controls them.
    of_workload: KeyMap<Key, KeySet<Key>>,
    /// Workloads that would use the name of an object which is not theirs.
    awaited_by: KeyMap<Key, BTreeSet<Key>>,
}

impl<K> Default for AskedObjects<K> {
    fn default() -> Self {
        Self {
            objects: KeyMap::default(),
            of_workload: KeyMap::default(),
            awaited_by: KeyMap::default(),
        }
    }
}

impl<K: Resource<DynamicType = ()> + Decode> AskedObjects<K> {
    /// Records an object; `None` if it is gone. Returns the Workloads that it concerns.
    pub(super) fn observe(&mut self, key: &Key, object: Option<Arc<K>>) -> Vec<Key> {
        let before = self.objects.get(key).and_then(|one| workload_of(&**one.object()));
        match (self.objects.get_mut(key), object) {
            (Some(known), Some(object)) => {
                known.observe(object);
            }
            (None, Some(object)) => {
                self.objects.insert(key.clone(), Tracked::new(object));
            }
            (_, None) => {
                self.objects.remove(key);
            }
        }
        let after = self.objects.get(key).and_then(|one| workload_of(&**one.object()));
        if let Some(before) = before.as_ref().filter(|before| Some(*before) != after.as_ref()) {
            self.of_workload.remove_member(before, key);
        }
        if let Some(after) = &after {
            self.of_workload.entry(after.clone()).or_default().insert(key.clone());
        }
        let waiting = self.awaited_by.remove(key).into_iter().flatten();
        before.into_iter().chain(after).chain(waiting).collect()
    }

    /// Records the object that a write was answered with. Returns the Workloads that it concerns.
    pub(super) fn observe_answer(&mut self, key: &Key, answer: &ApiObject) -> Vec<Key> {
        // A deletion without finalizers is answered with a status.
        let object = Some(answer).filter(|answer| !answer.is_status()).and_then(decode::<K>);
        self.observe(key, object.map(Arc::new))
    }

    /// The object of a name. A Workload that does not control it is evaluated when it changes.
    pub(super) fn of_name(&mut self, name: &Key, workload: &Key) -> Option<&Arc<K>> {
        let known = self.objects.get(name)?;
        if workload_of(&**known.object()).as_ref() != Some(workload) {
            self.awaited_by.entry(name.clone()).or_default().insert(workload.clone());
        }
        Some(known.object())
    }

    /// Objects that a Workload controls, by name. A Workload of the same name may have controlled them before.
    pub(super) fn of_workload(&self, workload: &Key) -> Vec<Arc<K>> {
        let keys = self.of_workload.get(workload).into_iter().flatten();
        let known = keys.filter_map(|key| self.objects.get(key));
        known.map(|one| Arc::clone(one.object())).collect()
    }

    /// What a write of an object is based on.
    pub(super) fn stamp(&self, key: &Key) -> Stamp {
        self.objects.get(key).map(Tracked::stamp).unwrap_or_default()
    }
}

/// The Workload that controls an object.
fn workload_of(object: &impl Resource) -> Option<Key> {
    let owner = controller(object.meta()).filter(|owner| {
        let group = owner.api_version.split('/').next();
        owner.kind == "Workload" && group == Some(KUEUE_GROUP)
    })?;
    let namespace = object.meta().namespace.as_deref().map(Into::into);
    Some(Key { namespace, name: owner.name.as_str().into() })
}
