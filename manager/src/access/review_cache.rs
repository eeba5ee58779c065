//! Answers of the API server, kept for a short time, by what was asked.
//!
//! A burst of requests of one user costs one review: requests with the same question wait for one answer. Failures are not kept.
//! Keys are hashes, so that a cache needs the same memory whatever is asked, and no token stays in it.

use std::{any::Any, marker::PhantomData, sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use moka::future::Cache;
use sha2::{Digest, Sha256};

/// Upstream's time for both allowed and denied access, and for tokens.
const KEPT_FOR: Duration = Duration::from_secs(10);

/// The most answers of a cache.
const CAPACITY: u64 = 4096;

/// An answer or an error of any kind: all caches are one type, which makes the program smaller by a copy of `moka` for each kind.
type AnyAnswer = Arc<dyn Any + Send + Sync>;

/// Answers of one kind of review.
pub(crate) struct ReviewCache<V> {
    answers: Cache<[u8; 32], AnyAnswer>,
    kind: PhantomData<fn() -> V>,
}

impl<V: Clone + Send + Sync + 'static> ReviewCache<V> {
    pub(crate) fn new() -> Self {
        Self { answers: cache(), kind: PhantomData }
    }

    /// The answer to a question, from the cache or from `ask`. All callers pass errors of one type. The future is boxed, because
    /// every request has one.
    ///
    /// # Errors
    /// If `ask` fails.
    pub(crate) async fn get<E: Send + Sync + 'static>(
        &self,
        question: &[u8],
        ask: BoxFuture<'_, Result<V, E>>,
    ) -> Result<V, Arc<E>> {
        let key: [u8; 32] = Sha256::digest(question).into();
        let ask = ask.map(|answer| match answer {
            Ok(answer) => Ok(Arc::new(answer) as AnyAnswer),
            Err(error) => Err(Arc::new(error) as AnyAnswer),
        });
        match answer(&self.answers, key, ask.boxed()).await {
            Ok(answer) => Ok(answer.downcast_ref::<V>().expect("invariant: put in above").clone()),
            Err(error) => Err(error.downcast::<E>().expect("invariant: put in above")),
        }
    }
}

fn cache() -> Cache<[u8; 32], AnyAnswer> {
    Cache::builder().max_capacity(CAPACITY).time_to_live(KEPT_FOR).build()
}

async fn answer(
    answers: &Cache<[u8; 32], AnyAnswer>,
    key: [u8; 32],
    ask: BoxFuture<'_, Result<AnyAnswer, AnyAnswer>>,
) -> Result<AnyAnswer, AnyAnswer> {
    let answer = Box::pin(answers.try_get_with(key, ask)).await;
    // Callers that waited for one answer share its error.
    answer.map_err(|error: Arc<AnyAnswer>| AnyAnswer::clone(&error))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_question_is_asked_once_and_again_after_a_failure() {
        let (cache, asked) = (ReviewCache::<u32>::new(), AtomicUsize::new(0));
        let failing = || -> BoxFuture<'_, Result<u32, kube::Error>> {
            Box::pin(async {
                asked.fetch_add(1, Ordering::Relaxed);
                Err(kube::Error::TlsRequired)
            })
        };
        let succeeding = || -> BoxFuture<'_, Result<u32, kube::Error>> {
            Box::pin(async {
                asked.fetch_add(1, Ordering::Relaxed);
                Ok(7)
            })
        };
        assert!(cache.get(b"a", failing()).await.is_err());
        let both = futures::join!(cache.get(b"a", succeeding()), cache.get(b"a", succeeding()));
        assert_eq!((both.0.ok(), both.1.ok()), (Some(7), Some(7)));
        assert_eq!(cache.get(b"a", failing()).await.ok(), Some(7));
        assert_eq!(asked.load(Ordering::Relaxed), 2);
        assert!(cache.get(b"b", failing()).await.is_err(), "another question");
    }
}
