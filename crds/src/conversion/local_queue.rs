//! LocalQueues. Lost in v1beta2: the list of flavors.

use super::{ConvertedParts, Object, queue_usage, rename};

pub(super) fn to_v1beta2(parts: &mut ConvertedParts) {
    rename(&mut parts.status, "flavorUsage", "flavorsUsage");
    set_usage(&mut parts.status);
}

pub(super) fn to_v1beta1(parts: &mut ConvertedParts) {
    set_usage(&mut parts.status);
    rename(&mut parts.status, "flavorsUsage", "flavorUsage");
}

fn set_usage(status: &mut Object) {
    queue_usage::set_unset_to_zero(status, &["flavorsReservation", "flavorsUsage"], &["total"]);
}
