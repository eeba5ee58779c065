//! A watch that resumes at its last resourceVersion, and lists again only if that has expired.
//!
//! Every change arrives exactly once as long as the server keeps its history (etcd: five minutes). A new list is a separate
//! [`FollowedChange::Listed`], because changes before it are lost, and the ledger has to account for that.

use std::fmt::Debug;
use std::pin::Pin;
use std::time::Duration;

use futures::{Stream, StreamExt, TryStreamExt};
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

/// Pause between two attempts to reach a server.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The server ends a watch after this many seconds, and the watch resumes. This detects dead connections.
const ONE_WATCH: u32 = 60;

const GONE: u16 = 410;

/// One change.
#[derive(Debug, Clone)]
pub enum FollowedChange<K> {
    /// All objects. An earlier object that is not listed was deleted unseen.
    Listed(Vec<K>),
    /// An object appeared or changed.
    Applied(K),
    /// A deleted object, in its last state.
    Deleted(K),
}

impl<K> FollowedChange<K> {
    /// The objects that are there: all that were listed, or the one that appeared or changed.
    pub fn present(self) -> Vec<K> {
        match self {
            Self::Listed(all) => all,
            Self::Applied(one) => vec![one],
            Self::Deleted(_) => Vec::new(),
        }
    }
}

type Events<K> = Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<K>>> + Send>>;

/// Follows the objects of one kind.
pub struct Follow<K> {
    api: Api<K>,
    labels: Option<String>,
    fields: Option<String>,
    position: Option<String>,
    events: Option<Events<K>>,
    trouble: Option<String>,
}

impl<K> Follow<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    /// Everything that `api` shows.
    pub fn new(api: Api<K>) -> Self {
        Self { api, labels: None, fields: None, position: None, events: None, trouble: None }
    }

    /// Only the object of this name.
    pub fn named(mut self, name: &str) -> Self {
        self.fields = Some(format!("metadata.name={name}"));
        self
    }

    /// Only objects with these labels.
    pub fn labelled(mut self, selector: &str) -> Self {
        self.labels = Some(selector.to_owned());
        self
    }

    /// The namespace that `api` shows; `None` for all of them.
    pub(crate) fn namespace(&self) -> Option<&str> {
        let (_, path) = self.api.resource_url().split_once("/namespaces/")?;
        path.split_once('/').map(|(namespace, _)| namespace)
    }

    /// What the server last refused, if nothing has succeeded since.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// The next change. Retries without a limit; dropping the future loses no change.
    pub async fn next(&mut self) -> FollowedChange<K> {
        loop {
            match self.step().await {
                Ok(Some(change)) => {
                    self.trouble = None;
                    return change;
                }
                Ok(None) => {}
                Err(error) => {
                    self.trouble = Some(error.to_string());
                    self.events = None;
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            }
        }
    }

    /// One move: list, or watch, or read one event.
    async fn step(&mut self) -> kube::Result<Option<FollowedChange<K>>> {
        let Some(position) = self.position.clone() else {
            return self.list().await.map(Some);
        };
        let Some(events) = self.events.as_mut() else {
            let events = self.api.watch(&self.watch_params(), &position).await;
            self.events = Some(self.forgetting(events)?.boxed());
            return Ok(None);
        };
        match events.try_next().await? {
            Some(event) => self.take(event),
            None => {
                self.events = None;
                Ok(None)
            }
        }
    }

    fn take(&mut self, event: WatchEvent<K>) -> kube::Result<Option<FollowedChange<K>>> {
        Ok(match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                self.position.clone_from(&object.meta().resource_version);
                Some(FollowedChange::Applied(object))
            }
            WatchEvent::Deleted(object) => {
                self.position.clone_from(&object.meta().resource_version);
                Some(FollowedChange::Deleted(object))
            }
            WatchEvent::Bookmark(bookmark) => {
                self.position = Some(bookmark.metadata.resource_version);
                None
            }
            WatchEvent::Error(status) => {
                self.forgetting::<()>(Err(kube::Error::Api(status)))?;
                None
            }
        })
    }

    async fn list(&mut self) -> kube::Result<FollowedChange<K>> {
        let params = ListParams {
            label_selector: self.labels.clone(),
            field_selector: self.fields.clone(),
            ..ListParams::default()
        };
        let list = self.api.list(&params).await?;
        self.position = list.metadata.resource_version;
        self.events = None;
        Ok(FollowedChange::Listed(list.items))
    }

    /// Drops the position if the server reports it as expired.
    fn forgetting<T>(&mut self, result: kube::Result<T>) -> kube::Result<T> {
        if matches!(&result, Err(kube::Error::Api(status)) if status.code == GONE) {
            self.position = None;
        }
        result
    }

    fn watch_params(&self) -> WatchParams {
        WatchParams {
            label_selector: self.labels.clone(),
            field_selector: self.fields.clone(),
            ..WatchParams::default().timeout(ONE_WATCH)
        }
    }
}
