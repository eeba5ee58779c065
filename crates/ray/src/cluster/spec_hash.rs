//! A hash of a spec that tells whether pods must be made again.
//!
//! Source: docs/reference/ray.md §3 "Pod metadata". Values differ from the official operator's hash, which covers another encoding. Either
//! operator compares hashes of its own version only, so ours has a name that no official release has (`settings::VERSION`).

use serde_json::Value;
use sha1::{Digest, Sha1};

use crate::json::{field, items, object};

/// Fields of groups that scale them.
const SCALE: &[&str] = &["replicas", "minReplicas", "maxReplicas", "scaleStrategy"];

/// Fields of pods that admission to a queue adds.
const ADMISSION: &[&str] = &["tolerations", "schedulingGates"];

/// The hash of the spec of a RayCluster without its scale, its suspension and what admission adds.
pub(crate) fn recreate_hash(spec: &Value) -> String {
    let mut spec = spec.clone();
    // A change of these fields gives the same pods.
    for name in ["upgradeStrategy", "suspend", "managedBy"] {
        object(&mut spec).remove(name);
    }
    let count = items(&spec["workerGroupSpecs"]).len();
    for index in 0..count {
        if let Some(group) = spec["workerGroupSpecs"].get_mut(index) {
            for name in SCALE {
                object(group).remove(*name);
            }
            object(group).remove("suspend");
            // Kueue injects these fields when it admits; the admitted pods must stay.
            without_admission(group);
        }
    }
    without_admission(field(&mut spec, "headGroupSpec"));
    let digest = Sha1::digest(spec.to_string().as_bytes());
    base32_hex(&digest)
}

fn without_admission(group: &mut Value) {
    if let Some(pod) = group.pointer_mut("/template/spec") {
        for name in ADMISSION {
            object(pod).remove(*name);
        }
    }
}

/// RFC 4648 §7, for 20 bytes, which need no padding.
fn base32_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHIJKLMNOPQRSTUV";
    let bit = |at: usize| bytes.get(at / 8).is_some_and(|byte| byte >> (7 - at % 8) & 1 == 1);
    let digit = |group: usize| (0..5).fold(0, |sum, at| sum * 2 + usize::from(bit(group * 5 + at)));
    let digits = (0..(bytes.len() * 8).div_ceil(5)).filter_map(|group| DIGITS.get(digit(group)));
    digits.map(|digit| char::from(*digit)).collect()
}
