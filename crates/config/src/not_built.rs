//! Fields of later versions of Kueue that are not built, if their absence would change what happens.
//!
//! A file that sets one is refused with the reason. Strict decoding alone would call the field unknown, as if its name were misspelt.

use std::{collections::BTreeSet, fmt};

/// Paths of the fields, and what happens without them.
const FIELDS: &[(&str, &str)] = &[
    (
        "waitForPodsReady.unscheduledTimeout",
        "pods that get no node are evicted after waitForPodsReady.timeout",
    ),
    ("preemptionProtection", "a Workload can be preempted from its admission on"),
    ("scheduling.quotaReleaseStrategy", QUOTA_RELEASE),
    ("integrations.quotaReleaseStrategy", QUOTA_RELEASE),
    ("quotaReleaseStrategy", QUOTA_RELEASE),
];

const QUOTA_RELEASE: &str = "quota is released when the pods have ended, or at the deletion of plain pods with the feature gate \
                             FastQuotaReleaseInPodIntegration";

/// A field that is set and not built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotBuiltField {
    /// Its path.
    pub name: &'static str,
    /// What happens without it.
    pub instead: &'static str,
}

impl fmt::Display for NotBuiltField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, instead } = self;
        write!(
            f,
            "{name} is a field of a later version of Kueue that is not built ({instead}); leave it out"
        )
    }
}

/// The fields among these paths that are not built.
pub(super) fn find(set: &BTreeSet<String>) -> Vec<NotBuiltField> {
    let known = FIELDS.iter().filter(|(name, _)| set.contains(*name));
    known.map(|&(name, instead)| NotBuiltField { name, instead }).collect()
}
