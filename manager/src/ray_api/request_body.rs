//! Bodies of requests. They are read whole, because a request may be sent more than once; all together have a limit.

use std::{sync::Arc, time::Duration};

use axum::body::{Body, Bytes, HttpBody};
use futures::StreamExt;
use ray_api::RayApiRefusal;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// The longest body of an object. The API server takes no longer one.
pub(super) const OBJECT: usize = 3 << 20;

/// The longest body of a request to a head. Longer packages belong into a store that the head reads.
pub(super) const FOR_HEAD: usize = 16 << 20;

/// A handshake has no body.
pub(super) const OF_HANDSHAKE: usize = 0;

/// KiB of all bodies together.
const ALL: usize = 128 << 10;

/// The time that a body may take to arrive.
const ARRIVES_WITHIN: Duration = Duration::from_secs(30);

/// Memory for the bodies of requests.
pub(super) struct BodyMemory(Arc<Semaphore>);

/// A body, and its share of the memory.
pub(super) struct HeldBody {
    /// What was sent.
    pub(super) bytes: Bytes,
    _share: Option<OwnedSemaphorePermit>,
}

impl Default for BodyMemory {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ALL)))
    }
}

impl BodyMemory {
    /// Reads a body of at most `most` bytes.
    ///
    /// # Errors
    /// If it is longer, if there is no memory, or if it does not arrive in time.
    pub(super) async fn read(&self, body: Body, most: usize) -> Result<HeldBody, RayApiRefusal> {
        let hint = body.size_hint();
        let announced =
            hint.upper().map_or(most, |upper| usize::try_from(upper).unwrap_or(usize::MAX));
        if announced > most {
            return Err(RayApiRefusal::TooLong(most));
        }
        let share = self.share(announced)?;
        let read = timeout(ARRIVES_WITHIN, collect(body, most)).await;
        let bytes = read.map_err(|_| RayApiRefusal::BodyNotReceived)??;
        Ok(HeldBody { bytes, _share: share })
    }

    /// The share of a body of this length; none for a request without one.
    fn share(&self, length: usize) -> Result<Option<OwnedSemaphorePermit>, RayApiRefusal> {
        let Some(units) = u32::try_from(length.div_ceil(1024)).ok().filter(|units| *units > 0)
        else {
            return Ok(None);
        };
        let share = self.0.clone().try_acquire_many_owned(units);
        share.map(Some).map_err(|_| RayApiRefusal::TooManyRequests)
    }
}

async fn collect(body: Body, most: usize) -> Result<Bytes, RayApiRefusal> {
    let mut data = body.into_data_stream();
    let mut all = Vec::new();
    while let Some(part) = data.next().await {
        let part = part.map_err(|_| RayApiRefusal::BodyNotReceived)?;
        if part.len() > most.saturating_sub(all.len()) {
            return Err(RayApiRefusal::TooLong(most));
        }
        all.extend_from_slice(&part);
    }
    Ok(all.into())
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    async fn read(memory: &BodyMemory, body: Body) -> Result<usize, RayApiRefusal> {
        memory.read(body, 2048).await.map(|held| held.bytes.len())
    }

    fn unannounced(parts: usize) -> Body {
        let part = || Ok::<_, std::io::Error>(Bytes::from(vec![0; 1024]));
        Body::from_stream(stream::iter((0..parts).map(move |_| part())))
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_has_a_limit_whether_or_not_its_length_is_announced() {
        let memory = BodyMemory::default();
        assert_eq!(read(&memory, Body::empty()).await, Ok(0));
        assert_eq!(read(&memory, vec![0; 2048].into()).await, Ok(2048));
        assert_eq!(read(&memory, vec![0; 2049].into()).await, Err(RayApiRefusal::TooLong(2048)));
        assert_eq!(read(&memory, unannounced(2)).await, Ok(2048));
        assert_eq!(read(&memory, unannounced(3)).await, Err(RayApiRefusal::TooLong(2048)));
        let never = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        assert_eq!(read(&memory, never).await, Err(RayApiRefusal::BodyNotReceived));
    }

    #[tokio::test]
    async fn all_bodies_together_have_a_limit() {
        let memory = BodyMemory(Arc::new(Semaphore::new(3)));
        let held = memory.read(vec![0; 2048].into(), 2048).await.expect("memory");
        assert_eq!(read(&memory, vec![0; 2048].into()).await, Err(RayApiRefusal::TooManyRequests));
        assert_eq!(read(&memory, Body::empty()).await, Ok(0));
        drop(held);
        assert_eq!(read(&memory, vec![0; 2048].into()).await, Ok(2048));
    }
}
