//! Delivery of changes to the receiver of a watch, without the type of its kind.
//!
//! The task of a watch is compiled once: it handles decoded objects as [`ErasedObject`]s. Only the two ends know the kind,
//! the decoder and the channel.

use std::{any::Any, sync::Arc};

use futures::future::BoxFuture;
use tokio::sync::mpsc::Sender;

use super::{Change, Key, WatchChange, store::SharedStore};

/// A decoded object of any kind, shared by the subscribers of its store.
pub(super) type SharedObject = Arc<dyn Any + Send + Sync>;

/// A decoded object of any kind, with its key.
#[derive(Clone)]
pub(super) struct ErasedObject {
    pub(super) key: Key,
    pub(super) object: SharedObject,
}

/// Decodes the text of an object; the error is a message for the log.
pub(super) type Decoder<T> = Box<dyn Fn(&Key, &str) -> Result<T, String> + Send>;

/// Delivers one change. Fails if nothing receives changes any more.
pub(super) type Delivery =
    Box<dyn Fn(WatchChange<ErasedObject>) -> BoxFuture<'static, Delivered> + Send + Sync>;

/// Whether a change was delivered.
pub(super) type Delivered = Result<(), ReceiverClosed>;

/// The receiver of a watch was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReceiverClosed;

/// A decoder that hides the type of its objects.
pub(super) fn erased<K, E>(
    decode: impl Fn(&str) -> Result<K, E> + Send + 'static,
) -> Decoder<ErasedObject>
where
    K: Send + Sync + 'static,
    E: ToString,
{
    Box::new(move |key, text| match decode(text) {
        Ok(object) => Ok(ErasedObject { key: key.clone(), object: Arc::new(object) }),
        Err(error) => Err(error.to_string()),
    })
}

/// Delivers to a channel of typed changes.
pub(super) fn to_channel<K: Send + Sync + 'static>(changes: Sender<Change<K>>) -> Delivery {
    Box::new(move |change| {
        let changes = changes.clone();
        let change = change.map(|object| downcast::<K>(object.object));
        Box::pin(async move { changes.send(change).await.map_err(|_| ReceiverClosed) })
    })
}

/// Delivers to a store, which is never full.
pub(super) fn to_store(store: Arc<SharedStore>) -> Delivery {
    Box::new(move |change| {
        store.handle(change);
        Box::pin(std::future::ready(Ok(())))
    })
}

/// The object of a watch of kind `K`.
pub(super) fn downcast<K: Send + Sync + 'static>(object: SharedObject) -> Arc<K> {
    object.downcast().expect("invariant: the decoder of a watch makes objects of its kind")
}
