//! The watches of operated kinds, of the objects that their operators make, and of the leases of official operators.

use runtime::{
    Stop,
    watch::{ApiResource, Config, KindDecoder, Watch, WatchChange, WatchSource},
};
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    CHANGES, OperatorMode, Operators,
    object_cache::forget_content,
    operator_loop::NumberedChange,
    parent::ParentKind,
    resources::{WatchedChild, resource, watched_children, watched_nodes},
    takeover,
};

impl Operators {
    /// Starts the watches of operated kinds and of their objects. Returns their number.
    pub(super) fn watch(
        &self,
        kinds: &[ParentKind],
        further: Vec<WatchedChild>,
        changes: &mpsc::Sender<NumberedChange>,
        stop: &Stop,
        tasks: &mut JoinSet<()>,
    ) -> usize {
        let parents = kinds.iter().map(|kind| (kind.resource(), None));
        let nodes = kinds.contains(&ParentKind::AppWrapper).then(watched_nodes);
        let children = watched_children().into_iter().chain(nodes).chain(further);
        let children = children.map(|child| (child.resource, Some(child.selector)));
        let mut n_watches = 0;
        for (resource, selector) in parents.chain(children) {
            let number = n_watches;
            n_watches += 1;
            let (sender, mut receiver) = mpsc::channel(CHANGES);
            let name = format!("operated/{}", resource.plural);
            let mut source = WatchSource::all(self.client.clone()).with_config(Config::default());
            if let Some(selector) = selector {
                source = source.selecting(selector);
            }
            let kind = resource.kind.clone();
            let decode = decoder(resource.clone());
            let metrics = &self.metrics.watches;
            let watch = Watch::from_json(
                &name,
                KindDecoder { resource: &resource, decode },
                &source,
                metrics,
            )
            .optional();
            let (changes, run) = (changes.clone(), watch.run(sender, stop.clone()));
            tasks.spawn(async move {
                run.await;
            });
            tasks.spawn(async move {
                while let Some(change) = receiver.recv().await {
                    let kind = kind.clone();
                    let numbered = NumberedChange { watch: number, kind, change };
                    if changes.send(numbered).await.is_err() {
                        return;
                    }
                }
            });
        }
        n_watches
    }

    /// Reports every change of a lease of an official operator; none without the right to watch it.
    pub(super) fn watch_leases(
        &self,
        noticed: mpsc::Sender<()>,
        stop: &Stop,
        tasks: &mut JoinSet<()>,
    ) {
        if self.mode != OperatorMode::Auto {
            return;
        }
        let resource = resource("coordination.k8s.io", "v1", "Lease", "leases");
        let (sender, mut receiver) = mpsc::channel(CHANGES);
        for operator in takeover::FOREIGN_OPERATORS {
            let only = Config::default().fields(&format!("metadata.name={}", operator.lease));
            let source = WatchSource::all(self.client.clone()).with_config(only);
            let decode = decoder(resource.clone());
            let metrics = &self.metrics.watches;
            let name = format!("operated/{}", operator.lease);
            let watch = Watch::from_json(
                &name,
                KindDecoder { resource: &resource, decode },
                &source,
                metrics,
            );
            let run = watch.optional().run(sender.clone(), stop.clone());
            tasks.spawn(async move {
                run.await;
            });
        }
        tasks.spawn(async move {
            while let Some(change) = receiver.recv().await {
                // The state at the start is known; one notice that waits stands for all later ones.
                if matches!(change, WatchChange::Apply(_) | WatchChange::Delete(_)) {
                    let _ = noticed.try_send(());
                }
            }
        });
    }
}

/// Items of lists have neither field, and decisions read both. The content of Secrets is not held, and of nodes only what marks them.
pub(super) fn decoder(
    resource: ApiResource,
) -> impl Fn(Value) -> Result<Value, serde_json::Error> + Send {
    move |mut value| {
        value["apiVersion"] = json!(resource.api_version);
        value["kind"] = json!(resource.kind);
        forget_content(&mut value);
        if resource.kind == "Node" {
            let metadata = &value["metadata"];
            let kept =
                ["name", "uid", "resourceVersion", "labels"].map(|name| (name, &metadata[name]));
            let kept: serde_json::Map<String, Value> =
                kept.into_iter().map(|(name, it)| (name.to_owned(), it.clone())).collect();
            value["metadata"] = Value::Object(kept);
            value["spec"] = Value::Null;
            value["status"] = Value::Null;
        }
        Ok(value)
    }
}
