//! A Workload with the key of its pods.

use crds::v1beta2::Workload;
use runtime::watch::Key;

/// A Workload with its key, or with the name that its pods have of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyedWorkload<'a> {
    pub(crate) key: &'a Key,
    pub(crate) workload: &'a Workload,
}
