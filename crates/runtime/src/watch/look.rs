//! Looking at what is there beside a watch, now and then: names and versions only, a page at a time.
//!
//! The list is the newest that the server knows, so it has everything that was told before it was asked for.

use std::{fmt::Debug, time::Duration};

use futures::{Stream, stream};
use kube::{Api, Resource, api::ListParams, core::PartialObjectMeta, runtime::watcher::Config};
use serde::de::DeserializeOwned;
use tokio::time;

use super::{
    Key,
    doubt::{Seen, number},
};

/// How long a page may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// How long an event may take that happened before a list was answered; no more than half of the interval.
const ON_ITS_WAY: Duration = Duration::from_secs(10);

/// What happens in one look after the other.
#[derive(Debug)]
pub(super) enum Look {
    /// A list is asked for now.
    Begins,
    /// It was answered.
    Sees(Seen),
    /// So much time has passed since that a watch would have told.
    Ends,
}

/// What comes next.
enum Next {
    Pause,
    List,
    Wait,
}

/// Why there was nothing to see.
#[derive(Debug, thiserror::Error)]
enum NoList {
    #[error(transparent)]
    Failed(#[from] kube::Error),
    #[error("no answer within {DEADLINE:?}")]
    Silent(#[from] time::error::Elapsed),
    #[error("the list has no number for a version")]
    Unnumbered,
}

/// Looks for ever, once in each interval; never without one.
pub(super) fn looks<'a, K>(
    watch: &'a str,
    api: &'a Api<K>,
    config: &'a Config,
    interval: Option<Duration>,
) -> impl Stream<Item = Look> + 'a
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    let wait = interval.map_or(ON_ITS_WAY, |interval| ON_ITS_WAY.min(interval / 2));
    stream::unfold(Next::Pause, move |next| async move {
        Some(match next {
            Next::Pause => {
                let Some(interval) = interval else { return std::future::pending().await };
                time::sleep(interval.saturating_sub(wait)).await;
                (Look::Begins, Next::List)
            }
            Next::List => match list(api, config).await {
                Ok(seen) => (Look::Sees(seen), Next::Wait),
                Err(error) => {
                    tracing::debug!(watch, %error, "cannot look at what is there");
                    (Look::Ends, Next::Pause)
                }
            },
            Next::Wait => {
                time::sleep(wait).await;
                (Look::Ends, Next::Pause)
            }
        })
    })
}

async fn list<K>(api: &Api<K>, config: &Config) -> Result<Seen, NoList>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    let mut params = ListParams {
        label_selector: config.label_selector.clone(),
        field_selector: config.field_selector.clone(),
        limit: config.page_size,
        ..ListParams::default()
    };
    let mut seen = Seen::default();
    loop {
        let page = time::timeout(DEADLINE, api.list_metadata(&params)).await??;
        let version = page.metadata.resource_version.as_deref().and_then(number);
        seen.version = version.ok_or(NoList::Unnumbered)?;
        seen.objects.extend(page.items.iter().filter_map(entry));
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return Ok(seen);
        }
    }
}

fn entry<K: Resource>(object: &PartialObjectMeta<K>) -> Option<(Key, u64)> {
    Some((Key::of(object), number(object.metadata.resource_version.as_deref()?)?))
}
