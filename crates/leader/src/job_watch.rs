//! The watch of a kind of jobs, and of a kind of objects that they need.

use jobs::{Gvk, JobObject, Kind, lookups::LookupKind, pods};
use kube::core::{DynamicObject, GroupVersionKind};
use runtime::watch::{ApiResource, KindDecoder, Watch, WatchMetrics, WatchSource};

/// Watches the jobs of a kind, of those that the source selects the ones that can be managed. A kind that the cluster does not
/// serve, or forbids, holds up no other. `prefix` stands before the name of the watch.
pub(crate) fn job_watch(
    prefix: &str,
    kind: &Kind,
    source: &WatchSource,
    metrics: &WatchMetrics,
) -> Watch<JobObject> {
    let name = format!("{prefix}{}", watch_name(kind));
    let decoder = kind.clone();
    let decode = move |text: &str| decoder.decode_text(text);
    let resource = ApiResource::erase::<JobObject>(kind);
    let source = match kind.selector() {
        Some(selector) => source.clone().selecting(selector),
        None => source.clone(),
    };
    Watch::from_text(&name, KindDecoder { resource: &resource, decode }, &source, metrics)
        .optional()
}

/// Watches the pods with a label that names their set.
pub(crate) fn members_watch(
    prefix: &str,
    label: &str,
    source: &WatchSource,
    metrics: &WatchMetrics,
) -> Watch<JobObject> {
    let decode = |text: &str| pods::kind().decode_text(text);
    let resource = ApiResource::erase::<JobObject>(pods::kind());
    let source = source.clone().selecting(label);
    Watch::from_text(
        &format!("{prefix}pods"),
        KindDecoder { resource: &resource, decode },
        &source,
        metrics,
    )
    .optional()
}

/// Watches objects that jobs need. A kind that the cluster does not serve, or forbids, holds up no other.
pub(crate) fn lookup_watch(
    kind: &LookupKind,
    source: &WatchSource,
    metrics: &WatchMetrics,
) -> Watch<DynamicObject> {
    let Gvk { group, version, kind: name } = &kind.gvk;
    let gvk = GroupVersionKind::gvk(group, version, name);
    let resource = ApiResource::from_gvk_with_plural(&gvk, &kind.plural);
    let decode = |text: &str| serde_json::from_str::<DynamicObject>(text);
    let name = format!("needed/{}.{group}", kind.plural);
    Watch::from_text(&name, KindDecoder { resource: &resource, decode }, source, metrics).optional()
}

/// The name of the watch of a kind in logs and metrics. Those of Kubernetes itself go by their plural name.
fn watch_name(kind: &Kind) -> String {
    match kind.group() {
        "" | "batch" => kind.plural().to_owned(),
        group => format!("{}.{group}", kind.plural()),
    }
}
