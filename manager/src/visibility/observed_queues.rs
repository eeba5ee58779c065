//! Pending Workloads, fed by the stores of the process, and the explanations that the Events of the leader have.

use std::sync::Arc;

use ::leader::AdmissionExplanations;
use cluster::control::has_explanation;
use crds::{
    decode::Decode,
    meta,
    names::conditions::QUOTA_RESERVED,
    v1beta2::{ClusterQueue, LocalQueue, Workload},
};
use parking_lot::RwLock;
use runtime::{
    Stop,
    watch::{Change, Key, Store, Stores},
};
use tokio::sync::{mpsc::Receiver, watch};
use visibility::{
    PendingPage, PendingWorkloads, QueueReference, answer::PageFailure, api::PendingWorkload,
};

use super::explained_events::{self, ExplainedEvent};

/// Objects that are taken under one lock. A list may have many, and a reader should not wait for all of them.
const BATCH: usize = 256;

/// Pending Workloads of a process. Cheap to clone.
#[derive(Clone)]
pub(super) struct ObservedQueues(Arc<QueueState>);

struct QueueState {
    pending: RwLock<PendingWorkloads>,
    explanations: AdmissionExplanations,
    workloads_listed: watch::Sender<bool>,
    local_queues_listed: watch::Sender<bool>,
    cluster_queues_listed: watch::Sender<bool>,
}

/// A kind that the order of pending Workloads depends on.
trait PendingKind: Sized {
    /// Takes an object; `None` if it was deleted.
    fn set(objects: &mut ListedObjects<'_>, key: &Key, object: Option<&Arc<Self>>);

    /// Whether the kind was listed.
    fn listed(state: &QueueState) -> &watch::Sender<bool>;
}

/// What a change of an object changes.
struct ListedObjects<'a> {
    pending: &'a mut PendingWorkloads,
    explanations: &'a AdmissionExplanations,
}

impl PendingKind for Workload {
    fn set(objects: &mut ListedObjects<'_>, key: &Key, object: Option<&Arc<Self>>) {
        if objects.explanations.is_observed(key) {
            let before = objects.pending.workload(namespace(key), &key.name);
            let stays = |before| object.is_some_and(|now| is_explained_alike(before, now));
            // The leader withdraws a text with its reason, and has no Event for that.
            if before.is_some_and(|before| !stays(before)) {
                objects.explanations.remove_observed(key);
            }
        }
        objects.pending.set_workload(namespace(key), &key.name, object);
    }

    fn listed(state: &QueueState) -> &watch::Sender<bool> {
        &state.workloads_listed
    }
}

impl PendingKind for LocalQueue {
    fn set(objects: &mut ListedObjects<'_>, key: &Key, object: Option<&Arc<Self>>) {
        objects.pending.set_local_queue(namespace(key), &key.name, object.map(Arc::as_ref));
    }

    fn listed(state: &QueueState) -> &watch::Sender<bool> {
        &state.local_queues_listed
    }
}

impl PendingKind for ClusterQueue {
    fn set(objects: &mut ListedObjects<'_>, key: &Key, object: Option<&Arc<Self>>) {
        objects.pending.set_cluster_queue(&key.name, object.map(Arc::as_ref));
    }

    fn listed(state: &QueueState) -> &watch::Sender<bool> {
        &state.cluster_queues_listed
    }
}

fn namespace(key: &Key) -> &str {
    key.namespace.as_deref().unwrap_or_default()
}

/// Whether an explanation of a Workload still applies: it is pending for the same reason.
fn is_explained_alike(before: &Workload, now: &Workload) -> bool {
    let reason = |workload: &Workload| {
        meta::find(&workload.status.conditions, QUOTA_RESERVED).map(|one| one.reason.clone())
    };
    before.metadata.uid == now.metadata.uid && has_explanation(now) && reason(before) == reason(now)
}

