//! The condition `Active` of a MultiKueue AdmissionCheck. Source and texts: docs/reference/multikueue.md §1.4.

/// State of a cluster that a MultiKueueConfig lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterAvailability {
    /// The MultiKueueCluster does not exist.
    Missing,
    /// Its condition `Active` is not true.
    Inactive,
    /// Its condition `Active` is true.
    Active,
}

/// The condition `Active`. Its reason is one of `crds::names::reasons`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckStatus {
    /// True or False.
    pub status: bool,
    /// Reason.
    pub reason: &'static str,
    /// Message.
    pub message: String,
}

/// Computes the condition from the clusters, in the order of the configuration.
pub fn check_status<'a>(
    clusters: impl IntoIterator<Item = (&'a str, ClusterAvailability)>,
) -> CheckStatus {
    let (mut missing, mut inactive, mut active) = (Vec::new(), Vec::new(), 0);
    for (name, presence) in clusters {
        match presence {
            ClusterAvailability::Missing => missing.push(name),
            ClusterAvailability::Inactive => inactive.push(name),
            ClusterAvailability::Active => active += 1,
        }
    }
    let parts = [("Missing", &missing), ("Inactive", &inactive)];
    let listed = parts.iter().filter(|(_, names)| !names.is_empty());
    let listed = listed.map(|(what, names)| format!("{what} clusters: [{}]", names.join(" ")));
    let message = listed.collect::<Vec<_>>().join(", ");
    match (active, message.is_empty()) {
        (0, _) => CheckStatus { status: false, reason: "NoUsableClusters", message },
        (_, false) => CheckStatus { status: true, reason: "SomeActiveClusters", message },
        (_, true) => {
            let message = "The admission check is active".to_owned();
            CheckStatus { status: true, reason: "Active", message }
        }
    }
}

/// The condition of a check with invalid parameters.
pub fn bad_config(error: &str) -> CheckStatus {
    let message = format!("Cannot load the AdmissionChecks parameters: {error}");
    CheckStatus { status: false, reason: "BadConfig", message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_status_uses_the_texts_of_kueue() {
        use ClusterAvailability::{Active, Inactive, Missing};
        type CheckCase<'a> = (&'a [(&'a str, ClusterAvailability)], bool, &'a str, &'a str);
        let table: [CheckCase<'_>; 4] = [
            (&[("a", Active)], true, "Active", "The admission check is active"),
            (
                &[("a", Active), ("c", Inactive)],
                true,
                "SomeActiveClusters",
                "Inactive clusters: [c]",
            ),
            (
                &[("a", Missing), ("c", Inactive), ("b", Missing)],
                false,
                "NoUsableClusters",
                "Missing clusters: [a b], Inactive clusters: [c]",
            ),
            (&[], false, "NoUsableClusters", ""),
        ];
        for (clusters, status, reason, message) in table {
            let expected = CheckStatus { status, reason, message: message.to_owned() };
            assert_eq!(check_status(clusters.iter().copied()), expected);
        }
        let bad = bad_config("not found");
        assert_eq!(bad.message, "Cannot load the AdmissionChecks parameters: not found");
        assert_eq!((bad.status, bad.reason), (false, "BadConfig"));
    }
}
