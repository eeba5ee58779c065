//! LocalQueues. Lost in v1beta2: the list of flavors.

use super::{ConvertedParts, rename};

pub(super) fn to_v1beta2(parts: &mut ConvertedParts) {
    rename(&mut parts.status, "flavorUsage", "flavorsUsage");
}

pub(super) fn to_v1beta1(parts: &mut ConvertedParts) {
    rename(&mut parts.status, "flavorsUsage", "flavorUsage");
}
