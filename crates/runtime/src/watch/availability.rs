//! Whether an optional kind is available in a cluster. Pure.

use kube::runtime::watcher;

/// Why the objects of an optional kind cannot be observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unavailable {
    /// 404: the cluster does not serve the kind, for example because its CRD is not installed.
    NotServed,
    /// 403: the account may not list or watch the kind.
    Forbidden,
}

impl Unavailable {
    /// The reason that a failure of a list or a watch shows; `None` for a failure of another kind.
    pub(super) fn of(error: &watcher::Error) -> Option<Self> {
        let code = match error {
            watcher::Error::InitialListFailed(kube::Error::Api(status))
            | watcher::Error::WatchStartFailed(kube::Error::Api(status))
            | watcher::Error::WatchFailed(kube::Error::Api(status))
            | watcher::Error::WatchError(status) => status.code,
            _ => 0,
        };
        match code {
            404 => Some(Self::NotServed),
            403 => Some(Self::Forbidden),
            _ => None,
        }
    }
}
