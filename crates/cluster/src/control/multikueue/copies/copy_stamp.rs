//! The stamp of a copy: what its annotations say about where it comes from.

use ::jobs::remote_objects::epoch;
use crds::names::annotations::{HUB_VERSION, INCARNATION, TERM, WORKLOAD_UID};
use dispatch::CopyStamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Reads the stamp of a clone or a job. A number that does not parse is one that no hub has, so that the copy stays.
pub(crate) fn copy_stamp(metadata: &ObjectMeta) -> CopyStamp {
    let text = |name: &str| metadata.annotations.as_ref()?.get(name).map(String::as_str);
    let number = |name: &str| text(name).map(|text| text.parse().unwrap_or(u64::MAX));
    CopyStamp {
        epoch: epoch(metadata),
        incarnation: number(INCARNATION),
        term: number(TERM),
        hub_version: number(HUB_VERSION),
        workload_uid: text(WORKLOAD_UID).map(Into::into),
    }
}
