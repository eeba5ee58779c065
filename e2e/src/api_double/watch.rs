//! The events of one watch.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::body::Bytes;
use futures::{Stream, stream};
use tokio::time::{Instant, timeout_at};

use super::{
    cluster::{DoubleCluster, DoubleFollow},
    object::DoubleRefusal,
    request::Selection,
    resource::RepeatedChange,
};

/// How long a watch lasts that asks for no time.
const LASTS: Duration = Duration::from_secs(1800);

/// The position of a watch.
struct OpenWatch {
    cluster: Arc<DoubleCluster>,
    selection: Selection,
    follow: DoubleFollow,
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
    let follow = cluster.follow_after(&selection.resource, selection.version);
    // Refused now, and not within the stream.
    follow.logged().map(drop)?;
    cluster.count_watch(&selection.resource, |open| *open += 1);
    let ends = Instant::now() + selection.lasts.unwrap_or(LASTS);
    let watch = OpenWatch { cluster: Arc::clone(cluster), selection, follow, ends };
    Ok(stream::unfold(watch, |mut watch| async move { Some((Ok(watch.next().await?), watch)) }))
}

impl OpenWatch {
    /// The next events as one text; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let changes = timeout_at(self.ends, self.follow.next_logged()).await.ok()?.ok()?;
            let text = self.text(&changes);
            if !text.is_empty() {
                return Some(text.into());
            }
        }
    }

    /// The changes that are selected.
    fn text(&self, changes: &[RepeatedChange]) -> Vec<u8> {
        let mut text = Vec::new();
        for change in changes.iter().filter(|change| self.selection.selects(&change.object)) {
            text.extend_from_slice(br#"{"type":""#);
            text.extend_from_slice(change.event.name().as_bytes());
            text.extend_from_slice(br#"","object":"#);
            text.extend_from_slice(&change.object.text);
            text.extend_from_slice(b"}\n");
        }
        text
    }
}
