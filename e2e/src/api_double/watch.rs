//! The events of one watch.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::body::Bytes;
use futures::{Stream, stream};
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use super::{cluster::DoubleCluster, object::DoubleRefusal, request::Selection};

/// How long a watch lasts that asks for no time.
const LASTS: Duration = Duration::from_secs(1800);

/// The position of a watch.
struct OpenWatch {
    cluster: Arc<DoubleCluster>,
    selection: Selection,
    version: u64,
    newest: watch::Receiver<u64>,
    ends: Instant,
}

impl Drop for OpenWatch {
    fn drop(&mut self) {
        self.cluster.count_watch(&self.selection.resource, |open| *open -= 1);
    }
}

/// The events of a selection after its version, until its time is over.
pub(super) fn events(
    cluster: &Arc<DoubleCluster>,
    selection: Selection,
) -> Result<impl Stream<Item = Result<Bytes, Infallible>> + use<>, DoubleRefusal> {
    let mut objects = cluster.lock();
    let version = selection.version.unwrap_or(objects.version);
    let of_resource = objects.resources.entry(selection.resource.as_str().into()).or_default();
    // Refused now, and not within the stream.
    of_resource.since(version).map(drop)?;
    let newest = of_resource.subscribe();
    drop(objects);
    cluster.count_watch(&selection.resource, |open| *open += 1);
    let ends = Instant::now() + selection.lasts.unwrap_or(LASTS);
    let watch = OpenWatch { cluster: Arc::clone(cluster), selection, version, newest, ends };
    Ok(stream::unfold(watch, |mut watch| async move { Some((Ok(watch.next().await?), watch)) }))
}

impl OpenWatch {
    /// The next events as one text; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            self.newest.borrow_and_update();
            let text = self.read().ok()?;
            if !text.is_empty() {
                return Some(text.into());
            }
            timeout_at(self.ends, self.newest.changed()).await.ok()?.ok()?;
        }
    }

    fn read(&mut self) -> Result<Vec<u8>, DoubleRefusal> {
        let objects = self.cluster.lock();
        let of_resource = objects.resources.get(self.selection.resource.as_str());
        let of_resource = of_resource.ok_or(DoubleRefusal::NotServed)?;
        let changes: Vec<_> = of_resource.since(self.version)?.cloned().collect();
        drop(objects);
        let mut text = Vec::new();
        for change in changes {
            self.version = change.object.version;
            if self.selection.selects(&change.object) {
                text.extend_from_slice(br#"{"type":""#);
                text.extend_from_slice(change.event.name().as_bytes());
                text.extend_from_slice(br#"","object":"#);
                text.extend_from_slice(&change.object.text);
                text.extend_from_slice(b"}\n");
            }
        }
        Ok(text)
    }
}
