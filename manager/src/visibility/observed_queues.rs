//! Pending Workloads, fed by the stores of the process.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use ::leader::AdmissionExplanations;
use crds::{
    decode::Decode,
    v1beta2::{ClusterQueue, LocalQueue, Workload},
};
use parking_lot::RwLock;
use runtime::{
    Stop,
    watch::{Change, Key, Store, Stores},
};
use visibility::{
    PendingPage, PendingWorkloads, QueueReference, answer::PageFailure, api::PendingWorkload,
};

/// Objects that are taken under one lock. A list may have many, and a reader should not wait for all of them.
const BATCH: usize = 256;

/// Pending Workloads of a process. Cheap to clone.
#[derive(Clone)]
pub(super) struct ObservedQueues(Arc<QueueState>);

struct QueueState {
    pending: RwLock<PendingWorkloads>,
    /// Empty unless this process leads.
    explanations: AdmissionExplanations,
    workloads_listed: AtomicBool,
    local_queues_listed: AtomicBool,
    cluster_queues_listed: AtomicBool,
}

/// A kind that the order of pending Workloads depends on.
trait PendingKind: Sized {
    /// Takes an object; `None` if it was deleted.
    fn set(pending: &mut PendingWorkloads, key: &Key, object: Option<&Arc<Self>>);

    /// Whether the kind was listed.
    fn listed(state: &QueueState) -> &AtomicBool;
}

impl PendingKind for Workload {
    fn set(pending: &mut PendingWorkloads, key: &Key, object: Option<&Arc<Self>>) {
        pending.set_workload(namespace(key), &key.name, object);
    }

    fn listed(state: &QueueState) -> &AtomicBool {
        &state.workloads_listed
    }
}

impl PendingKind for LocalQueue {
    fn set(pending: &mut PendingWorkloads, key: &Key, object: Option<&Arc<Self>>) {
        pending.set_local_queue(namespace(key), &key.name, object.map(Arc::as_ref));
    }

    fn listed(state: &QueueState) -> &AtomicBool {
        &state.local_queues_listed
    }
}

impl PendingKind for ClusterQueue {
    fn set(pending: &mut PendingWorkloads, key: &Key, object: Option<&Arc<Self>>) {
        pending.set_cluster_queue(&key.name, object.map(Arc::as_ref));
    }

    fn listed(state: &QueueState) -> &AtomicBool {
        &state.cluster_queues_listed
    }
}

fn namespace(key: &Key) -> &str {
    key.namespace.as_deref().unwrap_or_default()
}

impl ObservedQueues {
    pub(super) fn new(pending: PendingWorkloads, explanations: AdmissionExplanations) -> Self {
        Self(Arc::new(QueueState {
            pending: RwLock::new(pending),
            explanations,
            workloads_listed: AtomicBool::default(),
            local_queues_listed: AtomicBool::default(),
            cluster_queues_listed: AtomicBool::default(),
        }))
    }

