//! Updates of objects that are being deleted. What the webhooks refuse stays Terminating for ever.

use crds::json::is_terminating;
use serde_json::Value;

/// What the rules of `jobs` look at. Finalizers and the status are not part of it.
const CHECKED: &[&str] = &["/spec", "/metadata/labels", "/metadata/annotations"];

/// Whether an update leaves an object that is being deleted as it is, but for its finalizers and its status. It may have errors:
/// it may be older than the webhook.
pub(super) fn only_goes_on(object: &Value, old: &Value) -> bool {
    is_terminating(object) && CHECKED.iter().all(|part| object.pointer(part) == old.pointer(part))
}
