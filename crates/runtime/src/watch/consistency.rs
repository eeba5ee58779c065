//! Consistency lists beside a watch: names and versions only, in pages, once per interval.
//!
//! The list is the most recent one (no resourceVersion is given), so it contains every change that happened before the
//! request.

use std::time::Duration;

use futures::{Stream, stream};
use kube::{Api, api::ListParams, core::PartialObjectMeta, runtime::watcher::Config};
use tokio::time;

use super::{
    Key,
    missed_events::{ObjectVersions, number},
};
use crate::api_object::ApiObject;

/// Timeout of a page.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of pages. More objects than these can hold have no room in memory.
const PAGES: usize = 10_000;

/// Grace period for events in flight when the list is answered. At most half of the interval.
const GRACE_PERIOD: Duration = Duration::from_secs(10);

/// One phase of a consistency check. They follow each other as `Started`, `Listed`, `Ended`; a failed list has no `Listed`.
#[derive(Debug)]
pub(super) enum ConsistencyCheck {
    /// The list is requested now.
    Started,
    /// The list was answered.
    Listed(ObjectVersions),
    /// The grace period is over.
    Ended,
}

/// The next phase.
enum NextPhase {
    Pause,
    List,
    Wait,
}

/// Why a list failed.
#[derive(Debug, thiserror::Error)]
enum ListError {
    #[error(transparent)]
    Failed(#[from] kube::Error),
    #[error("no answer within {PAGE_TIMEOUT:?}")]
    Silent(#[from] time::error::Elapsed),
    #[error("the list has no number for a version")]
    Unnumbered,
    #[error("the list does not end")]
    Endless,
}

/// Repeats the check forever, once per interval. Without an interval the stream is always pending.
pub(super) fn consistency_checks<'a>(
    watch: &'a str,
    api: &'a Api<ApiObject>,
    config: &'a Config,
    interval: Option<Duration>,
) -> impl Stream<Item = ConsistencyCheck> + 'a {
    let wait = interval.map_or(GRACE_PERIOD, |interval| GRACE_PERIOD.min(interval / 2));
    stream::unfold(NextPhase::Pause, move |next| async move {
        Some(match next {
            NextPhase::Pause => {
                let Some(interval) = interval else { return std::future::pending().await };
                time::sleep(interval.saturating_sub(wait)).await;
                (ConsistencyCheck::Started, NextPhase::List)
            }
            NextPhase::List => match list(api, config).await {
                Ok(listed) => (ConsistencyCheck::Listed(listed), NextPhase::Wait),
                Err(error) => {
                    // The watch reports its own failures; the next check lists again.
                    tracing::debug!(watch, %error, "cannot look at what is there");
                    (ConsistencyCheck::Ended, NextPhase::Pause)
                }
            },
            // Events of changes before the list may still be on their way.
            NextPhase::Wait => {
                time::sleep(wait).await;
                (ConsistencyCheck::Ended, NextPhase::Pause)
            }
        })
    })
}

async fn list(api: &Api<ApiObject>, config: &Config) -> Result<ObjectVersions, ListError> {
    let mut params = ListParams {
        label_selector: config.label_selector.clone(),
        field_selector: config.field_selector.clone(),
        limit: config.page_size,
        ..ListParams::default()
    };
    let mut listed = ObjectVersions::default();
    for _ in 0..PAGES {
        let page = time::timeout(PAGE_TIMEOUT, api.list_metadata(&params)).await??;
        let version = page.metadata.resource_version.as_deref().and_then(number);
        // All pages of a list have the version of the first.
        listed.version = version.ok_or(ListError::Unnumbered)?;
        listed.objects.extend(page.items.iter().filter_map(entry));
        let next = page.metadata.continue_.filter(|token| !token.is_empty());
        if next.is_none() {
            return Ok(listed);
        }
        // The same token would get the same page for ever.
        if next == params.continue_token {
            break;
        }
        params.continue_token = next;
    }
    Err(ListError::Endless)
}

fn entry(object: &PartialObjectMeta<ApiObject>) -> Option<(Key, u64)> {
    Some((Key::of(object), number(object.metadata.resource_version.as_deref()?)?))
}