    /// Follows the stores until `stop`.
    pub(super) fn follow(
        &self,
        stores: &mut Stores,
        stop: Stop,
    ) -> impl Future<Output = ()> + Send + use<> {
        let workloads = self.clone().follow_store(stores.of(Workload::decode_text));
        let local_queues = self.clone().follow_store(stores.of(LocalQueue::decode_text));
        let cluster_queues = self.clone().follow_store(stores.of(ClusterQueue::decode_text));
        async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = workloads => {}
                () = local_queues => {}
                () = cluster_queues => {}
            }
        }
    }

    /// Never ends.
    async fn follow_store<K>(self, store: Store<K>)
    where
        K: PendingKind + kube::Resource<DynamicType = ()> + Send + Sync + 'static,
    {
        let mut changes = store.subscribe();
        loop {
            self.handle(changes.next().await);
        }
    }

    fn handle<K: PendingKind + kube::Resource<DynamicType = ()>>(&self, change: Change<K>) {
        let is_list = change.is_list();
        let (objects, removed) = match change {
            Change::Apply(object) => (vec![object], Vec::new()),
            Change::Delete(key) => (Vec::new(), vec![key]),
            Change::Reset { objects, removed } => (objects, removed),
            Change::Unavailable { removed, .. } => (Vec::new(), removed),
        };
        for keys in removed.chunks(BATCH) {
            let mut pending = self.0.pending.write();
            keys.iter().for_each(|key| K::set(&mut pending, key, None));
        }
        for objects in objects.chunks(BATCH) {
            let mut pending = self.0.pending.write();
            for object in objects {
                K::set(&mut pending, &Key::of(&**object), Some(object));
            }
        }
        if is_list {
            K::listed(&self.0).store(true, Ordering::Release);
        }
    }

    /// Whether every kind has been listed once.
    pub(super) fn is_listed(&self) -> bool {
        let state = &*self.0;
        let kinds =
            [&state.workloads_listed, &state.local_queues_listed, &state.cluster_queues_listed];
        kinds.iter().all(|listed| listed.load(Ordering::Acquire))
    }

    /// A page of the pending Workloads of a queue.
    ///
    /// # Errors
    /// If the queue does not exist, or not everything was listed: an unknown queue may then exist.
    pub(super) fn page(
        &self,
        queue: &QueueReference<'_>,
        page: PendingPage,
    ) -> Result<Vec<PendingWorkload>, PageFailure> {
        if !self.is_listed() {
            return Err(PageFailure::NotReady);
        }
        let mut items = self.0.pending.read().page(queue, page)?;
        items.iter_mut().for_each(|item| item.explanation = self.explanation(item));
        Ok(items)
    }

    fn explanation(&self, item: &PendingWorkload) -> String {
        let (namespace, name) = (item.metadata.namespace.as_deref(), item.metadata.name.as_deref());
        let workload =
            Key { namespace: namespace.map(Into::into), name: name.unwrap_or_default().into() };
        self.0.explanations.get(&workload).as_deref().unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use cluster::control::AdmissionExplained;
    use serde_json::{Value, json};

    use super::*;

    const ALL: PendingPage = PendingPage { offset: 0, limit: 10 };

    fn list<K: Decode>(object: &Value) -> Change<K> {
        let object = K::decode(object).expect("an object");
        Change::Reset { objects: vec![Arc::new(object)], removed: Vec::new() }
    }

    fn names(queues: &ObservedQueues) -> Result<Vec<String>, PageFailure> {
        let page = queues.page(&QueueReference::ClusterQueue("cq"), ALL)?;
        Ok(page.into_iter().filter_map(|one| one.metadata.name).collect())
    }

    #[test]
    fn queues_are_answered_about_once_every_kind_was_listed() {
        let explanations = AdmissionExplanations::default();
        let pending = PendingWorkloads::new(index::IndexConfig::default());
        let queues = ObservedQueues::new(pending, explanations.clone());
        let object = |name: &str, spec: Value| json!({"metadata": {"namespace": "ns", "name": name}, "spec": spec});
        queues.handle(list::<ClusterQueue>(&object("cq", json!({}))));
        queues.handle(list::<LocalQueue>(&object("lq", json!({"clusterQueue": "cq"}))));
        assert_eq!(names(&queues), Err(PageFailure::NotReady));
        let spec = json!({"queueName": "lq", "podSets": []});
        queues.handle(list::<Workload>(&object("one", spec)));
        assert_eq!(names(&queues), Ok(vec!["one".to_owned()]));
        let key = Key { namespace: Some("ns".into()), name: "one".into() };
        let explained = || {
            let page = queues.page(&QueueReference::LocalQueue("ns", "lq"), ALL).expect("a page");
            page.into_iter().map(|one| one.explanation).collect::<Vec<_>>()
        };
        assert_eq!(explained(), [""], "a replica that does not lead");
        let text = Some("Admissible with +1 cpu in flavor default.".into());
        explanations.update(vec![AdmissionExplained { workload: key.clone(), text }]);
        assert_eq!(explained(), ["Admissible with +1 cpu in flavor default."]);
        queues.handle(Change::<Workload>::Delete(key));
        assert_eq!(names(&queues), Ok(Vec::new()));
        queues.handle(Change::<ClusterQueue>::Delete(Key { namespace: None, name: "cq".into() }));
        assert_eq!(names(&queues), Err(PageFailure::UnknownQueue));
    }
}
