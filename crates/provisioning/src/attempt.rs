//! Names of ProvisioningRequests and of their templates, and the number of the attempt in them.
//!
//! `<workload>-<check>-<attempt>`, and `ppt-<request>-<pod set>` for templates. A name of more than 247 characters ends with a hash in
//! place of its rest. Kueue reads the number back from the end of a name, which such a name has lost; here the names of all
//! attempts in question are compared, so that long names work as well. Source: docs/reference/kueue.md §2.3.

use crds::{meta::controller, v1beta2::Workload};
use sha1::{Digest, Sha1};

use crate::api::ProvisioningRequest;

/// The longest name that stays as it is: 253 less the hash and its dash.
const MAX_PREFIX_LENGTH: usize = 247;

/// Hexadecimal digits of the hash.
const HASH_LENGTH: usize = 5;

/// Attempts beyond the expected one that a name is compared with.
const FURTHER_ATTEMPTS: i32 = 16;

/// The name of the request of an attempt; the first attempt is 1.
#[must_use]
pub fn request_name(workload: &str, check: &str, attempt: i32) -> String {
    shortened(format!("{workload}-{check}-{attempt}"))
}

/// The name of the template of a pod set of a request.
#[must_use]
pub fn template_name(request: &str, pod_set: &str) -> String {
    shortened(format!("ppt-{request}-{pod_set}"))
}

/// The attempt that a request of this name is for; `None` if the name is not that of a request of the Workload and check.
/// `expected` is about the attempt that a shortened name may have.
#[must_use]
pub fn attempt_of(request: &str, workload: &str, check: &str, expected: i32) -> Option<i32> {
    let whole = request.strip_prefix(&format!("{workload}-{check}-"));
    if let Some(number) = whole.filter(|text| text.bytes().all(|one| one.is_ascii_digit()))
        && let Ok(attempt) = number.parse()
    {
        return Some(attempt);
    }
    let last = expected.saturating_add(FURTHER_ATTEMPTS);
    (1..=last).find(|attempt| request_name(workload, check, *attempt) == request)
}

/// Whether the Workload controls the request: one of the same name may be foreign.
#[must_use]
pub fn is_owned(request: &ProvisioningRequest, workload: &Workload) -> bool {
    let owner = controller(&request.metadata);
    owner.is_some_and(|owner| workload.metadata.uid.as_deref() == Some(&*owner.uid))
}

fn shortened(name: String) -> String {
    if name.len() <= MAX_PREFIX_LENGTH {
        return name;
    }
    let digest = Sha1::digest(name.as_bytes());
    let hex: String =
        digest.iter().take(HASH_LENGTH.div_ceil(2)).map(|byte| format!("{byte:02x}")).collect();
    let mut end = MAX_PREFIX_LENGTH;
    // Names are ASCII; the loop keeps a slice of any other text from being cut inside of a character.
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let (prefix, _) = name.split_at(end);
    format!("{prefix}-{}", hex.chars().take(HASH_LENGTH).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_holds_workload_check_and_attempt() {
        assert_eq!(request_name("job-a", "prov", 2), "job-a-prov-2");
        assert_eq!(template_name("job-a-prov-2", "main"), "ppt-job-a-prov-2-main");
        assert_eq!(attempt_of("job-a-prov-12", "job-a", "prov", 1), Some(12));
        assert_eq!(attempt_of("job-a-prov-b-1", "job-a", "prov", 1), None, "of another check");
        assert_eq!(attempt_of("job-a-prov-", "job-a", "prov", 1), None);
    }

    #[test]
    fn a_long_name_ends_with_a_hash_and_keeps_its_attempt() {
        let workload = "w".repeat(246);
        let name = request_name(&workload, "prov", 1);
        // printf '%s-prov-1' "$(printf 'w%.0s' {1..246})" | sha1sum
        assert_eq!(name, format!("{workload}--f60bc"));
        assert_eq!(name.len(), 253);
        assert_eq!(attempt_of(&name, &workload, "prov", 1), Some(1));
        let third = request_name(&workload, "prov", 3);
        assert_eq!(attempt_of(&third, &workload, "prov", 2), Some(3));
        assert_eq!(attempt_of(&third, &workload, "other", 2), None);
    }
}
