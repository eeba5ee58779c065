//! A watch of one kind: the task, and the decoder of the kind.

use std::{marker::PhantomData, time::Duration};

use futures::future::BoxFuture;
use kube::{Resource, core::ApiResource};
use serde_json::Value;
use tokio::sync::mpsc::Sender;

use super::{
    Change, Store, WatchEnd, WatchMetrics, WatchSource,
    delivery::{Decoder, Delivery, ErasedObject, erased, to_channel, to_store},
    task::WatchTask,
};
use crate::{Stop, api_object::parse_tree};

/// A decoder of the texts of the objects of a kind.
pub type DecodeFn<K> = fn(&str) -> Result<K, serde_json::Error>;

/// A kind that is known at run time, and the decoder of its objects.
#[derive(Clone, Copy, Debug)]
pub struct KindDecoder<'a, D> {
    /// The resource of the kind.
    pub resource: &'a ApiResource,
    /// Decodes an object, from the form that the constructor of the watch names.
    pub decode: D,
}

/// A watch of one kind, to be started with [`run`](Self::run).
pub struct Watch<K> {
    task: WatchTask,
    decode: Decoder<ErasedObject>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Send + Sync + 'static> Watch<K> {
    /// Watches the objects of a kind that is known at compile time, decoded from text. `name` labels logs and metrics: the kind,
    /// with the cluster if there are several. The text is that of [`from_text`](Self::from_text).
    #[must_use]
    pub fn typed(
        name: &str,
        decode: DecodeFn<K>,
        source: &WatchSource,
        metrics: &WatchMetrics,
    ) -> Self
    where
        K: Resource<DynamicType = ()>,
    {
        let resource = ApiResource::erase::<K>(&());
        Self::from_text(name, KindDecoder { resource: &resource, decode }, source, metrics)
    }

    /// Watches the objects of a kind that is known at run time, decoded from text: that of the object without `managedFields`.
    /// Items of a list of a built-in kind have no `apiVersion` and `kind`.
    #[must_use]
    pub fn from_text<E: ToString>(
        name: &str,
        kind: KindDecoder<'_, impl Fn(&str) -> Result<K, E> + Send + 'static>,
        source: &WatchSource,
        metrics: &WatchMetrics,
    ) -> Self {
        let KindDecoder { resource, decode } = kind;
        let task = WatchTask::new(name, resource, source, metrics);
        Self { task, decode: erased(decode), kind: PhantomData }
    }

    /// Watches the objects of a kind that is known at run time, decoded from JSON values.
    #[must_use]
    pub fn from_json<E: ToString>(
        name: &str,
        kind: KindDecoder<'_, impl Fn(Value) -> Result<K, E> + Send + 'static>,
        source: &WatchSource,
        metrics: &WatchMetrics,
    ) -> Self {
        let KindDecoder { resource, decode } = kind;
        let decode = move |text: &str| match parse_tree(text) {
            Ok(object) => decode(object).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        Self::from_text(name, KindDecoder { resource, decode }, source, metrics)
    }

    /// Also lists names and versions once per interval, and restarts the stream if a change was not delivered. An API server
    /// that loses an event reports no error, so nothing else detects it.
    #[must_use]
    pub fn check_every(mut self, interval: Option<Duration>) -> Self {
        self.task.check_every = interval;
        self
    }

    /// Reports a kind that is not served or forbidden as [`Change::Unavailable`], and tries again at least every 30 s. For
    /// other watches both are failures, so nothing is reported before the first list.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.task.optional = true;
        self
    }

    /// Sends changes until stopped, or until the receiver is dropped. A slow receiver delays only this watch; changes that it
    /// missed arrive with the next list.
    pub fn run(self, changes: Sender<Change<K>>, stop: Stop) -> BoxFuture<'static, WatchEnd> {
        let receiver = changes.clone();
        let closed = Box::pin(async move { receiver.closed().await });
        boxed_run(
            self.task,
            self.decode,
            ChangeReceiver { deliver: to_channel(changes), closed },
            stop,
        )
    }

    /// Fills a store until stopped. Subscribers of the store never delay the watch.
    pub fn fill(self, store: Store<K>, stop: Stop) -> BoxFuture<'static, WatchEnd> {
        // A store without subscribers is still filled, so that a later one needs no list.
        let closed = Box::pin(std::future::pending());
        let deliver = to_store(store.shared);
        boxed_run(self.task, self.decode, ChangeReceiver { deliver, closed }, stop)
    }
}

/// Where the changes of a watch go.
struct ChangeReceiver {
    deliver: Delivery,
    /// Resolves when nothing receives changes any more.
    closed: BoxFuture<'static, ()>,
}

/// Runs a watch. The future has one type for all kinds: a task is compiled once per type.
fn boxed_run(
    task: WatchTask,
    decode: Decoder<ErasedObject>,
    receiver: ChangeReceiver,
    stop: Stop,
) -> BoxFuture<'static, WatchEnd> {
    let ChangeReceiver { deliver, closed } = receiver;
    Box::pin(task.run(decode, deliver, closed, stop))
}