impl ObservedQueues {
    pub(super) fn new(pending: PendingWorkloads, explanations: AdmissionExplanations) -> Self {
        Self(Arc::new(QueueState {
            pending: RwLock::new(pending),
            explanations,
            workloads_listed: watch::Sender::new(false),
            local_queues_listed: watch::Sender::new(false),
            cluster_queues_listed: watch::Sender::new(false),
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

    /// Follows the Events of the replica that leads until `stop`, or until this one does.
    pub(super) fn follow_events(
        &self,
        stores: &Stores,
        stop: Stop,
    ) -> impl Future<Output = ()> + Send + use<> {
        let queues = self.clone();
        let leads = queues.0.explanations.leads().clone();
        let (watch, events) = explained_events::watch(stores, leads.clone());
        let mut workloads_listed = queues.0.workloads_listed.subscribe();
        async move {
            let follow = async {
                // An Event of a Workload that is not known is not kept.
                let _ = workloads_listed.wait_for(|listed| *listed).await;
                tokio::join!(watch, queues.handle_events(events));
            };
            tokio::select! {
                () = stop.cancelled() => {}
                // The end of this task would be that of the process.
                _ = leads.run_until_cancelled(follow) => stop.cancelled().await,
            }
        }
    }

    async fn handle_events(&self, mut events: Receiver<Change<ExplainedEvent>>) {
        while let Some(change) = events.recv().await {
            match change {
                Change::Apply(event) => self.explain(&event),
                Change::Reset { objects, .. } => {
                    explained_events::in_order(objects).iter().for_each(|one| self.explain(one));
                }
                // An Event is deleted when it is old, and the Workload may still wait.
                Change::Delete(_) | Change::Unavailable { .. } => {}
            }
        }
    }

    /// Keeps the explanation of an Event, if it is about a Workload that waits.
    fn explain(&self, event: &ExplainedEvent) {
        let ExplainedEvent { workload: key, uid, text, at: _ } = event;
        let pending = self.0.pending.read();
        let known = pending.workload(namespace(key), &key.name);
        let applies = known.is_some_and(|workload| {
            workload.metadata.uid.as_deref() == Some(uid) && has_explanation(workload)
        });
        if applies {
            self.0.explanations.observe(key.clone(), Arc::clone(text));
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
            self.set::<K>(keys.iter().map(|key| (key.clone(), None)));
        }
        for objects in objects.chunks(BATCH) {
            self.set(objects.iter().map(|object| (Key::of(&**object), Some(object))));
        }
        if is_list {
            K::listed(&self.0).send_replace(true);
        }
    }

    fn set<'a, K: PendingKind + 'a>(
        &self,
        changed: impl Iterator<Item = (Key, Option<&'a Arc<K>>)>,
    ) {
        let QueueState { pending, explanations, .. } = &*self.0;
        let mut objects = ListedObjects { pending: &mut pending.write(), explanations };
        changed.for_each(|(key, object)| K::set(&mut objects, &key, object));
    }

    /// Whether every kind has been listed once.
    pub(super) fn is_listed(&self) -> bool {
        let state = &*self.0;
        let kinds =
            [&state.workloads_listed, &state.local_queues_listed, &state.cluster_queues_listed];
        kinds.iter().all(|listed| *listed.borrow())
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
        assert_eq!(explained(), [""], "nothing is explained yet");
        let text = Some("Admissible with +1 cpu in flavor default.".into());
        explanations.update(vec![AdmissionExplained { workload: key.clone(), text }]);
        assert_eq!(explained(), ["Admissible with +1 cpu in flavor default."]);
        queues.handle(Change::<Workload>::Delete(key));
        assert_eq!(names(&queues), Ok(Vec::new()));
        queues.handle(Change::<ClusterQueue>::Delete(Key { namespace: None, name: "cq".into() }));
        assert_eq!(names(&queues), Err(PageFailure::UnknownQueue));
    }

    /// A Workload that is refused for this reason.
    fn refused(uid: &str, reason: &str) -> Arc<Workload> {
        let condition = json!({"type": "QuotaReserved", "status": "False", "reason": reason, "message": "no room"});
        let object = json!({
            "metadata": {"namespace": "ns", "name": "one", "uid": uid},
            "spec": {"queueName": "lq", "podSets": []}, "status": {"conditions": [condition]},
        });
        Arc::new(Workload::decode(&object).expect("a Workload"))
    }

    #[test]
    fn an_event_explains_the_workload_of_its_uid_until_the_reason_changes() {
        let explanations = AdmissionExplanations::default();
        let pending = PendingWorkloads::new(index::IndexConfig::default());
        let queues = ObservedQueues::new(pending, explanations.clone());
        let key = Key { namespace: Some("ns".into()), name: "one".into() };
        let event = |uid: &str| ExplainedEvent {
            workload: key.clone(),
            uid: uid.to_owned(),
            text: uid.into(),
            at: jiff::Timestamp::UNIX_EPOCH,
        };
        let text = || explanations.get(&key).as_deref().map(str::to_owned);
        queues.explain(&event("u"));
        assert_eq!(text(), None, "a Workload that is not known");
        queues.handle(Change::Apply(refused("u", "WaitingForQuota")));
        queues.explain(&event("former"));
        assert_eq!(text(), None, "an earlier Workload of the name");
        queues.explain(&event("u"));
        queues.handle(Change::Apply(refused("u", "WaitingForQuota")));
        assert_eq!(text().as_deref(), Some("u"));
        queues.handle(Change::Apply(refused("u", "NoMatchingFlavor")));
        assert_eq!(text(), None, "another reason");
        queues.explain(&event("u"));
        queues.handle(Change::Apply(refused("v", "NoMatchingFlavor")));
        assert_eq!(text(), None, "another Workload of the name");
        queues.explain(&event("v"));
        queues.handle(Change::<Workload>::Delete(key.clone()));
        assert_eq!(text(), None, "a deleted Workload");
        queues.handle(Change::Apply(refused("v", "Misconfigured")));
        queues.explain(&event("v"));
        assert_eq!(text(), None, "the condition says everything");
    }
}
